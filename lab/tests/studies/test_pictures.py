"""The pictures of studies."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from maskmatch_lab.studies import STUDIES
from maskmatch_lab.studies.pictures import Lines, Panel, dot_plot, interval_plot, line_plot
from maskmatch_lab.studies.rank_correlation import RankCorrelation
from study_tools import evidence_of

STUDY = STUDIES["pairs"]


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_a_variant_that_ran_on_some_datasets_says_so() -> None:
    values = {(data, name, "5 shots"): 0.5 for data in ("rte", "mrpc") for name in ("one", "two")}
    evidence = evidence_of(STUDY, {**values, ("rte", "some", "5 shots"): 0.75})
    shown = texts(dot_plot(evidence, [Panel("5 shots"), Panel("full data")], ["one", "two", "some"], "one"))
    assert {"one", "two", "some", "5 shots", "0.500", "0.750 (1 of 2)"} <= set(shown)
    assert "full data" not in shown, "a panel without cells is left out"
    both = texts(dot_plot(evidence, [Panel("5 shots", "both", ("rte", "mrpc"))], ["one", "some"], "one"))
    assert "some" not in both
    assert dot_plot(evidence, [Panel("full data")], ["one"], "one") == ""


def test_variants_have_the_names_that_they_are_called_by() -> None:
    evidence = evidence_of(STUDY, {("rte", "one (bare)", "5 shots"): 0.5})
    shown = texts(dot_plot(evidence, [Panel("5 shots")], ["one (bare)"], "one (bare)", called={"one (bare)": "one"}))
    assert "one" in shown
    assert not any("(bare)" in each for each in shown)


@pytest.mark.parametrize("panels", [1, 2, 5])
def test_panels_share_a_legend_and_lines_without_points_are_left_out(panels: int) -> None:
    lines = {"near": {10: 0.5, 1000: 0.25}, "far": {10: 0.5}, "none": {}}
    drawn = [Lines(f"panel {number}", lines, "seconds" if number else "accuracy") for number in range(panels)]
    shown = texts(line_plot([*drawn, Lines("empty", {"near": {}})], "labels", logarithmic=True))
    assert [shown.count(name) for name in ("near", "far", "none", "empty")] == [1, 1, 0, 0]
    assert {f"panel {number}" for number in range(panels)} <= set(shown)
    assert line_plot([Lines("empty", {})], "labels") == ""


def test_places_have_the_names_that_are_given() -> None:
    shown = texts(line_plot([Lines("all", {"a": {0.0: 0.2, 1.0: 0.4}})], "rows", ticks={0.0: "zero-shot"}))
    assert {"zero-shot", "1"} <= set(shown)


def test_intervals_of_scores() -> None:
    known = {"good": RankCorrelation(0.8, 0.4, 0.9, 0.01, 12), "unknown": None}
    shown = texts(interval_plot(known, "Scores", wanted=0.7))
    assert "good" in shown
    assert any("the wanted 0.7" in each for each in shown)
    assert "unknown" not in shown
    assert interval_plot({"unknown": None}, "Scores", wanted=0.7) == ""
