"""The study of sentence pairs."""

from __future__ import annotations

import pytest

from maskmatch.config import MatcherConfig
from maskmatch.errors import MaskMatchError
from maskmatch.studies import find_study
from maskmatch.studies.pairs import (
    FINE_TUNING,
    PAIR_AND_SIDES,
    PLAIN,
    READ_APART,
    SEE_PAIR,
    pair_variants,
)
from maskmatch.tasks import TASKS
from study_tools import all_places, found_of

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
    with pytest.raises(MaskMatchError, match="takes tasks with a text and a text_b; topic is none"):
        pair_variants(TASKS["topic"])


def test_the_answer_follows_the_cells() -> None:
    places = all_places(STUDY)
    good = {place: {READ_APART: 0.8, FINE_TUNING: 0.7}.get(place[1], 0.5) for place in places}
    told = STUDY.conclude(found_of(STUDY, good))
    sentences = " ".join(told.sentences)
    assert f"100 shots: {READ_APART} is at or above fine-tuning on 6 of 6 datasets, and +30.0 points" in sentences
    assert "on average: it is the design to take." in sentences
    assert told.figures["designs"]["100 shots"][READ_APART]["gain"] == pytest.approx(0.3)
    seeing = {place: {SEE_PAIR: 0.9, READ_APART: 0.52, FINE_TUNING: 0.7}.get(place[1], 0.5) for place in places}
    told = STUDY.conclude(found_of(STUDY, seeing))
    sentences = " ".join(told.sentences)
    assert (
        "Labels that see the pair (on snli_testonly, qqp_10k, wic_trainonly), 100 shots: plain prompt is" in sentences
    )
    assert "no design is good enough" in sentences  # what was tried on half of the datasets cannot be the one to take
    assert told.figures["designs"]["100 shots"][SEE_PAIR]["datasets"] == 3
    assert "Who always gave the most frequent answer would be right in: rte 100.0 %" in sentences  # all have one label
    bad = {place: {READ_APART: 0.52, FINE_TUNING: 0.7}.get(place[1], 0.5) for place in places}
    sentences = " ".join(STUDY.conclude(found_of(STUDY, bad)).sentences)
    assert "no design is good enough to be taken without a second thought" in sentences
