"""LabelReader: tokenizes and encodes label texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from maskmatch.prompts import FieldText, tokenize_label_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from maskmatch.labels import LabelText
    from maskmatch.model.matching import MatchingModel
    from maskmatch.prompts import PromptTokenizer, TokenizedPrompts


@dataclass(frozen=True)
class LabelReader:
    """Tokenizes and encodes label texts; what label sources read with."""

    model: MatchingModel
    tokenizer: PromptTokenizer

    def label_prompts(self, texts: Sequence[LabelText]) -> TokenizedPrompts:
        """Names and phrases in the label prompt, examples in the input prompt."""
        return tokenize_label_texts(self.tokenizer, self.model.settings, texts)

    def encode(self, prompts: TokenizedPrompts) -> torch.Tensor:
        """The vectors of label texts: (F, masks, dim)."""
        return self.model.encode(prompts, labels=True)


def read_origins(model: MatchingModel, tokenizer: PromptTokenizer) -> None:
    """Read the empty prompts, whose state is subtracted from all vectors if they are debiased.

    They are read once, before training, so that training and prediction subtract the same.
    """
    config = model.settings
    model.input_origin = model.label_origin = None
    if config.debias in ("inputs", "both"):
        empty = dict.fromkeys(config.input_fields, FieldText(""))
        model.input_origin = model.encode(tokenizer.pooled(config.prompts, [empty]))[0]  # (masks, dim)
    if config.debias in ("labels", "both"):
        empty = dict.fromkeys(config.label_prompt.fields, FieldText(""))
        prompts = tokenizer.pooled(config.label_prompts, [empty])
        model.label_origin = model.encode(prompts, labels=True)[0]  # (masks, dim)
