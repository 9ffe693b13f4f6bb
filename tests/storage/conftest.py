"""Fixtures of the tests of saved classifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from maskmatch import MaskMatcher
from saving_tools import SHORT, Tiny
from toy_data import TEXTS, TRUTH

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def trained(tiny: Tiny) -> MaskMatcher:
    """A trained classifier; tests do not change it."""
    labels = {"refund": "money given back", "card lost": ["card gone", "card stolen"], "exchange rate": None}
    matcher = MaskMatcher.from_pretrained(tiny("bert"), labels, task="intent", label_prompt="{label}: {mask}")
    matcher.fit(TEXTS, TRUTH, dev=(TEXTS, TRUTH), **SHORT)
    matcher.evaluate(TEXTS, TRUTH)
    return matcher


@pytest.fixture
def saved(trained: MaskMatcher, tmp_path: Path) -> Path:
    return trained.save_pretrained(tmp_path / "model")
