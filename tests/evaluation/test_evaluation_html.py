"""The HTML report."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch.evaluation import EvaluationReport, evaluate_predictions

EVIL = "</title><script>alert('label')</script><img src=x onerror=\"alert(1)\">"
VOID = {"meta"}


class Page(HTMLParser):
    """A strict HTML parser: every tag must be closed by its own end tag."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def random_report(label_count: int, multi_label: bool = False, rows: int = 200) -> EvaluationReport:
    random = np.random.default_rng(0)
    labels = [f"{EVIL} with a long name {number}" for number in range(label_count)]
    texts = [f"text {row} {EVIL}" for row in range(rows)]
    if multi_label:
        truth, predicted = (
            [[labels[index] for index in np.flatnonzero(row)] for row in random.random((rows, label_count)) < 0.2]
            for _ in range(2)
        )
        extra: dict[str, Any] = {"probabilities": random.random((rows, label_count)), "threshold": 0.4}
    else:
        truth = [labels[index] for index in random.integers(label_count, size=rows)]
        predicted = [labels[index] for index in random.integers(label_count, size=rows)]
        truth[0] = EVIL
        extra = {"confidence": random.random(rows)}
    return evaluate_predictions(
        texts, truth, predicted, labels=labels, multi_label=multi_label, seconds=1.5, cut=2, **extra
    )


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("label_count", [1, 3, 39, 77])
def test_page_is_well_formed_and_self_contained(label_count: int, multi_label: bool) -> None:
    html = random_report(label_count, multi_label).to_html()
    page = Page(html)
    assert not {"script", "img", "link", "iframe", "object", "a"} & set(page.tags)
    assert not {"src", "href", "xlink:href", "srcset"} & {name for name, _ in page.attributes}
    assert not any(name.startswith("on") for name, _ in page.attributes)
    assert not re.search(r"url\(|@import|https?:", html)
    assert page.tags.count("svg") == (2 if multi_label else 3)
    assert "prefers-color-scheme: dark" in html
    assert not re.search(r"[\"> ]nan\b", html)


@pytest.mark.parametrize("multi_label", [False, True])
def test_user_text_is_shown_and_escaped(multi_label: bool) -> None:
    html = random_report(3, multi_label).to_html()
    assert "<script" not in html
    assert 'onerror="' not in html
    page = Page(html)
    assert any("text " in text and "<script>" in text for text in page.texts)
    assert any(name == "title" and value.startswith(EVIL) for name, value in page.attributes)


def test_large_matrix_shows_the_40_labels_with_the_most_errors() -> None:
    many = random_report(77).to_html()
    assert "The 40 of 78 labels with the most errors are shown." in many
    assert many.count("rotate(-60)") == 40
    few = random_report(39).to_html()
    assert "are shown" not in few
    assert few.count("rotate(-60)") == 40  # including the label unknown to the model


def test_multi_label_page_shows_counts_instead_of_a_matrix() -> None:
    html = random_report(5, multi_label=True).to_html()
    assert 'aria-label="Correct, missed and wrong predictions"' in html
    assert 'aria-label="Confusion matrix"' not in html
    assert "Threshold" in html


def test_count_too_wide_for_its_cell_is_only_in_the_tooltip() -> None:
    labels = [f"label {number}" for number in range(40)]
    truth = labels + ["label 0"] * 12344
    html = evaluate_predictions(truth, truth, truth, labels=labels).to_html()
    assert "label 0: 12,345 of 12,345 correct (100%)" in html
    assert ">12,345</text>" not in html
    assert html.count('class="number strong"') == 39


def test_no_reliability_diagram_without_confidence() -> None:
    html = evaluate_predictions(["x"], truth=["a"], predicted=["a"], labels=["a", "b"]).to_html()
    assert Page(html).tags.count("svg") == 1
    assert "Reliability diagram" not in html


@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=4, unique=True), st.text(max_size=60))
@settings(max_examples=60, deadline=None)
def test_any_text_gives_a_valid_page(labels: list[str], text: str) -> None:
    report = evaluate_predictions(
        [{"text": text, "text_b": text}] * len(labels),
        truth=labels,
        predicted=labels[::-1],
        labels=labels,
        confidence=[0.5] * len(labels),
    )
    assert Page(report.to_html()).tags.count("svg") == 2
