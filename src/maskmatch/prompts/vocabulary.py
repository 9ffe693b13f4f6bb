"""A tokenizer with its special tokens, as prompts need them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transformers import PreTrainedTokenizerBase


MOST_IDS = 2**31
"""Token ids are 32-bit integers."""


@dataclass(frozen=True)
class Vocabulary:
    """A tokenizer of the tokenizers library with its special tokens. It works without transformers, which loads slowly.

    Attributes:
        backend: The tokenizer.
        name: Its name in error messages.
        mask_id: The id of the mask token.
        unknown_id: The id of the unknown token, if there is one.
        separator_id: The id of the separator token, if there is one.
        pad_id: The id of the padding token.
        special_ids: The ids of all special tokens except the unknown token.
        prefix: The special tokens before a text, such as [CLS].
        suffix: The special tokens after a text, such as [SEP].
        mask_strips: Whether the mask token strips the white space before it, and after it.
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
        """The vocabulary of a fast tokenizer of transformers; raise if it is not fast or has no mask token."""
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
        prefix, suffix = _prefix_and_suffix(tokenizer, name)
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
        """All attributes except the tokenizer, as JSON-compatible values."""
        data = {key: value for key, value in asdict(self._without_backend()).items() if key != "backend"}
        return {**data, "special_ids": sorted(self.special_ids)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], backend: Any) -> Vocabulary:
        """Restore a vocabulary from :meth:`to_json` and its tokenizer."""
        lists = {key: tuple(data[key]) for key in ("prefix", "suffix", "mask_strips")}
        found = cls(**{**data, **lists, "special_ids": frozenset(data["special_ids"]), "backend": backend})
        optional = [each for each in (found.unknown_id, found.separator_id) if each is not None]
        for id_ in (found.mask_id, found.pad_id, *found.prefix, *found.suffix, *found.special_ids, *optional):
            if not isinstance(id_, int) or not 0 <= id_ < MOST_IDS or backend.id_to_token(id_) is None:
                raise MaskMatchError(
                    f"The vocabulary names the special token {id_!r}, which its tokenizer does not have."
                )
        if len(found.mask_strips) != 2:
            raise MaskMatchError(f"The vocabulary has {found.mask_strips!r} for what the mask strips, not two values.")
        return found

    def _without_backend(self) -> Vocabulary:
        return Vocabulary(**{**self.__dict__, "backend": None})  # asdict would copy it


def _prefix_and_suffix(tokenizer: PreTrainedTokenizerBase, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The special tokens that a tokenizer adds before and after a text."""
    encoded = tokenizer("a", return_special_tokens_mask=True)
    ids: list[int] = encoded["input_ids"]
    special: list[int] = encoded["special_tokens_mask"]
    if all(special):
        raise MaskMatchError(f"The tokenizer {name} returns no tokens for the text 'a'; choose another model.")
    first, last = special.index(0), len(special) - 1 - special[::-1].index(0)
    return tuple(ids[:first]), tuple(ids[last + 1 :])
