"""The methods of the field as rows of one table: where the input vector and the label vectors come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from maskmatch.errors import MaskMatchError
from maskmatch.readout import InputReadout, Readout
from maskmatch.settings import added_setting
from maskmatch.similarity_config import SimilarityConfig

LabelSource = Literal["prompt", "matrix", "verbalizer"]

COSINE = SimilarityConfig.of("cosine")
DOT = SimilarityConfig.of("dot")

USUAL_RATE = 2e-4
"""The learning rate that suits most methods."""


@dataclass(frozen=True)
class Method:
    """One row of the table.

    A row of your own is one with other cells::

        replace(METHODS["semantic-matching"], name="by their maximum", input_readout="max", label_readout="max")

    Args:
        name: The method's name.
        input_readout: Where the input vector is read: ``"mask"``, ``"cls"`` (the first token), ``"mean"`` or ``"max"``
            (over all tokens); or ``"pair"``: at two masks, one for each side of a pair, with their difference and
            distance beside them, and at a third one of the pair as a whole if there is one.
        label_source: Where label vectors come from: ``"prompt"``: the encoder reads each label's prompt;
            ``"matrix"``: a learned vector per label; ``"verbalizer"``: the encoder's word embeddings of the
            label's words.
        label_readout: Where a label's vector is read, if the encoder reads its prompt.
        transform: Whether the input vector goes through the head of a masked language model: the encoder's own, where
            label vectors are words and its checkpoint has one, and else a new one.
        similarity: How the two are compared, unless the user says otherwise.
        learning_rate: The peak learning rate of the encoder, unless the user says otherwise.
    """

    name: str
    input_readout: InputReadout
    label_source: LabelSource
    label_readout: Readout = "mask"
    transform: bool = False
    similarity: SimilarityConfig = COSINE
    learning_rate: float = added_setting(USUAL_RATE)

    def __post_init__(self) -> None:
        for name, value, choices in (
            ("input_readout", self.input_readout, get_args(InputReadout)),
            ("label_source", self.label_source, get_args(LabelSource)),
            ("label_readout", self.label_readout, get_args(Readout)),
        ):
            if value not in choices:
                raise MaskMatchError(
                    f"The method {self.name!r} has {value!r} as its {name}; choose one of {', '.join(choices)}."
                )

    @property
    def input_masked(self) -> bool:
        """Whether the input prompt needs a mask."""
        return self.input_state == "mask"

    @property
    def input_state(self) -> Readout:
        """Which states of the encoder the input vector is made of."""
        return "mask" if self.input_readout == "pair" else self.input_readout

    @property
    def reads_pairs(self) -> bool:
        """Whether there is a mask for each side of a pair, in one input prompt or in one each."""
        return self.input_readout == "pair"

    @property
    def label_masked(self) -> bool:
        """Whether the label prompt needs a mask."""
        return self.label_source == "prompt" and self.label_readout == "mask"

    @property
    def reads_labels(self) -> bool:
        """Whether label vectors follow from words, so that labels can be added without training."""
        return self.label_source != "matrix"

    @property
    def reads_words(self) -> bool:
        """Whether labels are the words that they say at a mask, rather than texts that the encoder reads."""
        return self.label_source == "verbalizer"

    @property
    def has_word_head(self) -> bool:
        """Whether the method scores words at a mask as masked language models do, so that it can use their head."""
        return self.reads_words and self.transform


METHODS = {
    method.name: method
    for method in (
        Method("fine-tuning", "cls", "matrix", similarity=DOT),
        Method("soft-prompt", "mask", "matrix", similarity=DOT),
        Method("prompt-tuning", "mask", "verbalizer", transform=True, similarity=DOT),
        Method("semantic-matching", "mean", "prompt", label_readout="mean"),
        Method("mask-matching", "mask", "prompt"),
        # Nearly all that a few pairs can teach is in the map that compares the sides, not in how each of them is read.
        Method("pair-matching", "pair", "prompt", learning_rate=USUAL_RATE / 10),
    )
}

ANY_TEXT_METHODS = tuple(name for name, method in METHODS.items() if not method.reads_pairs)
"""The methods that suit the texts of every task; what a comparison compares unless others are named."""


def find_method(method: str | Method) -> Method:
    """A method by its name; a Method of the user's own is taken as it is."""
    if isinstance(method, Method):
        return method
    if method not in METHODS:
        raise MaskMatchError(f"There is no method {method!r}; choose one of {', '.join(METHODS)}.")
    return METHODS[method]
