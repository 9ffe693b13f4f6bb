"""Prompts as token ids. All truncation lives here: it shortens fields, never a prompt's words or masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.prompts.fields import FieldText
from maskmatch.prompts.long_texts import without_far_end
from maskmatch.prompts.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerBase

    from maskmatch.prompts.template import Part, Prompt

SHORTEST_MAX_LENGTH = 8
LABEL = "label"
"""The field of a label's own text."""

LONG_TEXT = 10_000
"""Up to so many characters a text is tokenised whole: looking closer would take longer."""

ROOM_FOR_EDGES = 32
"""How many tokens more than the maximum are kept of a very long text: what happens at its edges cannot matter."""
FieldTexts = Mapping[str, FieldText]


@dataclass(frozen=True)
class TokenizedPrompts:
    """Prompts as token ids, with the places of their masks."""

    input_ids: list[NDArray[np.int32]]
    mask_positions: NDArray[np.int64]  # (n, masks)
    cut: NDArray[np.bool_]  # (n,): whether a field text had to be shortened to fit
    others: tuple[TokenizedPrompts, ...] = ()
    """The same texts in further prompts of a pool."""
    label_prompts: TokenizedPrompts | None = None
    """Where labels are read with each text: the prompts of all F label texts with the first text, with the second, …"""

    def __len__(self) -> int:
        return len(self.input_ids)

    @property
    def flat(self) -> TokenizedPrompts:
        """All readings one behind the other: all texts in the first prompt, then all in the second, and so on."""
        return self.followed_by(*self.others) if self.others else self

    def followed_by(self, *others: TokenizedPrompts) -> TokenizedPrompts:
        """These prompts and others behind them; where the numbers of masks differ, -1 fills the places."""
        parts = (self, *others)
        masks = max(part.mask_positions.shape[1] for part in parts)
        positions = [
            np.pad(part.mask_positions, ((0, 0), (0, masks - part.mask_positions.shape[1])), constant_values=-1)
            for part in parts
        ]
        return TokenizedPrompts(
            [ids for part in parts for ids in part.input_ids],
            np.concatenate(positions),
            np.concatenate([part.cut for part in parts]),
        )

    def select(self, rows: Sequence[int] | NDArray[np.int64]) -> TokenizedPrompts:
        """Some of the prompts."""
        rows = np.asarray(rows, dtype=np.int64)
        ids, others = [self.input_ids[row] for row in rows], tuple(each.select(rows) for each in self.others)
        labels = self.label_prompts
        if labels is not None:
            each_text = len(labels) // max(1, len(self))  # F
            labels = labels.select((rows[:, None] * each_text + np.arange(each_text)).ravel())
        return TokenizedPrompts(ids, self.mask_positions[rows], self.cut[rows], others, labels)

    def with_labels(self, label_prompts: TokenizedPrompts) -> TokenizedPrompts:
        """These prompts of texts and those of all labels with each text; a text is cut if it is in any of them."""
        cut = label_prompts.cut.reshape(len(self), -1).any(axis=1) if len(self) else self.cut
        return replace(self, cut=self.cut | cut, label_prompts=label_prompts)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """The number of tokens of each text, in the prompt of the pool where it has most."""
        own = np.fromiter((len(ids) for ids in self.input_ids), dtype=np.int64, count=len(self.input_ids))
        return np.asarray(np.max([own, *(other.lengths for other in self.others)], axis=0))

    @cached_property
    def tokens(self) -> NDArray[np.int64]:
        """The number of tokens read of each text, in all its prompts and in those of labels that it is part of."""
        own = np.fromiter((len(ids) for ids in self.input_ids), dtype=np.int64, count=len(self.input_ids))
        counts = [own, *(other.tokens for other in self.others)]
        if self.label_prompts is not None:
            counts.append(self.label_prompts.tokens.reshape(len(self), -1).sum(axis=1))
        return np.asarray(np.sum(counts, axis=0))


@dataclass(frozen=True)
class _Fixed:
    """Token ids that are the same in every row: a special token, or words of the prompt that stand alone."""

    ids: list[int]
    is_mask: bool = False


@dataclass(frozen=True)
class _Filled:
    """Words and fields that are tokenised together, row by row."""

    parts: list[Part]
    strip_start: bool = False
    """Whether the mask before it swallows the blanks beside it."""
    strip_end: bool = False
    """Whether the mask behind it does."""

    def text(self, row: FieldTexts) -> str:
        text = self.unstripped(row)
        text = text.lstrip() if self.strip_start else text
        return text.rstrip() if self.strip_end else text

    def unstripped(self, row: FieldTexts) -> str:
        return "".join(row[part.text].text if part.kind == "field" else part.text for part in self.parts)


@dataclass(frozen=True)
class _Token:
    id: int
    field: int | None = None
    """Which field of the prompt it belongs to, counted by occurrence; None: the prompt's own, never cut."""
    spared: bool = False


class PromptTokenizer:
    """Fills prompts and turns them into token ids.

    The words between two masks are tokenised together with the field texts among them, as the tokenizer
    itself would treat the filled prompt; masks are put in as ids afterwards. So a text that happens to hold
    ``[MASK]`` or ``<mask>`` never makes a mask, whatever the tokenizer.

    Args:
        tokenizer: A tokenizer of transformers that is backed by the tokenizers library, or its vocabulary.
        max_length: The most tokens that a prompt may have, special tokens included.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase | Vocabulary, max_length: int) -> None:
        self.tokenizer = tokenizer
        self.vocabulary = tokenizer if isinstance(tokenizer, Vocabulary) else Vocabulary.of(tokenizer)
        if max_length < SHORTEST_MAX_LENGTH:
            raise MaskMatchError(f"max_length is {max_length}; it has to be at least {SHORTEST_MAX_LENGTH} tokens.")
        self.max_length = max_length
        self._compiled: dict[str, list[_Fixed | _Filled]] = {}

    def __call__(self, prompt: Prompt, rows: Sequence[FieldTexts]) -> TokenizedPrompts:
        """Tokenise a prompt once for each row of field texts."""
        segments = self._compile(prompt)
        rows = [self._without_far_ends(row) for row in rows]
        columns = [
            [segment.ids] * len(rows) if isinstance(segment, _Fixed) else self._fill(segment, rows)
            for segment in segments
        ]
        lengths = np.array([[len(piece) for piece in column] for column in columns], dtype=np.int64)  # (segments, n)
        cut = lengths.sum(axis=0) > self.max_length
        for row in np.flatnonzero(cut):
            for number, piece in enumerate(self._shorten(prompt, segments, rows[row])):
                columns[number][row] = piece
                lengths[number, row] = len(piece)
        starts = np.cumsum(lengths, axis=0) - lengths  # (segments, n), where each begins in its row
        masks = [number for number, segment in enumerate(segments) if getattr(segment, "is_mask", False)]
        ends = np.cumsum(lengths.sum(axis=0))  # (n,), where each row ends among all tokens
        tokens = chain.from_iterable(chain.from_iterable(zip(*columns, strict=True)))
        flat = np.fromiter(tokens, dtype=np.int32, count=int(lengths.sum()))
        input_ids = [flat[start:end] for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=False)]
        return TokenizedPrompts(input_ids, np.ascontiguousarray(starts[masks].T), cut)

    def pooled(self, prompts: Sequence[Prompt], rows: Sequence[FieldTexts]) -> TokenizedPrompts:
        """Tokenise each prompt of a pool for each row; a text counts as cut where it is in any of them."""
        first, *others = [self(prompt, rows) for prompt in prompts]
        cut = np.any([first.cut, *(each.cut for each in others)], axis=0)
        return replace(first, cut=cut, others=tuple(others)) if others else first

    def words(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of bare words as they would stand inside a sentence, without special tokens."""
        return [ids or [self.vocabulary.unknown_id or 0] for ids in self._encode([f" {text}" for text in texts])]

    @property
    def _backend(self) -> Any:
        """The tokenizer of the tokenizers library, freed of what other callers may have set on it."""
        backend: Any = self.vocabulary.backend
        if not backend.encode_special_tokens:
            backend.encode_special_tokens = True  # "[MASK]" in a text is a word
        if backend.truncation is not None:
            backend.no_truncation()
        if backend.padding is not None:
            backend.no_padding()
        return backend

    def _compile(self, prompt: Prompt) -> list[_Fixed | _Filled]:
        """A prompt as segments, made once: what is the same in every row is tokenised here."""
        if prompt.template not in self._compiled:
            vocabulary = self.vocabulary
            segments: list[_Fixed | _Filled] = [_Fixed(list(vocabulary.prefix))]
            # Some tokenizers let the mask swallow the blanks beside it, those of a text included.
            strips_before, strips_behind = vocabulary.mask_strips
            runs = _between_special(prompt.parts)
            kinds = [None, *(parts[0].kind for parts in runs), None]
            for parts, before, kind, behind in zip(runs, kinds, kinds[1:], kinds[2:], strict=False):
                if kind == "mask":
                    segments.append(_Fixed([vocabulary.mask_id], is_mask=True))
                elif kind == "sep":
                    segments.append(_Fixed([self._separator(prompt)]))
                else:
                    filled = _Filled(
                        parts,
                        strip_start=before == "mask" and strips_behind,
                        strip_end=behind == "mask" and strips_before,
                    )
                    same = all(part.kind == "words" for part in parts)
                    segments.append(_Fixed(self._encode([filled.text({})])[0]) if same else filled)
            self._compiled[prompt.template] = [*segments, _Fixed(list(vocabulary.suffix))]
        return self._compiled[prompt.template]

    def _separator(self, prompt: Prompt) -> int:
        if self.vocabulary.separator_id is None:
            raise MaskMatchError(
                f"The prompt {prompt.template!r} names {{sep}}, but the tokenizer {self.vocabulary.name} has no "
                "separator token; put in words instead."
            )
        return self.vocabulary.separator_id

    def _without_far_ends(self, row: FieldTexts) -> FieldTexts:
        """A row whose very long texts have lost what is cut away anyway: to tokenise megabytes takes seconds."""
        if all(len(value.text) <= LONG_TEXT for value in row.values()):
            return row
        tokens = self.max_length + ROOM_FOR_EDGES
        return {name: without_far_end(value, tokens, self._count) for name, value in row.items()}

    def _count(self, text: str) -> int:
        return len(self._encode([text])[0])

    def _fill(self, segment: _Filled, rows: Sequence[FieldTexts]) -> list[list[int]]:
        return self._encode([segment.text(row) for row in rows])

    def _encode(self, texts: list[str]) -> list[list[int]]:
        encodings = self._backend.encode_batch_fast(texts, add_special_tokens=False)
        return [self._without_special(encoding.ids) for encoding in encodings]

    def _without_special(self, ids: list[int]) -> list[int]:
        """Special tokens in a text become unknown: a SentencePiece vocabulary holds its mask as a word."""
        special, unknown = self.vocabulary.special_ids, self.vocabulary.unknown_id
        if special.isdisjoint(ids):
            return ids
        harmless = [] if unknown is None else [unknown]
        return [token for id_ in ids for token in (harmless if id_ in special else [id_])]

    def _shorten(self, prompt: Prompt, segments: Sequence[_Fixed | _Filled], row: FieldTexts) -> tuple[list[int], ...]:
        """The token ids of each segment, with field texts shortened so that all fits."""
        pieces: list[list[_Token]] = []
        fields = 0
        whole = () if prompt.fields == (LABEL,) else (LABEL,)  # a label beside a text is never cut
        for segment in segments:
            if isinstance(segment, _Fixed):
                pieces.append([_Token(id_) for id_ in segment.ids])
            else:
                pieces.append(self._trace(segment, row, fields, whole))
                fields += sum(part.kind == "field" for part in segment.parts)
        by_field: list[list[_Token]] = [[] for _ in range(fields)]
        for token in (token for piece in pieces for token in piece):
            if token.field is not None:
                by_field[token.field].append(token)
        own = sum(len(piece) for piece in pieces) - sum(len(tokens) for tokens in by_field)
        if own >= self.max_length:
            alone = "with its label" if LABEL in whole and LABEL in row else "alone"
            raise MaskMatchError(
                f"The prompt {prompt.template!r} {alone} takes {own} tokens of the {self.max_length} allowed, "
                "which leaves no room for a text; shorten the prompt or raise max_length."
            )
        shares = share_room([len(tokens) for tokens in by_field], self.max_length - own)
        gone = {
            id(tokens[place])
            for tokens, room in zip(by_field, shares, strict=True)
            for place in order_of_going([token.spared for token in tokens])[: len(tokens) - room]
        }
        return tuple([token.id for token in piece if id(token) not in gone] for piece in pieces)

    def _trace(self, segment: _Filled, row: FieldTexts, first_field: int, whole: tuple[str, ...]) -> list[_Token]:
        """The tokens of a segment, each with the field it comes from; fields that stay whole count as the prompt's."""
        owner: list[int | None] = []  # per character of the text, the field it belongs to
        spared: list[bool] = []
        number = first_field
        for part in segment.parts:
            value = row[part.text] if part.kind == "field" else FieldText(part.text)
            is_cut = part.kind == "field" and part.text not in whole
            owner += [number if is_cut else None] * len(value.text)
            in_value = [False] * len(value.text)
            for start, end in value.spared:
                in_value[start:end] = [True] * (end - start)
            spared += in_value
            number += part.kind == "field"
        text = segment.text(row)
        skipped = segment.unstripped(row).find(text)  # what was stripped at its start
        owner, spared = owner[skipped:], spared[skipped:]
        encoding = self._backend.encode(text, add_special_tokens=False)
        tokens: list[_Token] = []
        for id_, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            owners = set(owner[start : max(end, start + 1)])
            # A token that reaches from a field into the prompt's own words is the prompt's, so it stays.
            field = owners.pop() if len(owners) == 1 else None
            kept_id = self._without_special([id_])
            tokens += [_Token(kept, field, any(spared[start:end])) for kept in kept_id]
        return tokens


def share_room(lengths: Sequence[int], room: int) -> list[int]:
    """How many tokens each field keeps: the longest gives first, until all fit into the room.

    >>> share_room([10, 3, 6], 12)
    [5, 3, 4]
    """
    shares = list(lengths)
    excess = sum(shares) - room
    if excess <= 0:
        return shares
    level = 0  # every field keeps up to this many tokens
    while sum(min(length, level + 1) for length in lengths) <= room:
        level += 1
    shares = [min(length, level) for length in lengths]
    for number, length in enumerate(lengths):  # what is left over, one token each, to the first that want it
        if sum(shares) < room and length > level:
            shares[number] += 1
    return shares


def order_of_going(spared: Sequence[bool]) -> list[int]:
    """In which order the tokens of a field go when it is cut.

    From the end; but where a span is marked, first what follows the last one, then what precedes the first
    one, then what lies between, and the marked spans themselves last.
    """
    if not any(spared):
        return list(range(len(spared) - 1, -1, -1))
    places = [place for place, flag in enumerate(spared) if flag]
    first, last = places[0], places[-1]
    after = list(range(len(spared) - 1, last, -1))
    before = list(range(first))
    between = [place for place in range(last, first, -1) if not spared[place]]
    return [*after, *before, *between, *reversed(places)]


def _between_special(parts: Sequence[Part]) -> list[list[Part]]:
    """Parts in runs: each mask and separator on its own, everything between two of them together."""
    runs: list[list[Part]] = []
    for part in parts:
        joins = part.kind in ("words", "field") and runs and runs[-1][-1].kind in ("words", "field")
        if joins:
            runs[-1].append(part)
        else:
            runs.append([part])
    return runs
