"""What prompts need to know of a tokenizer: its special tokens, and how it frames a text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Vocabulary:
    """A tokenizer of the tokenizers library with its special tokens; it needs no transformers, which loads slowly.

    Attributes:
        backend: The tokenizer.
        name: What messages call it.
        mask_id: The mask.
        unknown_id: The token of what has none, if there is one.
        separator_id: The separator, if there is one.
        pad_id: What batches are padded with.
        special_ids: All special tokens but the unknown one.
        prefix: The special tokens before a text.
        suffix: Those behind it.
        mask_strips: Whether the mask swallows the blanks before it, and those behind it.
    """

    backend: Any
    name: str
    mask_id: int
    unknown_id: int | None
    separator_id: int | None
    pad_id: int
    special_ids: frozenset[int]
    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    mask_strips: tuple[bool, bool]

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase) -> Vocabulary:
        """The vocabulary of a tokenizer of transformers, which the tokenizers library has to stand behind."""
        name = type(tokenizer).__name__
        if not getattr(tokenizer, "is_fast", False):
            raise MaskMatchError(
                f"The tokenizer {name} is not backed by the tokenizers library; choose a model with a fast tokenizer."
            )
        if tokenizer.mask_token_id is None:
            raise MaskMatchError(
                f"The tokenizer {name} has no mask token; choose an encoder that was trained with one, such as "
                "BERT, RoBERTa, DeBERTa, MPNet or ModernBERT."
            )
        prefix, suffix = _frame(tokenizer, name)
        mask = tokenizer.added_tokens_decoder.get(int(tokenizer.mask_token_id))
        return cls(
            backend=tokenizer.backend_tokenizer,
            name=name,
            mask_id=int(tokenizer.mask_token_id),
            unknown_id=tokenizer.unk_token_id,
            separator_id=tokenizer.sep_token_id,
            pad_id=int(tokenizer.pad_token_id or 0),
            special_ids=frozenset(tokenizer.all_special_ids) - {tokenizer.unk_token_id},
            prefix=prefix,
            suffix=suffix,
            mask_strips=(bool(mask and mask.lstrip), bool(mask and mask.rstrip)),
        )

    def to_json(self) -> dict[str, Any]:
        """All but the tokenizer itself, as plain JSON."""
        data = {key: value for key, value in asdict(self._without_backend()).items() if key != "backend"}
        return {**data, "special_ids": sorted(self.special_ids)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], backend: Any) -> Vocabulary:
        """The vocabulary that :meth:`to_json` wrote, with its tokenizer."""
        lists = {key: tuple(data[key]) for key in ("prefix", "suffix", "mask_strips")}
        return cls(**{**data, **lists, "special_ids": frozenset(data["special_ids"]), "backend": backend})

    def _without_backend(self) -> Vocabulary:
        return Vocabulary(**{**self.__dict__, "backend": None})  # asdict would copy it


def _frame(tokenizer: PreTrainedTokenizerBase, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The special tokens that a tokenizer puts before and after a text."""
    encoded = tokenizer("a", return_special_tokens_mask=True)
    ids: list[int] = encoded["input_ids"]
    special: list[int] = encoded["special_tokens_mask"]
    if all(special):
        raise MaskMatchError(f"The tokenizer {name} makes nothing of the text 'a'.")
    first, last = special.index(0), len(special) - 1 - special[::-1].index(0)
    return tuple(ids[:first]), tuple(ids[last + 1 :])
