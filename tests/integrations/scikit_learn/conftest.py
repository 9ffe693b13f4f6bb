"""Fixtures of the integrations: settings that make a tiny encoder learn the toy set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from maskmatch.sklearn import MaskMatchClassifier, clear_cache
from toy_data import FAST

if TYPE_CHECKING:
    from pathlib import Path

Make = Callable[..., MaskMatchClassifier]


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    clear_cache()
    yield
    clear_cache()


@pytest.fixture
def make(tiny: Callable[..., Path]) -> Make:
    """Makes an estimator on a tiny encoder, which learns the toy set unless told otherwise."""

    def estimator(**parameters: Any) -> MaskMatchClassifier:
        return MaskMatchClassifier(**{"model": tiny("bert"), **FAST, **parameters})

    return estimator


@pytest.fixture
def quick(make: Make) -> Make:
    """Makes an estimator that hardly trains."""
    return lambda **parameters: make(**{"epochs": 2, **parameters})
