"""The study of sentence pairs."""

from __future__ import annotations

import pytest

from maskmatch.comparison import LabelContext, Splits
from maskmatch.config import MatcherConfig
from maskmatch.studies import find_study
from maskmatch.studies.pairs import (
    ANSWER_OF,
    ANSWERS,
    FINE_TUNING,
    PAIR_AND_SIDES,
    PLAIN,
    QUESTIONS,
    READ_APART,
    SEE_PAIR,
    SIDES_APART,
    TWO_MASKS,
    pair_variants,
)
from maskmatch.tasks import TASKS
from study_tools import all_places, found_of

STUDY = find_study("pairs")


@pytest.mark.parametrize("task", sorted(QUESTIONS))
def test_every_design_is_a_classifier_that_reads_the_whole_pair(task: str) -> None:
    configs = {}
    for variant in pair_variants(TASKS[task]):
        configs[variant.name] = MatcherConfig.make(task=task, method=variant.row, **variant.matcher)
        assert set(configs[variant.name].fields) == set(TASKS[task].fields)
    seeing = {name for name, config in configs.items() if config.labels_in_context}
    assert seeing == {SEE_PAIR, SIDES_APART}
    sides = [set(prompt.fields) & {"text", "text_b"} for prompt in configs[READ_APART].prompts]
    assert sides == [{"text"}, {"text_b"}]
    assert configs[PAIR_AND_SIDES].prompts[1:] == configs[READ_APART].prompts
    assert configs[PAIR_AND_SIDES].prompt == configs[PLAIN].prompt
    assert "text_b" not in configs[SIDES_APART].prompt.fields
    assert "text" not in configs[SIDES_APART].label_prompt.fields


@pytest.mark.parametrize(
    "names", [["entailment", "not entailment"], ["neutral", "entailment", "contradiction"], ["duplicate", "other"]]
)
def test_labels_read_as_answers_and_stay_what_they_are(names: list[str]) -> None:
    rows = ([{"text": name, "text_b": "b"} for name in names], names)
    data = Splits.of("pairs", "nli", rows, rows)
    change = next(variant.labels for variant in pair_variants(TASKS["nli"]) if variant.name == ANSWERS)
    assert change is not None
    made = change(LabelContext(data.labels, "pairs", TASKS["nli"], data.train, data.train, 0, None))
    assert {id_: made.label(id_).name for id_ in made} == {name: ANSWER_OF.get(name, name) for name in names}


def test_the_answer_follows_the_cells() -> None:
    places = all_places(STUDY)
    good = {place: {TWO_MASKS: 0.8, FINE_TUNING: 0.7}.get(place[1], 0.5) for place in places}
    told = STUDY.conclude(found_of(STUDY, good))
    sentences = " ".join(told.sentences)
    assert f"So 200 shots, {TWO_MASKS} is at or above fine-tuning on 6 of 6 datasets, and +30.0 points" in sentences
    assert "on average: it is the design to take." in sentences
    assert told.figures["designs"]["200 shots"][TWO_MASKS]["gain"] == pytest.approx(0.3)
    bad = {place: {TWO_MASKS: 0.52, FINE_TUNING: 0.7}.get(place[1], 0.5) for place in places}
    sentences = " ".join(STUDY.conclude(found_of(STUDY, bad)).sentences)
    assert "no design is good enough to be taken without a second thought" in sentences
