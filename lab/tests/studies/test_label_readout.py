"""The study of where a label is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskmatch.config.tasks import TASKS
from maskmatch_lab.studies import find_study
from maskmatch_lab.studies.label_readout import BARE_ENCODER, BOTH_MASKS, LABEL_SIDE, readout_variants
from study_tools import all_places, evidence_of

if TYPE_CHECKING:
    from maskmatch_lab.comparison import Variant

STUDY = find_study("label-readout")


def _variant(name: str) -> Variant:
    return next(variant for variant in readout_variants(TASKS["question"]) if variant.name == name)


def test_each_way_reads_where_its_name_says() -> None:
    variants = readout_variants(TASKS["question"])
    assert len(variants) == 2 * 19 + 6
    assert len({variant.name for variant in variants}) == len(variants)
    bare = _variant("text mask, label cls of bare name" + BARE_ENCODER)
    assert (bare.row.input_readout, bare.row.label_readout) == ("mask", "cls")
    assert bare.matcher["label_prompt"] == "{label}"
    assert bare.matcher["prompt"] == TASKS["question"].prompt
    assert bare.matcher["model"] == "all-MiniLM-L6-v2"
    alike = _variant("text max of bare text, label max of bare name")
    assert (alike.row.input_readout, alike.row.label_readout) == ("max", "max")
    assert alike.matcher == {"prompt": "{text}", "label_prompt": "{label}"}
    crossed = _variant("text mean, label cls")
    assert (crossed.row.input_readout, crossed.row.label_readout) == ("mean", "cls")
    trained = STUDY.parts[1].variants_for("question")
    assert [variant.name for variant in trained[:8]] == [
        BOTH_MASKS,
        "text mask, label mean",
        "text mask, label max",
        "text mask, label cls",
        "text mask, label mean of bare name",
        "text mean, label mask",
        "text mean, label mean",
        "text mean of bare text, label mean of bare name",
    ]


def test_the_answer_follows_the_cells() -> None:
    places = all_places(STUDY)
    best = evidence_of(STUDY, {place: 0.8 if place[1].startswith(BOTH_MASKS) else 0.4 for place in places})
    told = " ".join(STUDY.conclude(best).sentences)
    assert f"Zero-shot: {BOTH_MASKS} is better than all 24 others." in told
    assert f"5 shots: {BOTH_MASKS} is better than all 3 others" in told
    assert f"5 shots on trec50: {BOTH_MASKS} is better than all 7 others" in told
    assert "not the best read-out" not in told
    worse = evidence_of(STUDY, {place: 0.8 if place[1].startswith(LABEL_SIDE[0]) else 0.4 for place in places})
    told = " ".join(STUDY.conclude(worse).sentences)
    assert f"not the best read-out; the best of 24 others is {LABEL_SIDE[0]} (+40.0, p " in told
    pictures = STUDY.conclude(worse).pictures
    assert len(pictures) == 2  # one for each encoder
    assert not any("…" in picture or "..." in picture for picture in pictures)
    equal = evidence_of(STUDY, dict.fromkeys(places, 0.5))
    told = " ".join(STUDY.conclude(equal).sentences)
    assert "nothing is clearly better" in told
    assert "better: " not in told


def test_ways_are_compared_where_all_of_them_were_tried() -> None:
    """What was tried on an easier dataset as well must not look better for it."""
    easier = {place: 0.9 if place[0] == "banking77" else 0.4 for place in all_places(STUDY)}
    told = STUDY.conclude(evidence_of(STUDY, easier)).sentences
    begins = {"On the label side on trec50, 5 shots": "40.0 %", "On the label side, 5 shots": "65.0 %"}
    for begin, right in begins.items():
        sentence = next(each for each in told if each.startswith(begin))
        assert f"“{BOTH_MASKS}” has an accuracy of {right}" in sentence
    assert not any("better: " in each for each in told)


def test_what_was_tried_on_one_dataset_alone_is_not_left_out_of_the_answer() -> None:
    best = "text mean of bare text, label mean of bare name"
    told = STUDY.conclude(evidence_of(STUDY, {place: 0.9 if place[1] == best else 0.5 for place in all_places(STUDY)}))
    assert any(each.startswith("5 shots: nothing is clearly better") for each in told.answer)
    assert any(each.startswith("5 shots on trec50: the mask") and best in each for each in told.answer)
