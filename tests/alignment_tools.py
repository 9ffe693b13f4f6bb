"""Shared data and helpers of the alignment tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import normalize

from maskmatch.config.matcher import MatcherConfig
from maskmatch.config.methods import METHODS
from maskmatch.data import LabelledTexts
from maskmatch.model.matching import MatchingModel
from maskmatch.prompts import Prompt, PromptTokenizer, field_texts

if TYPE_CHECKING:
    from maskmatch.model.encoder import Encoder

Tiny = Callable[..., Path]

BRIEF: dict[str, Any] = {"steps": 1, "matching_steps": 1, "draws": 1, "rank": 2, "learning_rate": 1e-2}
"""The smallest possible alignment."""

BANK = LabelledTexts(
    "bank",
    "intent",
    (("refund", "money back"), ("card lost",), ("exchange rate", "rate", "a question of money")),
    (("where is my parcel", "it is still pending"), ("block it at once",), ("two weeks ago", "this is yesterday")),
)
PAIRS = LabelledTexts(
    "pairs",
    "paraphrase",
    (("same",), ("different", "two words")),
    (
        ({"text": "the card", "text_b": "my card"}, {"text": "a jar", "text_b": "the jar"}),
        ({"text": "the refund", "text_b": "newspaper"},),
    ),
)


def vectors_of(encoder: Encoder, texts: list[str], method: str, template: str) -> torch.Tensor:
    """Return the vectors of prompted texts, with unit norm: (n, dim)."""
    chosen = METHODS[method]
    model = MatchingModel(encoder, MatcherConfig.make(max_length=encoder.limit, method=method))
    prompts = PromptTokenizer(encoder.tokenizer, encoder.limit)(
        Prompt(template, masked=chosen.input_masked), [field_texts(text, ("text",)) for text in texts]
    )
    return normalize(model.encode(prompts).mean(dim=1), dim=-1)


def equal_weights(first: Encoder, second: Encoder) -> bool:
    one, other = first.model.state_dict(), second.model.state_dict()
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
