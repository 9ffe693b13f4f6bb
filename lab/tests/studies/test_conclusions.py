"""Conclusions follow the cells: other cells, another conclusion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch import LabelSet, MaskMatchError
from maskmatch_lab.comparison.cells import Answers
from maskmatch_lab.studies import find_study, label_names
from maskmatch_lab.studies.informativeness import SCORES, apartness, apartness_over_numbers
from maskmatch_lab.studies.label_names import REGIMES
from maskmatch_lab.studies.learned_from import LEARNED_FROM
from maskmatch_lab.studies.names import AS_THEY_ARE, CHANGES, NUMBERED
from maskmatch_lab.studies.prompts import EMPTY, FREED, OWN, POOLS
from maskmatch_lab.studies.rank_correlation import rank_correlation
from study_tools import all_places, cell, evidence_of, stand_ins

NAMES, PROMPTS, COUNTS = (find_study(name) for name in ("names", "prompts", "label-count"))


def test_prompts() -> None:
    places = all_places(PROMPTS)
    assert len({name for _, name, _ in places}) == 1 + 7 + 7 + 3 + 3

    def accuracy(place: tuple[str, str, str]) -> float:
        _, name, regime = place
        if name == f"input: {EMPTY}":
            return 0.2
        if name in (POOLS[2], FREED[2]):
            return 0.9
        return 0.3 + 0.3 * (name == "label: means") * (regime == "zero-shot")

    told = " ".join(PROMPTS.conclude(evidence_of(PROMPTS, {place: accuracy(place) for place in places})).sentences)
    assert "5 sensible label prompts, zero-shot: accuracy from 30.0 % to 60.0 %" in told
    assert f"Odd input prompts, zero-shot: “{OWN}” has an accuracy of 30.0 %; worse: input: no words (-10.0" in told
    assert f"Pools of three prompts, 5 shots: “{OWN}” has an accuracy of 30.0 %; better: both pools (+60.0" in told
    assert "reach 90.0 %, above the range of their single members" in told
    assert f"better: {FREED[2]} (+60.0" in told
    assert (
        "On trec50, the gap between the best and the worst of 4 sensible label prompts is 30.0 points zero-shot" in told
    )
    assert "and 0.0 points 5 shots, where seeds alone would cause a gap of 0.0: the gap shrinks with training." in told
    same = " ".join(PROMPTS.conclude(evidence_of(PROMPTS, dict.fromkeys(places, 0.4))).sentences)
    assert "better:" not in same
    assert "worse:" not in same
    assert "does not clearly shrink" in same


def _names(monkeypatch: pytest.MonkeyPatch, gains: dict[str, float], worth: dict[str, float]) -> str:
    """The conclusion if names bring so much in each regime on trec50, and so much on each dataset zero-shot."""
    values = {}
    for dataset, name, regime in all_places(NAMES):
        gain = gains[regime] if dataset == "trec50" else worth.get(dataset, 0.1)
        bad = name in (NUMBERED, "shuffled", "generic", "random words")
        values[dataset, name, regime] = 0.3 if bad else 0.3 + gain
    order = {data: place / 10 for place, data in enumerate(NAMES.datasets)}
    monkeypatch.setattr(label_names, "SCORES", {"made up": lambda data, model: order[data.name]})
    return " ".join(NAMES.conclude(evidence_of(NAMES, values)).sentences)


def test_names(monkeypatch: pytest.MonkeyPatch) -> None:
    gains = {"zero-shot": 0.62, "1 shot": 0.3, "5 shots": 0.2, "20 shots": 0.0, "full data": 0.0}
    rising = {data: 0.01 * place for place, data in enumerate(NAMES.datasets)} | {"trec50": 0.0}
    told = _names(monkeypatch, gains, {data: 0.6 - value for data, value in rising.items()})
    assert "the gain is clear up to 5 shots, and not beyond" in told
    assert "'made up', computed before any training, predicts the opposite of the zero-shot gain of names" in told
    assert "a rank correlation of at least 0.7. Reached by: none." in told
    told = _names(monkeypatch, dict.fromkeys(gains, 0.2), {data: 0.2 + value for data, value in rising.items()})
    assert "names help in every regime" in told
    assert "'made up', computed before any training, predicts the zero-shot gain of names" in told
    assert "a rank correlation of at least 0.7. Reached by: 'made up'." in told
    told = _names(monkeypatch, dict.fromkeys(gains, 0.0), dict.fromkeys(rising, 0.0))
    assert "none of these gains is clear" in told
    assert "does not clearly predict" in told
    assert {name for _, name, regime in all_places(NAMES) if regime == "5 shots"} == set(CHANGES)
    assert len(NAMES.datasets) >= 10


def test_names_that_the_encoder_has_learned_from_do_not_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    learned = [data for data in NAMES.datasets if data in LEARNED_FROM]
    assert learned
    rising = {data: 0.02 * place for place, data in enumerate(NAMES.datasets)}
    told = _names(monkeypatch, {"zero-shot": rising["trec50"]} | dict.fromkeys(REGIMES, 0.1), rising)
    assert f"over {len(NAMES.datasets) - len(learned)} label sets" in told
    assert f"over all {len(NAMES.datasets)}" in told
    assert f"was trained on train rows of {', '.join(learned)}" in told


def test_the_score_of_a_name_and_its_recall(monkeypatch: pytest.MonkeyPatch) -> None:
    found = evidence_of(NAMES.on({"trec50": "question"}), {("trec50", NUMBERED, "zero-shot"): 0.1})
    labels = tuple(f"name {number}" for number in range(12))
    # Of twelve texts of each label, one more is right with every next label.
    pairs = [(label, label if text < label else (label + 1) % 12) for label in range(12) for text in range(12)]
    answers = Answers(tuple(range(len(pairs))), labels, *(tuple(each) for each in zip(*pairs, strict=True)))
    right = cell("trec50", AS_THEY_ARE, "zero-shot", answers.right.tolist())
    object.__setattr__(right, "answers", answers)
    object.__setattr__(found.comparison, "cells", [*found.comparison.cells, right])
    monkeypatch.setattr(label_names, "SCORES", {"made up": lambda data, model: 1.0})
    scores = dict(zip(labels, np.linspace(0, 1, 12), strict=True))
    object.__setattr__(found.datasets["trec50"], "labels", LabelSet.of(list(labels)))
    monkeypatch.setattr(label_names, "name_scores", lambda data, model: tuple(scores.values()))
    told = " ".join(NAMES.conclude(found).sentences)
    assert "trec50 +0.9" in told or "trec50 +1.00" in told


def test_too_few_label_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_names, "SCORES", {"made up": lambda data, model: 1.0})
    values = {("trec50", name, "zero-shot"): 0.5 for name in (AS_THEY_ARE, NUMBERED)}
    assert "too few to see" in " ".join(NAMES.conclude(evidence_of(NAMES.on({"trec50": "question"}), values)).sentences)


def test_label_counts() -> None:
    places = all_places(COUNTS)
    accuracies = {place: 0.4 if "100,000 with near" in place[1] else 0.8 for place in places}
    found = evidence_of(COUNTS, accuracies)
    cells = list(found.comparison.cells)
    slow = cell("banking77", "100,000 with near ones", "5 shots", [True] * 400, 7, training_seconds=50.0)
    quick = cell("banking77", "its own labels", "5 shots", [True] * 400, 7, training_seconds=25.0)
    object.__setattr__(found.comparison, "cells", [*cells, slow, quick])
    conclusion = COUNTS.conclude(found)
    told = " ".join(conclusion.sentences)
    assert "“its own labels” has an accuracy of 80.0 %; worse: 100,000 with near ones (-40.0" in told
    assert "With far labels added, zero-shot: “its own labels” has an accuracy of 80.0 %; no clear difference" in told
    assert (
        "Near labels instead of far ones, zero-shot: “100,000 with far ones” has an accuracy of 80.0 %; worse" in told
    )
    assert "(2 times)" in told
    costs = conclusion.figures["costs"]["5 shots"]
    assert costs["100,000 with near ones"]["training_seconds"] == pytest.approx(50 / 4)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=4, max_size=12))
def test_rank_correlation_is_symmetric_and_bounded(pairs: list[tuple[float, float]]) -> None:
    one, other = (list(values) for values in zip(*pairs, strict=True))
    found, turned = rank_correlation(one, other, draws=20), rank_correlation(other, one, draws=20)
    assert found.value == pytest.approx(turned.value)
    assert rank_correlation(one, [-value for value in other], draws=20).value == pytest.approx(-found.value)
    assert -1 - 1e-9 <= found.low <= found.high <= 1 + 1e-9
    assert 0 < found.p <= 1


def test_rank_correlation_knows_order_alone() -> None:
    values = np.arange(10.0)
    assert rank_correlation(list(values), list(np.exp(values))).value == pytest.approx(1)
    assert rank_correlation(list(values), list(np.exp(values))).p < 0.001
    assert rank_correlation([1, 1, 1, 1], [1, 2, 3, 4]).value == 0
    with pytest.raises(MaskMatchError, match="at least 4"):
        rank_correlation([1, 2], [1, 2])


@pytest.mark.usefixtures("tiny_default")
def test_scores_of_names_read_names_alone() -> None:
    data = stand_ins(PROMPTS)["trec50"]
    assert 0 <= apartness(data, None) <= 2
    assert -2 <= apartness_over_numbers(data, None) <= 2
    for name in ("informativeness", "informativeness with texts"):
        assert 0 <= SCORES[name](data, None) <= 1
