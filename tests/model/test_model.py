"""The one model: pooled groups against texts and labels read alone, losses worked by hand."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from maskmatch.config.matcher import MatcherConfig
from maskmatch.config.methods import ANY_TEXT_METHODS, Method
from maskmatch.config.similarity import SimilarityConfig
from maskmatch.labels import LabelSet
from maskmatch.labels.layout import LabelLayout
from maskmatch.labels.reading import READINGS
from maskmatch.model.encoder import TokenBatch, pad
from maskmatch.model.matching import MatchingModel
from maskmatch.prompts import FieldText, PromptTokenizer, TokenizedPrompts
from maskmatch.prompts.batches import length_groups
from maskmatch.testing.tiny_encoders import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from maskmatch.model.encoder import Encoder

TEXTS = [
    "Where is my refund? I sent the parcel back two weeks ago.",
    "card",
    "My card was lost at the station yesterday, please block it at once!",
    "the exchange rate",
    "",
]
LABELS = LabelSet.of(
    {
        "refund": ["money back", "it is still pending, two weeks ago"],
        "card_lost": "the card cannot be found, please block it",
        "exchange_rate": None,
    }
)
TARGETS = torch.tensor([0, 1, 1, 2, 0])


class Case:
    """A model with texts and labels, tokenised."""

    def __init__(self, encoder: Encoder, method: str | Method, multi_label: bool = False, **options: Any) -> None:
        config = MatcherConfig.make(max_length=48, method=method, multi_label=multi_label, **options)
        torch.manual_seed(0)
        self.model = MatchingModel(replace(encoder, model=copy.deepcopy(encoder.model)), config)
        self.model.labels.set_count(len(LABELS))
        self.layout = LabelLayout.of([READINGS[self.model.method.label_source].texts(label) for label in LABELS.labels])
        tokenize = PromptTokenizer(encoder.tokenizer, config.max_length)
        self.texts = tokenize(config.prompt, [{"text": FieldText(text)} for text in TEXTS])
        self.labels = tokenize(config.label_prompt, [{"label": FieldText(text)} for text in self.layout.texts])
        self.words = tokenize.words(self.layout.texts)
        self.source = config.method.label_source
        self.pad_id = int(encoder.tokenizer.pad_token_id)  # type: ignore[arg-type]

    def groups(self, ratio: float) -> list[TokenBatch]:
        pooled = self.texts.followed_by(self.labels) if self.source == "prompt" else self.texts
        return [pad(pooled, np.sort(rows), self.pad_id) for rows in length_groups(pooled.lengths, ratio=ratio)]

    def one_by_one(self, prompts: TokenizedPrompts, read: Callable[[TokenBatch], torch.Tensor]) -> torch.Tensor:
        return torch.cat([read(pad(prompts, np.array([row]), self.pad_id)) for row in range(len(prompts))])

    def separately(self) -> torch.Tensor:
        """The scores, each text and each label read alone."""
        inputs = self.one_by_one(self.texts, self.model.input_vectors)
        encoded = self.one_by_one(self.labels, self.model.label_vectors) if self.source == "prompt" else None
        flat = self.model.labels(encoded, self.words if self.source == "verbalizer" else ())  # (F, masks, dim)
        labels = flat[torch.from_numpy(self.layout.table)]  # (K, phrases, masks, dim)
        scores: torch.Tensor = self.model.similarity(inputs, labels, torch.from_numpy(self.layout.present))
        return scores

    def pooled(self, targets: torch.Tensor, ratio: float = 1.3) -> dict[str, torch.Tensor]:
        words: Sequence[Sequence[int]] = self.words if self.source == "verbalizer" else ()
        output: dict[str, torch.Tensor] = self.model(
            self.groups(ratio), len(TEXTS), targets=targets, layout=self.layout, words=words
        )
        return output


@pytest.mark.parametrize("ratio", [1.0, 1.3, 100.0])
@pytest.mark.parametrize("method", ANY_TEXT_METHODS)
@torch.no_grad()
def test_pooled_groups_give_the_loss_of_texts_and_labels_read_alone(
    encoder: Callable[[str], Encoder], method: str, ratio: float
) -> None:
    case = Case(encoder("bert"), method)
    output = case.pooled(TARGETS, ratio)
    scores = case.separately()
    assert output["scores"].shape == (len(TEXTS), len(LABELS))
    torch.testing.assert_close(output["scores"], scores, rtol=1e-4, atol=1e-4)
    expected = -scores.log_softmax(dim=1)[torch.arange(len(TEXTS)), TARGETS].mean()
    torch.testing.assert_close(output["loss"], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("method", ["mask-matching", "prompt-tuning"])
@torch.no_grad()
def test_every_family_of_encoders_serves(encoder: Callable[[str], Encoder], family: str, method: str) -> None:
    case = Case(encoder(family), method)
    torch.testing.assert_close(case.pooled(TARGETS)["scores"], case.separately(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("prompt", "label_prompt"),
    [
        ("{text} It is {mask}.", "{label} is {mask} and {mask} or {mask}."),
        ("{mask} {text} It is {mask}, {mask}.", "{label} is {mask}."),
        ("{text} {mask} {mask}", "{mask} {label} {mask}"),
    ],
)
@torch.no_grad()
def test_the_two_prompts_may_have_different_numbers_of_masks(
    encoder: Callable[[str], Encoder], prompt: str, label_prompt: str
) -> None:
    case = Case(encoder("roberta"), "mask-matching", prompt=prompt, label_prompt=label_prompt)
    for ratio in (1.0, 100.0):
        output = case.pooled(TARGETS, ratio)
        torch.testing.assert_close(output["scores"], case.separately(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "method",
    [
        Method("texts by mask, labels by mean", "mask", "prompt", label_readout="mean"),
        Method("texts by mean, labels by mask", "mean", "prompt", label_readout="mask"),
        Method("texts by max, labels by cls", "max", "prompt", label_readout="cls"),
    ],
    ids=lambda method: method.name,
)
@torch.no_grad()
def test_the_two_sides_may_be_read_in_different_ways(encoder: Callable[[str], Encoder], method: Method) -> None:
    case = Case(encoder("bert"), method)
    torch.testing.assert_close(case.pooled(TARGETS, 100.0)["scores"], case.separately(), rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_the_loss_with_several_labels_a_text_is_summed_over_labels(encoder: Callable[[str], Encoder]) -> None:
    similarity = SimilarityConfig(kind="cosine", temperature=0.2)
    case = Case(encoder("bert"), "mask-matching", multi_label=True, similarity=similarity)
    targets = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 1], [0, 0, 1]], dtype=np.float32)
    output = case.pooled(torch.from_numpy(targets))
    scores = case.separately().double().numpy()
    probabilities = 1 / (1 + np.exp(-scores))
    losses = -(targets * np.log(probabilities) + (1 - targets) * np.log(1 - probabilities))
    assert output["loss"].item() == pytest.approx(losses.sum(axis=1).mean(), rel=1e-4)
    with_offset = case.model.similarity.offset
    assert with_offset is not None
    one_label = Case(encoder("bert"), "mask-matching", similarity=similarity)
    np.testing.assert_allclose(scores, one_label.separately().numpy() - 0.5 / 0.2, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("method", ANY_TEXT_METHODS)
def test_everything_that_is_to_learn_learns(encoder: Callable[[str], Encoder], method: str) -> None:
    similarity = SimilarityConfig(kind="cosine", temperature=0.1, learn_temperature=True)
    case = Case(encoder("bert"), method, similarity=similarity)
    case.pooled(TARGETS)["loss"].backward()
    still = [
        name
        for name, parameter in case.model.named_parameters()
        if parameter.grad is None or not parameter.grad.abs().sum() > 0
    ]
    # A key's bias moves all scores of a query alike, so a softmax does not feel it.
    assert [name for name in still if not name.endswith("key.bias")] == []


def test_a_step_against_the_gradient_lowers_the_loss(encoder: Callable[[str], Encoder]) -> None:
    for method in ANY_TEXT_METHODS:
        case = Case(encoder("bert"), method)
        before = case.pooled(TARGETS)["loss"]
        before.backward()
        with torch.no_grad():
            for parameter in case.model.parameters():
                if parameter.grad is not None:
                    parameter.add_(parameter.grad, alpha=-1e-3)
            assert case.pooled(TARGETS)["loss"] < before
