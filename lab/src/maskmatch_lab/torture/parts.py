"""The table of all parts of the campaign."""

from __future__ import annotations

from maskmatch_lab.torture.campaign import Part
from maskmatch_lab.torture.company import conformance, editors, forks, full_disk, growth, same_weights, threads
from maskmatch_lab.torture.folders import damaged_classifiers, damaged_exports, hostile_classifiers, hostile_exports
from maskmatch_lab.torture.guided import guided
from maskmatch_lab.torture.kills import killed_training, kills
from maskmatch_lab.torture.openapi import made_requests
from maskmatch_lab.torture.power_loss import power_loss
from maskmatch_lab.torture.prompts import prompts
from maskmatch_lab.torture.readers import data_files, label_files
from maskmatch_lab.torture.serving import (
    edits,
    killed_workers,
    label_sets,
    overload,
    slow_clients,
    stopped,
    traffic,
)

SAME_OR_REFUSED = "a damaged folder is refused by the name of the file or folder, or gives the same answers"
ONE_SENTENCE = "wrong content gets one clear error, also if its digests were written again"
LOST_POWER = "after a power loss the old or the new content is there; a save that returned stays"

PARTS = {
    part.name: part
    for part in (
        Part("data-files", "a mutated file gives the rows of an independent parser, or one error", 100_000, data_files),
        Part("label-files", "a mutated label file gives labels, or one error", 20_000, label_files),
        Part("prompts", "masks are where the prompt has them, whatever a text contains", 20_000, prompts),
        Part("damaged-classifiers", SAME_OR_REFUSED, 10_000, damaged_classifiers),
        Part("damaged-exports", SAME_OR_REFUSED, 10_000, damaged_exports),
        Part("hostile-classifiers", ONE_SENTENCE, 4_000, hostile_classifiers),
        Part("hostile-exports", ONE_SENTENCE, 4_000, hostile_exports),
        Part("kills", "after a kill the old or the new content is there, whole", 1_000, kills),
        Part("killed-training", "training that was killed and resumed ends with the same weights", 30, killed_training),
        Part("power-loss", LOST_POWER, 200, power_loss),
        Part("full-disk", "a full disk is one error, and the old content stays", 200, full_disk),
        Part("editors", "two simultaneous editors lose nothing", 200, editors),
        Part("threads", "answers while labels are edited are those of one label set", 10_000, threads),
        Part("forks", "a process forked while threads predict answers like its parent", 100, forks),
        Part("growth", "predictions, edits and loads do not make a process grow", 1_000, growth),
        Part("same-weights", "the same seed and data give the same weights", 20, same_weights),
        Part("conformance", "classifiers and exports of every encoder family pass check_predictor", 28, conformance),
        Part("server-requests", "requests made from the OpenAPI document get answers as it says", 5_000, made_requests),
        Part("server-traffic", "good and broken requests of many clients get their own answers", 5_000, traffic),
        Part("server-edits", "while labels are edited, answers are those of the old or the new ones", 2_000, edits),
        Part("server-overload", "what is too much is refused at once; memory is flat", 20_000, overload),
        Part("server-label-sets", "labels in each request: the cache is bounded", 10_000, label_sets),
        Part("server-kills", "a killed worker is replaced, and no answer is wrong", 20, killed_workers),
        Part("server-stops", "SIGTERM under load: accepted requests are answered, exit code 0", 20, stopped),
        Part("server-slow-clients", "clients that send slowly or never read hold up nobody", 200, slow_clients),
        Part("guided", "coverage-guided fuzzing finds no untyped exception", 300_000, guided),
    )
}  # fmt: skip
"""All parts by name, with the tries of the whole campaign."""
