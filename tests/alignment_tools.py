"""What the tests of alignment share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import normalize

from maskmatch.data import LabelledTexts
from maskmatch.encoder import Encoder, encode_prompts
from maskmatch.methods import METHODS
from maskmatch.model import MatchingModel
from maskmatch.prompts import Prompt, PromptTokenizer, field_texts

Tiny = Callable[..., Path]

BRIEF: dict[str, Any] = {"steps": 1, "matching_steps": 1, "draws": 1, "rank": 2, "learning_rate": 1e-2}
"""The least that there can be of an alignment."""

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
    """The vectors of prompted texts, of length 1: (n, dim)."""
    chosen = METHODS[method]
    model = MatchingModel(encoder.model, chosen, chosen.similarity, labels=1, multi_label=False).eval()
    prompts = PromptTokenizer(encoder.tokenizer, encoder.limit)(
        Prompt(template, masked=chosen.input_masked), [field_texts(text, ("text",)) for text in texts]
    )
    read: Callable[[Any], torch.Tensor] = model.input_vectors
    found = encode_prompts(prompts, read, pad_id=encoder.pad_id, device=encoder.model.device)
    return normalize(found.mean(dim=1), dim=-1)


def equal_weights(first: Encoder, second: Encoder) -> bool:
    one, other = first.model.state_dict(), second.model.state_dict()
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
