"""The words that an encoder's own language-model head would put at the mask of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from maskmatch.config.matcher import MatcherConfig
from maskmatch.errors import MaskMatchError
from maskmatch.model.encoder import find_model
from maskmatch.model.matching import MatchingModel
from maskmatch.model.mlm_head import Transform, pretrained_head
from maskmatch.prompts import PromptTokenizer, tokenize_texts

if TYPE_CHECKING:
    from maskmatch.model.encoder import Encoder

WORDS = 8


@torch.inference_mode()
def mask_words(encoder: Encoder, config: MatcherConfig, text: Any, count: int = WORDS) -> tuple[tuple[str, float], ...]:
    """The most probable words at the mask of a text, with their probabilities; empty if the encoder has no such head.

    The head is that of the pretrained checkpoint, on the states of the encoder as it is now. With several masks,
    probabilities are averaged.

    Args:
        encoder: The encoder.
        config: The prompt; if it has no mask, the task's prompt is used.
        text: A string, or a dict of fields.
        count: How many words.
    """
    try:
        folder, source = find_model(encoder.source)
    except MaskMatchError:  # trained on another machine, for instance
        return ()
    head = pretrained_head(folder, source)
    if head is None:
        return ()
    prompt = config.prompt.template if config.prompt.masks else None
    at_mask = MatcherConfig.make(task=config.task, prompt=prompt, method="soft-prompt", max_length=config.max_length)
    model = MatchingModel(encoder, at_mask)
    prompts = tokenize_texts(PromptTokenizer(encoder.tokenizer, config.max_length), at_mask, [text], None)
    states = model.encode(prompts)[0]  # (masks, dim)
    embeddings: Any = encoder.model.get_input_embeddings()
    transform = Transform(states.shape[-1], embeddings, head.config).to(states.device).eval()
    transform.take(head.weights)
    ids = torch.arange(embeddings.num_embeddings, device=states.device)
    scores = transform(states[None])[0] @ transform.words(ids, embeddings.weight).T  # (masks, vocabulary)
    best = scores.softmax(dim=-1).mean(dim=0).topk(min(count, len(ids)))
    words = (str(encoder.tokenizer.decode([place])).strip() for place in best.indices.tolist())
    return tuple((word, round(value, 4)) for word, value in zip(words, best.values.tolist(), strict=True))
