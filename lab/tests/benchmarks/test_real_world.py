"""The benchmark of skewed labels and long texts: its cells, its joined texts, and its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskmatch.data import Examples
from maskmatch_lab.benchmarks import real_world, real_world_page

if TYPE_CHECKING:
    import pytest


def cell(**values: Any) -> dict[str, Any]:
    return {"part": "skewed", "dataset": "agnews", "seed": 10, **values}


def test_joined_posts_are_long_and_of_one_group() -> None:
    posts = [f"{'red' if number % 2 else 'blue'} {number} " * 100 for number in range(400)]
    rows = Examples(list(posts), [post.split()[0] for post in posts])
    joined = real_world.joined_posts(rows, seed=1)
    assert len(joined) == real_world.JOINED_TEXTS
    for text, label in joined[:5]:
        words = text.split()
        assert len(words) <= real_world.WORDS
        assert {word for word in words if not word.isdigit()} == {label}


def test_the_page_shows_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [
        cell(way="names", macro_f1=0.5),
        cell(way="default", macro_f1=0.7),
        cell(way="default", macro_f1=0.8, seed=11),
        {"part": "long", "dataset": "posts", "regime": "names", "way": next(iter(real_world.LONG)), "seed": 10}
        | {"accuracy": 0.25},
    ]
    versions = {"command": "c", "date": "d", "versions": {}, "machine": {"cpu": "x", "cores": 2}}
    monkeypatch.setattr(real_world_page, "results_of", lambda name: {"cells": cells, **versions})
    page = real_world_page.figures()
    assert "| names alone | 0.500 |" in page
    assert "| skewed rows: default | 0.750 |" in page
    assert "banking77" not in page
    assert "class weights" not in page
    assert "| the first 256 tokens | 0.250 |" in page
    assert "joined posts, names" not in page
    monkeypatch.setattr(real_world_page, "results_of", lambda name: None)
    assert real_world_page.figures() == real_world_page.NOT_YET


def test_every_way_of_training_is_a_setting() -> None:
    skewed = real_world.plans("skewed", 10)
    assert len(skewed) == len(real_world.SKEWED) * (len(real_world.WAYS) + 2)
    assert len(real_world.plans("long", 10)) == 4 * len(real_world.LONG)
