"""Occlusion: what each word of a text contributes to a label, by removing it and classifying again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.data import is_blank
from maskmatch.evaluation.explanation import ExplainedLabel, Explanation, MatchedPhrase, SimilarText, TextPart
from maskmatch.prompts import field_texts
from maskmatch.prompts.fields import MARKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from maskmatch.prediction.label_scorer import LabelScorer
    from maskmatch.prediction.pipeline import Pipeline

MAX_PARTS = 128
"""In how many parts a text is split at most; the words of a longer one are removed several at a time."""

AT_ONCE = 1 << 24
"""How many probabilities are held at a time."""

SIMILAR = 5
"""How many similar training texts are shown."""

REMOVED = "…"
"""What stands for a field of which nothing would be left."""

SMALLEST = 1e-9
"""The smallest probability whose log-odds are compared."""

UNSPACED = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f"
"""Scripts that are written without spaces: a character is a word."""

WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+(?:['\u2019-]\w+)*")
"""A word with its apostrophes and hyphens."""


def explain(pipeline: Pipeline, text: Any, k: int) -> Explanation:
    """What each word of a text contributes to its k most probable labels.

    Args:
        pipeline: The prediction pipeline.
        text: A string, or a dict of fields.
        k: How many labels.
    """
    prompts = pipeline.tokenize([text])  # raises for what is no text
    fields = pipeline.config.fields
    values = {name: value.text for name, value in field_texts(_unmarked(text), fields).items()}
    parts = text_parts(text, values)
    variants = [text, *(without(text, part, fields) for part in parts)]
    ranked = pipeline.top_k(prompts, k)[0]
    places = [pipeline.labels.position(label) for label, _ in ranked]
    probabilities = _probabilities(pipeline, variants, places)  # (1 + parts, k)
    odds = np.log(np.maximum(probabilities, SMALLEST)) - np.log(np.maximum(1 - probabilities, SMALLEST))
    effects = np.round(odds[0] - odds[1:], 4)  # (parts, k)
    (_, vectors, scorer), *_ = pipeline.scored(prompts)
    phrases = _phrases(pipeline, vectors, scorer, places)
    labels = tuple(
        ExplainedLabel(label, round(value, 6), tuple(effects[:, column].tolist()), phrases[column])
        for column, (label, value) in enumerate(ranked)
    )
    similar: tuple[SimilarText, ...] = ()
    if pipeline.kept is not None:
        plain = replace(scorer, origin=None, neighbours=None)  # as the training texts were compared
        found = pipeline.kept.nearest(plain.prepare(vectors)[0], SIMILAR)
        similar = tuple(SimilarText(own, label, round(value, 4)) for own, label, value in found)
    return Explanation(values, tuple(parts), labels, similar)


def text_parts(text: Any, values: Mapping[str, str]) -> list[TextPart]:
    """The words that can be removed, in order: those of all fields but marked mentions.

    >>> [part.text for part in text_parts("My card's gone!", {"text": "My card's gone!"})]
    ['My', "card's", 'gone']
    """
    words = [
        (field, *match.span())
        for field, value in values.items()
        if field not in MARKS
        for match in WORD.finditer(value)
        if not _in_span(text, field, *match.span())
    ]
    size = -(-len(words) // MAX_PARTS) or 1
    starts = [start for start in range(len(words)) if start % size == 0]
    starts += [row + 1 for row, (one, other) in enumerate(pairwise(words)) if _apart(text, one, other)]
    edges = [*sorted(set(starts)), len(words)]
    groups = [words[start:stop] for start, stop in pairwise(edges)]
    return [
        TextPart(group[0][0], group[0][1], group[-1][2], values[group[0][0]][group[0][1] : group[-1][2]])
        for group in groups
    ]


def _apart(text: Any, one: tuple[str, int, int], other: tuple[str, int, int]) -> bool:
    """Whether two words in a row are in different fields, or a marked mention lies between them."""
    return one[0] != other[0] or _in_span(text, one[0], one[2], other[1])


def without(text: Any, part: TextPart, fields: Sequence[str]) -> Any:
    """A text without some words; marked spans behind them move.

    >>> without("My card is gone", TextPart("text", 3, 7, "card"), ("text",))
    'My  is gone'
    """
    if isinstance(text, str):
        return _cut(text, part)
    cut = {**text, part.field: _cut(text[part.field], part)}
    if part.field != "text":
        return cut
    for name in MARKS:
        span = text.get(f"{name}_span")
        if span is not None and span[0] >= part.end:
            moved = part.end - part.start if cut["text"] != REMOVED else 0
            cut[f"{name}_span"] = [span[0] - moved, span[1] - moved]
    return cut


def _cut(text: str, part: TextPart) -> str:
    left = text[: part.start] + text[part.end :]
    return REMOVED if is_blank(left) else left


def _unmarked(text: Any) -> Any:
    """The text without its spans, so that no marks are put around them."""
    if not isinstance(text, Mapping) or not any(f"{name}_span" in text for name in MARKS):
        return text
    mentions = {
        name: text["text"][slice(*text[f"{name}_span"])]
        for name in MARKS
        if text.get(f"{name}_span") is not None and text.get(name) is None
    }
    return {name: value for name, value in {**text, **mentions}.items() if not name.endswith("_span")}


def _in_span(text: Any, field: str, start: int, end: int) -> bool:
    """Whether words overlap a marked mention, which cannot be removed."""
    if field != "text" or isinstance(text, str):
        return False
    spans = [span for name in MARKS if (span := text.get(f"{name}_span")) is not None]
    return any(start < span[1] and span[0] < end for span in spans)


def _probabilities(pipeline: Pipeline, texts: Sequence[Any], places: Sequence[int]) -> NDArray[np.float64]:
    """The probabilities of some labels (k,) for each text: (n, k)."""
    prompts = pipeline.tokenize(texts)
    size = max(1, AT_ONCE // len(pipeline.labels))
    slices = [np.arange(start, min(start + size, len(texts))) for start in range(0, len(texts), size)]
    parts = [pipeline.probabilities(prompts.select(rows))[:, places] for rows in slices]
    return np.concatenate(parts).astype(np.float64)


def _phrases(
    pipeline: Pipeline, vectors: NDArray[np.float32], scorer: LabelScorer, places: Sequence[int]
) -> list[tuple[MatchedPhrase, ...]]:
    """Per label (k,), its phrases, most similar to a text (1, masks, dim) first."""
    labels = pipeline.labels.labels
    if not pipeline.config.method.reads_labels:
        return [()] * len(places)
    similarities = scorer.similarities(vectors)[0]  # (F,)
    table, present = scorer.layout.table, scorer.layout.present
    found = []
    for place in places:
        own = similarities[table[place][present[place]]].tolist()
        texts = labels[place].words if pipeline.config.method.reads_words else labels[place].texts
        pairs = zip(texts, own) if len(texts) == len(own) else ()  # noqa: B905 - checked
        matched = (MatchedPhrase(str(phrase), round(float(value), 4)) for phrase, value in pairs)
        found.append(tuple(sorted(matched, key=lambda each: -each.similarity)))
    return found
