"""The fields of texts, and texts in the prompts of a classifier as tokens."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maskmatch.data import blank_message, is_blank
from maskmatch.data.values import is_valid_unicode
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.labels import LabelSet
    from maskmatch.prompts.batches import TokenizedPrompts
    from maskmatch.prompts.tokenizer import PromptTokenizer

MARKS = {"head": ("@", "@"), "tail": ("#", "#"), "entity": ("*", "*")}
"""The marks around an entity span. Punctuation needs no new tokens, so it works with every encoder."""


@dataclass(frozen=True)
class FieldText:
    """The text of one field.

    Attributes:
        text: The text.
        protected: Character ranges that are truncated last, because they are marked spans.
    """

    text: str
    protected: tuple[tuple[int, int], ...] = ()


FieldTexts = Mapping[str, FieldText]
"""The fields of one example, by name."""


def field_texts(example: str | Mapping[str, Any], fields: Sequence[str], row: int = 0) -> dict[str, FieldText]:
    """Convert an example to the fields that a prompt uses.

    A plain string is the prompt's single field. In a mapping, ``head_span``, ``tail_span`` and ``entity_span`` (start
    and end, as character offsets in ``text``) mark that span in the text. If ``head``, ``tail`` or ``entity`` is
    missing, it is read from its span.

    Args:
        example: A string, or a mapping from field to text.
        fields: The fields to return.
        row: The example's row number, for error messages.
    """
    if isinstance(example, str):
        example = {fields[0] if len(fields) == 1 else "text": example}
    elif not isinstance(example, Mapping):
        raise MaskMatchError(
            f"Text {row} is of type {type(example).__name__}; a text is a string or a dict of fields "
            f"({', '.join(fields)})."
        )
    spans = _read_spans(example, row)
    values: dict[str, FieldText] = {}
    for name in fields:
        value = example.get(name)
        if value is None and name in spans:
            start, end = spans[name]
            value = example["text"][start:end]
        if not isinstance(value, str):
            problem = "is missing" if value is None else f"is of type {type(value).__name__}, not a string"
            raise MaskMatchError(f"Text {row}: its field {name!r} {problem}; required fields: {', '.join(fields)}.")
        if not is_valid_unicode(value):
            raise MaskMatchError(f"Text {row}: its field {name!r} contains a lone surrogate (half of a character).")
        values[name] = mark_spans(value, spans) if name == "text" and spans else FieldText(value)
    return values


def mark_spans(text: str, spans: Mapping[str, tuple[int, int]]) -> FieldText:
    """Insert marks around the spans of a text, and protect the marked words from truncation.

    >>> mark_spans("The clay was in a jar.", {"head": (4, 8), "tail": (18, 21)}).text
    'The @ clay @ was in a # jar #.'
    """
    # The opening mark of an outer span comes before that of an inner one, its closing mark after. Of two equal spans,
    # the first is the outer one.
    inserts: list[tuple[int, int, int, int, str]] = []
    for number, (name, (start, end)) in enumerate(spans.items()):
        opening, closing = MARKS[name]
        inserts.append((start, 1, -end, number, f"{opening} "))
        inserts.append((end, 0, -start, -number, f" {closing}"))
    pieces: list[str] = []
    protected: list[tuple[int, int]] = []
    copied = length = depth = span_start = 0
    for position, is_opening, _, _, mark in sorted(inserts):
        pieces += [text[copied:position], mark]
        length += position - copied
        if is_opening and depth == 0:
            span_start = length
        length += len(mark)
        depth += 1 if is_opening else -1
        if depth == 0:
            protected.append((span_start, length))
        copied = position
    pieces.append(text[copied:])
    return FieldText("".join(pieces), tuple(protected))


def _read_spans(example: Mapping[str, Any], row: int) -> dict[str, tuple[int, int]]:
    """Read the spans of an example; raise unless each lies in the text and matches its mention."""
    spans: dict[str, tuple[int, int]] = {}
    for name in MARKS:
        span = example.get(f"{name}_span")
        if span is None:
            continue
        text = example.get("text")
        try:
            start, end = (operator.index(offset) for offset in span)
        except (TypeError, ValueError):
            raise MaskMatchError(
                f"Text {row}: {name}_span is {span!r}; a span is two numbers, the character offsets of its start and "
                "end in text."
            ) from None
        if not isinstance(text, str) or not 0 <= start < end <= len(text):
            raise MaskMatchError(
                f"Text {row}: {name}_span {start} to {end} is outside its text of "
                f"{len(text) if isinstance(text, str) else 0} characters."
            )
        mention = example.get(name)
        if isinstance(mention, str) and _normalise(mention) != _normalise(text[start:end]):
            raise MaskMatchError(
                f"Text {row}: {name}_span marks {text[start:end]!r}, but {name} is {mention!r}; "
                "offsets count characters from 0, and the end is exclusive."
            )
        spans[name] = (start, end)
    return spans


def _normalise(text: str) -> str:
    return " ".join(text.casefold().split())


MAX_LABELS_IN_CONTEXT = 50
"""How many label texts may be read with each text: each costs as much as the text itself."""


def tokenize_texts(
    tokenizer: PromptTokenizer,
    config: MatcherConfig,
    texts: Sequence[Any],
    labels: LabelSet | None,
    *,
    first_row: int = 0,
) -> TokenizedPrompts:
    """Texts in their input prompts; if the label prompt names a field of the text, also with every label.

    Args:
        tokenizer: Turns prompts into tokens.
        config: The prompts.
        texts: Strings or dicts of fields.
        labels: The labels; needed only if they are read with each text.
        first_row: The number of the first text in error messages.
    """
    for row, text in enumerate(texts, first_row):
        if is_blank(text):
            raise MaskMatchError(f"Text {row}: {blank_message()} ({text!r}); give some words, or leave it out.")
    rows = [field_texts(text, config.fields, row) for row, text in enumerate(texts, first_row)]
    if config.long_texts == "windows":
        return tokenizer.windowed(config.prompts, rows)
    prompts = tokenizer.pooled(config.prompts, rows)
    if not config.labels_in_context or labels is None:
        return prompts
    label_texts = [FieldText(text) for label in labels.labels for text in label.texts]  # (F,)
    reason = f"The label prompt {config.label_prompt.template!r} names a field of the text, so "
    if len(label_texts) > MAX_LABELS_IN_CONTEXT:
        raise MaskMatchError(
            f"{reason}every text is read with all {len(label_texts)} names and phrases of labels; give at most "
            f"{MAX_LABELS_IN_CONTEXT}, or a label prompt that names the label alone."
        )
    if any(label.examples for label in labels.labels):
        raise MaskMatchError(
            f"{reason}labels have no vector of their own that examples could shift; leave the examples out."
        )
    filled = [{**row, "label": label} for row in rows for label in label_texts]
    return prompts.with_labels(tokenizer.pooled(config.label_prompts, filled))
