"""The study of sentence pairs."""

from __future__ import annotations

import pytest

from maskmatch.config.matcher import MatcherConfig
from maskmatch.config.tasks import TASKS
from maskmatch.errors import MaskMatchError
from maskmatch_lab.studies import find_study
from maskmatch_lab.studies.pairs import (
    FINE_TUNING,
    PAIR_AND_SIDES,
    PLAIN,
    READ_APART,
    SEE_PAIR,
    pair_variants,
)
from study_tools import all_places, evidence_of

STUDY = find_study("pairs")


@pytest.mark.parametrize("task", ["nli", "paraphrase", "stance", "word-in-context"])
def test_every_design_is_a_classifier_that_reads_the_whole_pair(task: str) -> None:
    configs = {}
    for variant in pair_variants(TASKS[task]):
        configs[variant.name] = MatcherConfig.make(task=task, method=variant.row, **variant.matcher)
        assert set(configs[variant.name].fields) == set(TASKS[task].fields)
    seeing = {name for name, config in configs.items() if config.labels_in_context}
    assert seeing == {SEE_PAIR}
    sides = [set(prompt.fields) & {"text", "text_b"} for prompt in configs[READ_APART].prompts]
    assert sides == [{"text"}, {"text_b"}]
    assert configs[PAIR_AND_SIDES].prompts[1:] == configs[READ_APART].prompts
    assert configs[PAIR_AND_SIDES].prompt == configs[PLAIN].prompt


def test_it_takes_pairs_alone() -> None:
    with pytest.raises(MaskMatchError, match="needs a task with text and text_b; topic has other fields"):
        pair_variants(TASKS["topic"])


def test_the_answer_follows_the_cells() -> None:
    places = all_places(STUDY)
    good = {place: {READ_APART: 0.8, FINE_TUNING: 0.7}.get(place[1], 0.5) for place in places}
    told = STUDY.conclude(evidence_of(STUDY, good))
    sentences = " ".join(told.sentences)
    assert f"100 shots: “{READ_APART}” is at or above fine-tuning on 6 of 6 datasets" in sentences
    assert "differs by +30.0 points from the plain prompt on average. It is the recommended design." in sentences
    assert told.figures["designs"]["100 shots"][READ_APART]["gain"] == pytest.approx(0.3)
    seeing = {place: {SEE_PAIR: 0.9, READ_APART: 0.52, FINE_TUNING: 0.7}.get(place[1], 0.5) for place in places}
    told = STUDY.conclude(evidence_of(STUDY, seeing))
    sentences = " ".join(told.sentences)
    assert (
        "Labels that see the pair (on snli_testonly, qqp_10k, wic_trainonly), 100 shots: “plain prompt” has"
        in sentences
    )
    assert (
        "no design reaches the target" in sentences
    )  # what was tried on half of the datasets cannot be the one to take
    assert told.figures["designs"]["100 shots"][SEE_PAIR]["datasets"] == 3
    assert "Always predicting the most frequent label would reach: rte 100.0 %" in sentences  # all have one label
    bad = {place: {READ_APART: 0.52, FINE_TUNING: 0.7}.get(place[1], 0.5) for place in places}
    sentences = " ".join(STUDY.conclude(evidence_of(STUDY, bad)).sentences)
    assert "no design reaches the target; the best, " in sentences
