"""Fixtures of the tests of other frameworks: a classifier with several labels per text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from maskmatch import MaskMatcher
from toy_data import LABELS

if TYPE_CHECKING:
    from pathlib import Path

    from cli_tools import Tiny


@pytest.fixture(scope="session")
def several(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier with several labels per text."""
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, multi_label=True, threshold=0.3)
    return matcher.save_pretrained(tmp_path_factory.mktemp("integrations") / "several")
