"""The study of expansion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskmatch.config.tasks import find_task
from maskmatch_lab.comparison import Splits
from maskmatch_lab.comparison.label_changes import LabelContext
from maskmatch_lab.studies import find_study
from maskmatch_lab.studies.expansion import EXAMPLES, NAMES, TYPICAL, WORDS, with_examples, with_typical_words
from study_tools import all_places, evidence_of
from toy_data import TEXTS, TRUTH

if TYPE_CHECKING:
    from cli_tools import Tiny

STUDY = find_study("expansion")


def test_labels_are_made_from_what_a_cell_may_see(tiny: Tiny) -> None:
    data = Splits.of("toy", "intent", train=(TEXTS, TRUTH), test=(TEXTS, TRUTH))
    none = data.train.select([])
    context = LabelContext(data.labels, "toy", find_task("intent"), none, data.train, 0, tiny("bert"))
    made = with_examples(context)
    assert list(made) == list(data.labels)
    assert any(label.examples for label in made.labels)
    trained = LabelContext(data.labels, "toy", find_task("intent"), data.train, data.train, 0, tiny("bert"))
    assert any(label.phrases for label in with_typical_words(trained).labels)


def test_the_answer_follows_the_cells() -> None:
    gains = {NAMES: 0.5, EXAMPLES: 0.6, WORDS: 0.5, TYPICAL: 0.3}
    told = STUDY.conclude(evidence_of(STUDY, {place: gains.get(place[1], 0.5) for place in all_places(STUDY)}))
    words = " ".join(told.sentences)
    assert f"{EXAMPLES} change accuracy by +10.0 points on average" in words
    assert f"{TYPICAL} change accuracy by -20.0 points" in words
    assert f"better: {EXAMPLES}" in words
    assert f"worse: {TYPICAL}" in words
    assert told.figures["gains"]["zero-shot"][EXAMPLES]["agnews"] == 0.1
    assert words.count("at most 1.0 points on any dataset. Reached by: names and examples (+") == 1


def test_what_loses_on_one_dataset_is_not_good_enough() -> None:
    places = all_places(STUDY)
    harmed = {place: 0.5 + 0.2 * (place[1] == EXAMPLES) * (-1 if place[0] == "agnews" else 1) for place in places}
    told = " ".join(STUDY.conclude(evidence_of(STUDY, harmed)).sentences)
    assert f"{EXAMPLES} change accuracy by +12.0 points on average" in told
    assert "on any dataset. Reached by: none." in told
