"""The pictures of studies."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from maskmatch.comparison.page import STYLE
from maskmatch.comparison.pictures import COLOURS
from maskmatch.studies.page import standalone
from maskmatch.studies.pictures import line_plot, scatter_plot

NAMES = [f"way {number}" for number in range(COLOURS)]


def test_every_line_has_a_colour_of_its_own_and_is_not_filled() -> None:
    plot = line_plot({name: {1: 0.1 * place, 5: 0.5} for place, name in enumerate(NAMES)}, "Ways", "shots")
    styles = re.findall(r'<path class="(m\d+) spread"', plot)
    assert len(styles) == len(set(styles)) == len(NAMES)
    for style in styles:
        assert f"--{style}: #" in STYLE
        assert STYLE.index(f"svg .{style} {{ fill") < STYLE.index("svg .spread {")  # of two rules the later one holds
    assert re.search(r"svg \.spread {[^}]*fill: none", STYLE)


def test_a_place_without_a_value_is_left_out() -> None:
    lines = {"near": {10: 0.5, 1000: 0.25}, "far": {10: 0.5}, "none": {}}
    plot = line_plot(lines, "Labels", "labels", logarithmic=True)
    assert plot.count("<path class=") - plot.count('class="grid"') == 2
    assert "near, labels 1,000: 0.25" in plot
    assert "none" not in plot
    assert line_plot({"none": {}}, "Labels", "labels") == ""


@pytest.mark.parametrize("shared", [0, 1, 2, 5])
def test_a_scatter_plot_shows_the_sets_that_have_both_figures(shared: int) -> None:
    across = {f"set {number}": 0.1 * number for number in range(shared)} | {"alone": 0.5}
    up = {f"set {number}": 0.2 * number for number in range(shared)} | {"other": 0.5}
    plot = scatter_plot(across, up, "score")
    assert len(re.findall("<circle", plot)) == (shared if shared > 1 else 0)
    assert "alone" not in plot


def test_a_picture_by_itself_brings_its_style() -> None:
    drawn = standalone(line_plot({"a": {1.0: 0.5, 2.0: 0.7}}, "A & B", "labels"))
    root = ElementTree.fromstring(drawn)
    style = root.find("{http://www.w3.org/2000/svg}style")
    assert style is not None
    told = style.text or ""
    used = {word for each in root.iter() for word in each.get("class", "").split()}
    colours = set(re.findall(r"var\((--\w+(?:-\w+)*)\)", told))
    assert all(f"{colour}:" in told for colour in colours)
    assert {"m0"} <= used
    assert "svg .m0 { fill" in told
    assert told.count("{") == told.count("}")
    assert "prefers-color-scheme: dark" in told
