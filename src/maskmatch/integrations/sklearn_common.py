"""What the scikit-learn estimators share: encoders that are loaded once, tags, and warnings that are not repeated."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal

from maskmatch.storage.pretrained import PretrainedCache

if TYPE_CHECKING:
    from collections.abc import Iterator

encoders = PretrainedCache()
"""The encoders on which estimators of this process start: each fit gets a copy of the pristine weights."""


def clear_cache() -> None:
    """Free the memory of the encoders that estimators share; the next ``fit`` loads its encoder again."""
    encoders.clear()


NOT_FITTED = (
    "This %(name)s is not fitted yet; call fit with texts first. To classify by label names without training, give it "
    "labels and call fit without y."
)


def read_texts_only(tags: Any) -> None:
    """The tags of an estimator that reads texts, not matrices of numbers."""
    tags.input_tags.one_d_array = tags.input_tags.string = tags.input_tags.dict = True
    tags.input_tags.two_d_array = tags.input_tags.sparse = False


_settings: ContextVar[str | None] = ContextVar("maskmatch_sklearn_settings", default=None)
MOST_REMEMBERED = 1000


class _OncePerSettings(logging.Filter):
    """Lets a warning of an estimator pass once for the same settings, not once per fold.

    Warnings about texts to predict are not repeated only if they say the same.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[int] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        settings = _settings.get()
        if settings is None:
            return True
        fitting = settings.startswith("fit")  # without its arguments, which are counts and differ per fold
        key = hash((record.msg if fitting else record.getMessage(), settings))
        known = key in self.seen
        if len(self.seen) >= MOST_REMEMBERED:
            self.seen.clear()
        self.seen.add(key)
        return not known


_filter = _OncePerSettings()
logging.getLogger("maskmatch").addFilter(_filter)


@contextmanager
def warning_once(estimator: Any, doing: Literal["fit", "predict"]) -> Iterator[None]:
    """Within, a warning appears once per process for the parameters of an estimator, and what it is doing."""
    token = _settings.set(f"{doing} {type(estimator).__name__}{sorted(vars_of(estimator).items())!r}")
    try:
        yield
    finally:
        _settings.reset(token)


def vars_of(estimator: Any) -> dict[str, Any]:
    """The parameters of an estimator."""
    return dict(estimator.get_params(deep=False))
