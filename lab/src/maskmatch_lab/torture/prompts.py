"""Random prompts and texts: the masks are where the prompt has them, whatever a text contains."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch import MaskMatchError
from maskmatch.prompts import FieldText, Prompt, PromptTokenizer
from maskmatch.testing.tiny_encoders import FAMILIES, tiny_tokenizer

if TYPE_CHECKING:
    import random

    from maskmatch_lab.torture.campaign import Tally
    from maskmatch_lab.torture.material import Material

TEMPLATE_PIECES = (
    "{text}", "{mask}", "{text_b}", "{label}", "{sep}", "{mask*3}", "{mask*0}", "{mask*100}", "{", "}", "{{", "}}",
    "{}", "{text!r}", "{text:>10}", "{0}", "{text.x}", "{text[0]}", " ", "  ", "\n", "It is", ".", "[MASK]", "<mask>",
    "</s>", "é", "\0", "\ud800",
)  # fmt: skip
TEXT_PIECES = (
    "[MASK]", "<mask>", "[SEP]", "</s>", "[CLS]", "<s>", "[PAD]", "<pad>", "{mask}", "{text}", "refund", "card", " ",
    "\n", "\t", "é", "e\u0301", "東京", "🙂", "👩‍👧", "\0", "\u200b", "\u202e", "\ufffd", "x" * 300, "word " * 200,
)  # fmt: skip


@cache
def _tokenizer(family: str) -> Any:
    return tiny_tokenizer(family)


def prompts(_: Material, tally: Tally) -> None:
    """Random templates with random texts, on every tokenizer family."""
    for random in tally.trials():
        template = "".join(random.choice(TEMPLATE_PIECES) for _ in range(random.randrange(1, 7)))
        if random.random() < 0.5:  # most random templates are wrong
            template = f"{{text}} {template.replace('{', '').replace('}', '')} {{mask}}" + random.choice(
                ("", ".", " {mask}", " {text_b}")
            )
        with tally.guarded(f"template {template!r}"):
            _try_prompt(template, random, tally)


def _try_prompt(template: str, random: random.Random, tally: Tally) -> None:
    try:
        prompt = Prompt(template)
    except MaskMatchError:
        tally.ended("template refused")
        return
    family = random.choice(FAMILIES)
    most = random.choice((8, 12, 32, 64))
    tokenizer = PromptTokenizer(_tokenizer(family), most)
    rows = [{name: FieldText(_text(random)) for name in prompt.fields} for _ in range(3)]
    try:
        found = tokenizer(prompt, rows)
    except MaskMatchError:
        tally.ended("prompt too long")
        return
    mask, wrong = tokenizer.vocabulary.mask_id, None
    for ids, places in zip(found.input_ids, found.mask_positions, strict=True):
        if len(ids) > most:
            wrong = f"{template!r} on {family}: {len(ids)} tokens, not at most {most}"
        if int(np.sum(ids == mask)) != prompt.masks or not all(ids[place] == mask for place in places):
            wrong = f"{template!r} on {family}: masks are not where the prompt has them"
    tally.ended("tokenized", unless=wrong)


def _text(random: random.Random) -> str:
    return "".join(random.choice(TEXT_PIECES) for _ in range(random.randrange(1, 9)))
