"""Selective prediction: curves, and thresholds that keep their promise."""

from __future__ import annotations

import numpy as np
import pytest

from maskmatch.errors import MaskMatchError
from maskmatch.evaluation import evaluate_predictions
from maskmatch.evaluation.selective import answered_point, choose_abstention, risk_coverage


def draw(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated confidences, and whether answers are right."""
    random = np.random.default_rng(seed)
    confidence = random.beta(3, 1, rows)
    return confidence, random.random(rows) < confidence


def test_a_curve_goes_from_the_most_confident_to_all() -> None:
    confidence, correct = draw(1000, 0)
    points = risk_coverage(confidence, correct)
    assert len(points) <= 100
    assert points[-1].coverage == 1.0
    assert points[-1].accuracy == pytest.approx(correct.mean(), abs=1e-4)
    for point in points:
        answered = confidence >= point.threshold - 1e-6
        assert point.coverage == pytest.approx(answered.mean(), abs=2e-3)
    assert [each.coverage for each in points] == sorted(each.coverage for each in points)


def test_texts_of_the_same_confidence_are_answered_together() -> None:
    points = risk_coverage([0.5, 0.5, 0.5, 0.9], [True, False, False, True])
    assert [(each.coverage, each.accuracy) for each in points] == [(0.25, 1.0), (1.0, 0.5)]


def test_the_promise_holds_on_other_texts() -> None:
    kept, chosen = 0, 0
    for seed in range(100):
        try:
            found = choose_abstention(*draw(800, seed), right=0.9, level=0.9)
        except MaskMatchError:
            continue
        chosen += 1
        confidence, _ = draw(20_000, seed + 1000)
        kept += confidence[confidence >= found.threshold].mean() >= 0.9
        assert found.bound >= 0.9
        assert found.accuracy >= found.bound
    assert chosen > 50
    assert kept >= 0.9 * chosen


def test_more_dev_texts_allow_more_answers() -> None:
    few, many = (choose_abstention(*draw(rows, 3), right=0.85).coverage for rows in (300, 30_000))
    assert many > few


def test_an_impossible_target() -> None:
    with pytest.raises(MaskMatchError, match="takes at least 408 answers, all of them right"):
        choose_abstention(*draw(50, 0), right=0.99)
    with pytest.raises(MaskMatchError, match="no threshold is right in 97% of its answers"):
        choose_abstention([0.9] * 400, [True, False] * 200, right=0.97)
    with pytest.raises(MaskMatchError, match="NaN"):
        choose_abstention([float("nan"), 0.5], [True, True])
    with pytest.raises(MaskMatchError, match=r"right is 1\.5"):
        choose_abstention([0.5], [True], right=1.5)
    with pytest.raises(MaskMatchError, match="no dev texts"):
        choose_abstention([], [])


def test_the_report_counts_texts_at_the_threshold_itself() -> None:
    confidence = [0.98765432] * 200 + np.linspace(0.1, 0.9, 3000).tolist()
    found = answered_point(confidence, [True] * 3200, 0.98765432)
    assert found is not None
    assert found.coverage == pytest.approx(200 / 3200)


def report(abstain: float):  # type: ignore[no-untyped-def]
    return evaluate_predictions(
        ["a", "b", "c", "d"],
        ["x", "x", "y", "y"],
        ["x", "y", "y", "y"],
        labels=["x", "y"],
        confidence=[0.9, 0.4, 0.8, 0.6],
        abstain=abstain,
    )


def test_the_report() -> None:
    found = report(0.7)
    assert found.accuracy == 0.75, "all texts count"
    assert found.answered is not None
    assert (found.answered.coverage, found.answered.accuracy) == (0.5, 1.0)
    assert "answered                    50.0% of the texts" in str(found)
    assert found.to_dict()["answered"]["accuracy"] == 1.0
    assert len(found.to_dict()["risk_coverage"]) == 4
    assert "If it may abstain" in found.to_html()
    assert report(0.0).answered is None
    assert "none: no probability reaches 0.950" in str(report(0.95))
    assert "No text reaches" in report(0.95).to_html()
