"""The methods as rows of one table: where the input vector and the label vectors come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from maskmatch.config.settings import Settings, setting
from maskmatch.config.similarity import SimilarityConfig
from maskmatch.errors import MaskMatchError, did_you_mean

LabelSource = Literal["prompt", "matrix", "verbalizer"]
Readout = Literal["mask", "cls", "mean", "max", "mask-mean"]
InputReadout = Literal["mask", "cls", "mean", "max", "mask-mean", "pair"]

AT_MASKS = ("mask", "mask-mean")
"""The read-outs that need a mask and give a vector per mask."""

COSINE = SimilarityConfig.of("cosine")
DOT = SimilarityConfig.of("dot")

DEFAULT_RATE = 2e-4
"""The learning rate of most methods."""


@dataclass(frozen=True)
class Method(Settings):
    """A row of the table of methods.

    A method of your own is a row with other cells::

        replace(METHODS["semantic-matching"], name="by their maximum", input_readout="max", label_readout="max")
    """

    name: str = setting(help="The method's name.")
    input_readout: InputReadout = setting(
        help="Where the input vector is read: at the mask, at the first token (cls), as the mean or maximum over all "
        "tokens, as the mask and the mean in equal parts (mask-mean); or pair: at one mask for each side of a pair, "
        "with their difference and distance.",
    )
    label_source: LabelSource = setting(
        help="Where label vectors come from: prompt (the encoder reads the label's prompt), matrix (a learned vector "
        "per label), verbalizer (the encoder's word embeddings of the label's words).",
    )
    label_readout: Readout = setting("mask", help="Where a label's vector is read, if the encoder reads its prompt.")
    transform: bool = setting(
        False,
        help="Whether the input vector goes through the head of a masked language model: the encoder's own if labels "
        "are words and the checkpoint has one, else a new one.",
    )
    similarity: SimilarityConfig = setting(COSINE, help="The default similarity.")
    learning_rate: float = setting(DEFAULT_RATE, above=0, help="The default peak learning rate of the encoder.")
    prompted: bool = setting(
        False, help="Whether texts and labels are read in prompts with a mask even if no vector is read at a mask."
    )

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Method:
        """The method that :meth:`to_json` wrote."""
        return cls(**{**data, "similarity": SimilarityConfig(**data["similarity"])})

    @property
    def input_masked(self) -> bool:
        """Whether the input prompt needs a mask."""
        return self.prompted or self.reads_masks

    @property
    def reads_masks(self) -> bool:
        """Whether the input vector is read at masks."""
        return self.input_state in AT_MASKS

    @property
    def input_state(self) -> Readout:
        """The read-out of the encoder that the input vector is made of."""
        return "mask" if self.input_readout == "pair" else self.input_readout

    @property
    def reads_pairs(self) -> bool:
        """Whether the two sides of a pair are read at one mask each."""
        return self.input_readout == "pair"

    @property
    def label_masked(self) -> bool:
        """Whether the label prompt needs a mask."""
        return self.label_source == "prompt" and (self.prompted or self.label_readout in AT_MASKS)

    @property
    def reads_labels(self) -> bool:
        """Whether label vectors are computed from words, so that labels can be added without training."""
        return self.label_source != "matrix"

    @property
    def reads_words(self) -> bool:
        """Whether a label is scored as a word at the mask (a verbalizer), instead of a text that the encoder reads."""
        return self.label_source == "verbalizer"

    @property
    def has_word_head(self) -> bool:
        """Whether the method scores words at a mask and so can use the head of a masked language model."""
        return self.reads_words and self.transform


METHODS = {
    method.name: method
    for method in (
        Method("fine-tuning", "cls", "matrix", similarity=DOT),
        Method("soft-prompt", "mask", "matrix", similarity=DOT),
        Method("prompt-tuning", "mask", "verbalizer", transform=True, similarity=DOT),
        Method("semantic-matching", "mean", "prompt", label_readout="mean"),
        Method("mean-matching", "mean", "prompt", label_readout="mean", prompted=True),
        Method("mask-mean-matching", "mask-mean", "prompt", label_readout="mask-mean"),
        Method("mask-matching", "mask", "prompt"),
        # A few pairs teach mostly the map that compares the sides. The encoder itself should change little.
        Method("pair-matching", "pair", "prompt", learning_rate=DEFAULT_RATE / 10),
    )
}

ANY_TEXT_METHODS = tuple(name for name, method in METHODS.items() if not method.reads_pairs)
"""The methods that can read the texts of every task."""


def find_method(method: str | Method) -> Method:
    """Find a method by its name; a Method is returned as it is."""
    if isinstance(method, Method):
        return method
    if method not in METHODS:
        hint = did_you_mean(method, METHODS)
        raise MaskMatchError(f"There is no method {method!r}; choose one of {', '.join(METHODS)}.{hint}")
    return METHODS[method]
