"""Label texts in their prompts: names and phrases in the label prompt, examples in the input prompt."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from maskmatch.labels.centroids import check_examples
from maskmatch.prompts.fields import FieldText, tokenize_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.labels import LabelText
    from maskmatch.prompts.batches import TokenizedPrompts
    from maskmatch.prompts.tokenizer import PromptTokenizer

logger = logging.getLogger("maskmatch")

MOST_SHOWN = 3
"""How many label texts a warning shows."""


def tokenize_label_texts(
    tokenizer: PromptTokenizer, config: MatcherConfig, texts: Sequence[LabelText]
) -> TokenizedPrompts:
    """Names and phrases in the label prompt, examples in the input prompt.

    Args:
        tokenizer: Turns prompts into tokens.
        config: The prompts.
        texts: The label texts.
    """
    names = [place for place, text in enumerate(texts) if isinstance(text, str)]
    examples = [text.text for text in texts if not isinstance(text, str)]
    prompts = tokenizer.pooled(config.label_prompts, [{"label": FieldText(str(texts[place]))} for place in names])
    if examples:
        check_examples(config)
        others = sorted(set(range(len(texts))) - set(names))
        read = tokenize_texts(tokenizer, replace(config, long_texts="cut"), examples, None)
        prompts = prompts.followed_by(read).select(np.argsort([*names, *others]))
    if prompts.cut.any():
        logger.warning("%d label texts were longer than the maximum length and were truncated.", prompts.cut.sum())
    _warn_unknown(texts, prompts)
    return prompts


def _warn_unknown(texts: Sequence[LabelText], prompts: TokenizedPrompts) -> None:
    """Warn about label texts that the encoder cannot read: they would all look the same to it."""
    unknown = [str(texts[row]) for row in np.flatnonzero(prompts.is_unknown).tolist()]
    if unknown:
        shown = ", ".join(repr(text) for text in unknown[:MOST_SHOWN])
        more = f" and {len(unknown) - MOST_SHOWN} more" if len(unknown) > MOST_SHOWN else ""
        logger.warning(
            "Most words of the label texts %s%s are unknown to the encoder, so it cannot tell them from others. The "
            "default reads English; for other languages choose an encoder that reads them.",
            shown,
            more,
        )
