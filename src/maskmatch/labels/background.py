"""Names from many domains, which stand for all that a classifier has no label for."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def background_names() -> tuple[str, ...]:
    """The names of topics, intents and kinds of questions of the project's own corpus, a sample of them."""
    text = files("maskmatch.labels").joinpath("background_names.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line)
