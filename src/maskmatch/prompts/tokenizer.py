"""Fill prompts and convert them to token ids."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.prompts.batches import TokenizedPrompts
from maskmatch.prompts.fields import FieldText, FieldTexts
from maskmatch.prompts.truncation import Token, fixed_length, shorten_long_text, truncate
from maskmatch.prompts.vocabulary import Vocabulary
from maskmatch.prompts.windows import Offsets, Windows, joined_cut, split_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerBase

    from maskmatch.prompts.template import Part, Prompt

MIN_MAX_LENGTH = 8
LABEL = "label"
"""The field with the text of a label."""

LONG_TEXT = 10_000
"""Up to this many characters, tokenising the whole text is faster than shortening it first."""

EXTRA_TOKENS = 32
"""How many tokens more than the maximum length are kept of a very long text, so that its edges cannot matter."""


@dataclass(frozen=True)
class _Fixed:
    """A segment with the same token ids in every row: a special token, or words of the prompt between two masks."""

    ids: list[int]
    is_mask: bool = False


@dataclass(frozen=True)
class _Filled:
    """A segment of words and fields, which are tokenised together for each row."""

    parts: list[Part]
    strip_start: bool = False
    """Whether the mask before the segment strips white space."""
    strip_end: bool = False
    """Whether the mask after the segment strips white space."""

    def text(self, row: FieldTexts) -> str:
        text = self.unstripped(row)
        text = text.lstrip() if self.strip_start else text
        return text.rstrip() if self.strip_end else text

    def unstripped(self, row: FieldTexts) -> str:
        return "".join(row[part.text].text if part.kind == "field" else part.text for part in self.parts)


class PromptTokenizer:
    """Fills prompts and converts them to token ids.

    The words and fields between two masks are tokenised together, as the tokenizer would tokenise the filled prompt.
    The masks are inserted as ids afterwards. So a text that contains ``[MASK]`` or ``<mask>`` never creates a mask,
    with any tokenizer.

    Args:
        tokenizer: A fast tokenizer of transformers, or its vocabulary.
        max_length: The maximum number of tokens of a prompt, including special tokens.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase | Vocabulary, max_length: int) -> None:
        self.tokenizer = tokenizer
        self.vocabulary = tokenizer if isinstance(tokenizer, Vocabulary) else Vocabulary.of(tokenizer)
        if max_length < MIN_MAX_LENGTH:
            raise MaskMatchError(f"max_length is {max_length}; it must be at least {MIN_MAX_LENGTH} tokens.")
        self.max_length = max_length
        self._compiled: dict[str, list[_Fixed | _Filled]] = {}
        self._lengths: dict[str, int] = {}  # by template

    def __call__(self, prompt: Prompt, rows: Sequence[FieldTexts]) -> TokenizedPrompts:
        """Fill and tokenise a prompt for each row of field texts."""
        segments = self._compile(prompt)
        rows = [self._shorten_long_texts(row) for row in rows]
        columns = [
            [segment.ids] * len(rows) if isinstance(segment, _Fixed) else self._fill(segment, rows)
            for segment in segments
        ]
        lengths = np.array([[len(ids) for ids in column] for column in columns], dtype=np.int64)  # (segments, n)
        cut = lengths.sum(axis=0) > self.max_length
        for row in np.flatnonzero(cut):
            for number, ids in enumerate(self._truncate(prompt, segments, rows[row])):
                columns[number][row] = ids
                lengths[number, row] = len(ids)
        starts = np.cumsum(lengths, axis=0) - lengths  # (segments, n), the position of each segment in its row
        masks = [number for number, segment in enumerate(segments) if getattr(segment, "is_mask", False)]
        ends = np.cumsum(lengths.sum(axis=0))  # (n,), the end of each row in the flat array of all tokens
        tokens = chain.from_iterable(chain.from_iterable(zip(*columns, strict=True)))
        flat = np.fromiter(tokens, dtype=np.int32, count=int(lengths.sum()))
        input_ids = [flat[start:end] for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=False)]
        unknown = self._mostly_unknown(prompt, flat, lengths)
        return TokenizedPrompts(input_ids, np.ascontiguousarray(starts[masks].T), cut, unknown=unknown)

    def _mostly_unknown(
        self, prompt: Prompt, tokens: NDArray[np.int32], lengths: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Whether at least half of the tokens of a row's fields are unknown: (n,).

        Args:
            prompt: The prompt.
            tokens: The tokens of all rows.
            lengths: (segments, n), how many tokens each segment of each row has.
        """
        if self.vocabulary.unknown_id is None or not len(tokens):
            return np.zeros(lengths.shape[1], bool)
        counts = np.cumsum(np.concatenate([[0], tokens == self.vocabulary.unknown_id]))
        sizes = lengths.sum(axis=0)
        ends = np.cumsum(sizes)
        unknown = counts[ends] - counts[ends - sizes]  # (n,)
        return np.asarray((unknown > 0) & (2 * unknown >= sizes - self._length_alone(prompt)))

    def _length_alone(self, prompt: Prompt) -> int:
        """How many tokens a prompt has without its fields."""
        if prompt.template not in self._lengths:
            empty = dict.fromkeys(prompt.fields, FieldText(""))
            self._lengths[prompt.template] = self.max_length - self.room([prompt], empty)
        return self._lengths[prompt.template]

    def pooled(self, prompts: Sequence[Prompt], rows: Sequence[FieldTexts]) -> TokenizedPrompts:
        """Tokenise each prompt of a pool for each row. A text counts as truncated if it is in any of them."""
        first, *others = [self(prompt, rows) for prompt in prompts]
        cut = np.any([first.cut, *(each.cut for each in others)], axis=0)
        return replace(first, cut=cut, others=tuple(others)) if others else first

    def windowed(self, prompts: Sequence[Prompt], rows: Sequence[FieldTexts]) -> TokenizedPrompts:
        """Tokenise each prompt of a pool for each row; a text that is too long is read in several windows."""
        tokenized = self.pooled(prompts, rows)
        long = np.flatnonzero(tokenized.cut)
        if not len(long):
            return tokenized
        room = partial(self.room, prompts)
        split = [split_row(rows[row], room, self.offsets, self.max_length) for row in long.tolist()]
        first = self.pooled(prompts, [windows[0] for windows, _ in split])
        further = self.pooled(prompts, [window for windows, _ in split for window in windows[1:]])
        owners = np.repeat(long, [len(windows) - 1 for windows, _ in split])
        first = replace(first, cut=first.cut | np.array([cut for _, cut in split]))
        tokenized = tokenized.replaced(long, first)
        cut = joined_cut(tokenized.cut, further.cut, owners)
        return replace(tokenized, cut=cut, windows=Windows(further, owners) if len(owners) else None)

    def room(self, prompts: Sequence[Prompt], row: FieldTexts) -> int:
        """How many tokens more than these fields the prompts have room for."""
        filled = [
            sum(len(segment.ids if isinstance(segment, _Fixed) else self._fill(segment, [row])[0]) for segment in each)
            for each in map(self._compile, prompts)
        ]
        return self.max_length - max(filled)

    def offsets(self, text: str) -> Offsets:
        """Where each token of a text starts and ends, in characters."""
        return list(self._backend.encode(text, add_special_tokens=False).offsets)

    def words(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of words as inside a sentence, without special tokens; at least one id per word."""
        return [ids or [self.vocabulary.unknown_id or 0] for ids in self._encode([f" {text}" for text in texts])]

    @property
    def _backend(self) -> Any:
        """The tokenizer of the tokenizers library, without truncation and padding that other callers may have set."""
        backend: Any = self.vocabulary.backend
        if not backend.encode_special_tokens:
            backend.encode_special_tokens = True  # "[MASK]" in a text is an ordinary word
        if backend.truncation is not None:
            backend.no_truncation()
        if backend.padding is not None:
            backend.no_padding()
        return backend

    def _compile(self, prompt: Prompt) -> list[_Fixed | _Filled]:
        """Split a prompt into segments, once per prompt, and tokenise those that are the same in every row."""
        if prompt.template not in self._compiled:
            vocabulary = self.vocabulary
            segments: list[_Fixed | _Filled] = [_Fixed(list(vocabulary.prefix))]
            # In some tokenizers the mask strips the white space around it, even that of a text.
            strips_before, strips_after = vocabulary.mask_strips
            runs = _split_at_special(prompt.parts)
            kinds = [None, *(parts[0].kind for parts in runs), None]
            for parts, previous, kind, following in zip(runs, kinds, kinds[1:], kinds[2:], strict=False):
                if kind == "mask":
                    segments.append(_Fixed([vocabulary.mask_id], is_mask=True))
                elif kind == "sep":
                    segments.append(_Fixed([self._separator(prompt)]))
                else:
                    filled = _Filled(
                        parts,
                        strip_start=previous == "mask" and strips_after,
                        strip_end=following == "mask" and strips_before,
                    )
                    fixed = all(part.kind == "words" for part in parts)
                    segments.append(_Fixed(self._encode([filled.text({})])[0]) if fixed else filled)
            self._compiled[prompt.template] = [*segments, _Fixed(list(vocabulary.suffix))]
        return self._compiled[prompt.template]

    def _separator(self, prompt: Prompt) -> int:
        if self.vocabulary.separator_id is None:
            raise MaskMatchError(
                f"The prompt {prompt.template!r} names {{sep}}, but the tokenizer {self.vocabulary.name} has no "
                "separator token; use words instead."
            )
        return self.vocabulary.separator_id

    def _shorten_long_texts(self, row: FieldTexts) -> FieldTexts:
        """Shorten very long texts of a row, because tokenising megabytes takes seconds."""
        if all(len(value.text) <= LONG_TEXT for value in row.values()):
            return row
        max_tokens = self.max_length + EXTRA_TOKENS
        return {name: shorten_long_text(value, max_tokens, self._count) for name, value in row.items()}

    def _count(self, text: str) -> int:
        return len(self._encode([text])[0])

    def _fill(self, segment: _Filled, rows: Sequence[FieldTexts]) -> list[list[int]]:
        return self._encode([segment.text(row) for row in rows])

    def _encode(self, texts: list[str]) -> list[list[int]]:
        encodings = self._backend.encode_batch_fast(texts, add_special_tokens=False)
        return [self._replace_special(encoding.ids) for encoding in encodings]

    def _replace_special(self, ids: list[int]) -> list[int]:
        """Replace special tokens of a text by the unknown token: SentencePiece has its mask as an ordinary piece."""
        special, unknown = self.vocabulary.special_ids, self.vocabulary.unknown_id
        if special.isdisjoint(ids):
            return ids
        replacement = [] if unknown is None else [unknown]
        return [token for id_ in ids for token in (replacement if id_ in special else [id_])]

    def _truncate(self, prompt: Prompt, segments: Sequence[_Fixed | _Filled], row: FieldTexts) -> list[list[int]]:
        """The token ids of each segment, with the fields truncated so that all segments fit."""
        whole_fields = () if prompt.fields == (LABEL,) else (LABEL,)  # a label beside a text is never truncated
        tokens: list[list[Token]] = []
        first_field = 0
        for segment in segments:
            if isinstance(segment, _Fixed):
                tokens.append([Token(id_) for id_ in segment.ids])
            else:
                tokens.append(self._trace(segment, row, first_field, whole_fields))
                first_field += sum(part.kind == "field" for part in segment.parts)
        fixed = fixed_length(tokens)
        if fixed >= self.max_length:
            alone = "with its label" if LABEL in whole_fields and LABEL in row else "alone"
            raise MaskMatchError(
                f"The prompt {prompt.template!r} {alone} takes {fixed} tokens of the {self.max_length} allowed, "
                "which leaves no room for a text; shorten the prompt or raise max_length."
            )
        return truncate(tokens, self.max_length)

    def _trace(self, segment: _Filled, row: FieldTexts, first_field: int, whole_fields: tuple[str, ...]) -> list[Token]:
        """The tokens of a segment, with the field that each comes from, found by the tokenizer's offset mapping.

        Args:
            segment: The segment.
            row: The field texts.
            first_field: The number of the segment's first field in the prompt.
            whole_fields: Fields that are never truncated; their tokens count as the prompt's own.
        """
        field_of, protected = _character_origins(segment, row, first_field, whole_fields)
        text = segment.text(row)
        stripped = segment.unstripped(row).find(text)  # characters stripped at the start
        field_of, protected = field_of[stripped:], protected[stripped:]
        encoding = self._backend.encode(text, add_special_tokens=False)
        tokens: list[Token] = []
        for id_, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            fields = set(field_of[start : max(end, start + 1)])
            # A token that spans a field and the prompt's own words belongs to the prompt, so it stays.
            field = fields.pop() if len(fields) == 1 else None
            tokens += [Token(kept, field, any(protected[start:end])) for kept in self._replace_special([id_])]
        return tokens


def _character_origins(
    segment: _Filled, row: FieldTexts, first_field: int, whole_fields: tuple[str, ...]
) -> tuple[list[int | None], list[bool]]:
    """For each character of a segment, before stripping: its field number, and whether it is in a marked span."""
    field_of: list[int | None] = []
    protected: list[bool] = []
    number = first_field
    for part in segment.parts:
        value = row[part.text] if part.kind == "field" else FieldText(part.text)
        may_truncate = part.kind == "field" and part.text not in whole_fields
        field_of += [number if may_truncate else None] * len(value.text)
        flags = [False] * len(value.text)
        for start, end in value.protected:
            flags[start:end] = [True] * (end - start)
        protected += flags
        number += part.kind == "field"
    return field_of, protected


def _split_at_special(parts: Sequence[Part]) -> list[list[Part]]:
    """Split parts into runs: each mask and separator alone, all words and fields between two of them together."""
    runs: list[list[Part]] = []
    for part in parts:
        joins = part.kind in ("words", "field") and runs and runs[-1][-1].kind in ("words", "field")
        if joins:
            runs[-1].append(part)
        else:
            runs.append([part])
    return runs
