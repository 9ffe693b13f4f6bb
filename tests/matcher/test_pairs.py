"""Pairs that are read at two masks, one for each side, with their difference and distance."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch.nn.functional import layer_norm
from transformers import TrainerCallback

from maskmatch import METHODS, ExportedMatcher, MaskMatcher, MaskMatchError, export
from maskmatch.config.matcher import MatcherConfig
from maskmatch.config.tasks import TASKS, Task
from maskmatch.model.readout import PAIR_DIRECTION, PAIR_STEP, PairReadout
from maskmatch.training.data import training_data
from toy_data import A_LITTLE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Tiny = Callable[..., Path]

LABELS = ["same", "other"]
PAIRS = [
    {"text": "The card is lost.", "text_b": "Where is my card?"},
    {"text": "refund the parcel", "text_b": "It is about the exchange rate; this is a question of money."},
    {"text": "money", "text_b": "a question"},
    {"text": "My card was lost at the station yesterday", "text_b": "block it"},
]
TRUTH = ["same", "other", "same", "other"]


def test_difference_and_distance_are_read_beside_the_two_sides() -> None:
    torch.manual_seed(0)
    readout, states = PairReadout(6), torch.randn(4, 2, 6)
    torch.testing.assert_close(readout(states), states.mean(dim=1, keepdim=True))
    with torch.no_grad():
        readout.weight.normal_()
    first, second = states.unbind(dim=1)
    u, v = layer_norm(first, (6,)), layer_norm(second, (6,))
    distance = ((u - v) ** 2).mean(dim=1, keepdim=True)
    parts = [(u - v) * PAIR_DIRECTION / 6, distance, torch.ones(4, 1)]
    weights = readout.weight.split([6, 1, 1], dim=1)
    learned = sum(part @ weight.T for part, weight in zip(parts, weights, strict=True))
    whole = (first + second) / 2
    expected = whole + PAIR_STEP / 6**0.5 * whole.norm(dim=1, keepdim=True) * learned
    torch.testing.assert_close(readout(states)[:, 0], expected)


def test_of_three_masks_the_first_is_that_of_the_pair_as_a_whole() -> None:
    torch.manual_seed(0)
    readout, states = PairReadout(6), torch.randn(4, 3, 6)
    torch.testing.assert_close(readout(states), states[:, :1])
    with torch.no_grad():
        readout.weight.normal_()
    mean, whole = states[:, 1:].mean(dim=1, keepdim=True), states[:, :1]
    learned = (readout(states[:, 1:]) - mean) / mean.norm(dim=-1, keepdim=True)
    torch.testing.assert_close(readout(states), whole + whole.norm(dim=-1, keepdim=True) * learned)


def vectors(matcher: MaskMatcher) -> Any:
    """The input vectors of the pairs, (n, 1, dim)."""
    prediction = matcher.pipeline
    return prediction.all_vectors(prediction.tokenize(PAIRS))


SIDES = ["{text} is {mask}.", "So {text_b} is {mask}."]
WHOLE = "{text} {text_b} {mask}"
WHOLE = "{text} and {text_b} are {mask}."
ONE = '"{text}" is {mask}, "{text_b}" is {mask}.'


@pytest.mark.parametrize("prompt", [SIDES, None])
def test_sides_that_are_read_apart_do_not_see_each_other(tiny: Tiny, prompt: list[str] | None) -> None:
    pairs = MaskMatcher.from_pretrained(tiny("bert"), LABELS, task="nli", method="pair-matching", prompt=prompt)
    assert pairs.config.fields == ("text", "text_b")
    first, second = (
        vectors(MaskMatcher.from_pretrained(tiny("bert"), LABELS, task="nli", prompt=side))
        for side in prompt or TASKS["nli"].pair_prompts
    )
    np.testing.assert_allclose(vectors(pairs), (first + second) / 2, atol=1e-5)


@pytest.mark.parametrize(("prompt", "same_as"), [([WHOLE, *SIDES], WHOLE), (ONE, ONE)])
def test_before_training_it_is_matching_by_the_mask_of_the_pair_or_by_the_mean_of_both(
    tiny: Tiny, prompt: str | list[str], same_as: str
) -> None:
    pairs = MaskMatcher.from_pretrained(tiny("bert"), LABELS, task="nli", method="pair-matching", prompt=prompt)
    plain = MaskMatcher.from_pretrained(tiny("bert"), LABELS, task="nli", method="mask-matching", prompt=same_as)
    np.testing.assert_allclose(pairs.predict_proba(PAIRS), plain.predict_proba(PAIRS), atol=1e-5)


def test_how_far_the_sides_are_apart_is_read_whatever_their_size() -> None:
    readout = PairReadout(16)
    with torch.no_grad():
        readout.weight[:, -2] = 1.0  # of the distance alone
    side, other = torch.randn(2, 16, generator=torch.Generator().manual_seed(0))
    whole = torch.ones(16)
    states = torch.stack([torch.stack([whole, side, side + share * other]) for share in (0.0, 0.3, 0.6)])
    added = readout(states)[:, 0] - whole
    assert added[0].abs().max() < 1e-5
    assert (added[1] > 1e-3).all()
    assert (added[2] > added[1]).all()
    torch.testing.assert_close(readout(states * 7)[:, 0] - whole * 7, added * 7, atol=1e-3, rtol=1e-3)


def test_the_encoder_of_pairs_has_no_dropout(tiny: Tiny) -> None:
    """Dropout would set two sides apart that say the same, each by noise of its own."""
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, task="nli", method="pair-matching", prompt=SIDES)
    data = training_data(matcher.bank, PAIRS, TRUTH)
    model = matcher.model.train()
    once, again = (model(**data.batch(range(4)))["scores"] for _ in range(2))
    torch.testing.assert_close(once, again)
    seen = []

    class Look(TrainerCallback):
        def on_step_end(self, *args: Any, model: Any, **options: Any) -> None:
            dropouts = [module for module in model.encoder.modules() if isinstance(module, torch.nn.Dropout)]
            seen.append(model.training and dropouts and not any(module.training for module in dropouts))

    matcher.fit(PAIRS, TRUTH, dev=(PAIRS, TRUTH), callbacks=[Look()], **A_LITTLE)
    assert seen
    assert all(seen), "also after a look at dev data"
    plain = MaskMatcher.from_pretrained(tiny("bert"), LABELS, task="nli", method="mask-matching").model
    assert plain.train().encoder.training
    seen.clear()
    matcher.fit(PAIRS, TRUTH, callbacks=[Look()], dropout=True, **A_LITTLE)
    assert seen
    assert not any(seen), "unless the user asks for it"


@pytest.mark.parametrize("method", ["pair-matching", "mask-matching"])
def test_states_can_be_computed_twice_to_save_memory(tiny: Tiny, method: str) -> None:
    def probabilities(**arguments: Any) -> Any:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, task="nli", method=method)
        for module in matcher.encoder.model.modules():  # what is computed twice has to be the same twice
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        matcher.fit(PAIRS, TRUTH, arguments=arguments, **A_LITTLE)
        return matcher.predict_proba(PAIRS), matcher.encoder.model

    plain, _ = probabilities()
    saving, encoder = probabilities(gradient_checkpointing=True)
    assert encoder.is_gradient_checkpointing
    np.testing.assert_allclose(saving, plain, atol=1e-3)


def test_with_its_defaults_it_learns_whether_two_sides_say_the_same() -> None:
    words = ["money", "dog", "station", "music", "rain", "doctor"]
    pairs = [{"text": one, "text_b": other} for one in words for other in (one, words[words.index(one) - 2])]
    truth = ["same", "other"] * len(words)
    matcher = MaskMatcher.from_pretrained(task="paraphrase").fit(pairs, truth)
    assert matcher.config.method.name == "pair-matching"
    assert matcher.training_ is not None
    assert matcher.training_.config["learning_rate"] == 2e-5
    others = [{"text": "bread", "text_b": "bread"}, {"text": "bread", "text_b": "football"}]
    assert matcher.predict([*pairs, *others]) == [*truth, "same", "other"]


@pytest.mark.parametrize(
    "method",
    ["pair-matching", replace(METHODS["pair-matching"], name="both sides", label_source="matrix")],
    ids=["labels by name", "a matrix"],
)
@pytest.mark.parametrize("prompt", [ONE, SIDES, [WHOLE, *SIDES]], ids=["one prompt", "sides", "whole and sides"])
def test_it_is_trained_saved_and_exported(tiny: Tiny, tmp_path: Path, method: Any, prompt: Any) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, task="nli", method=method, prompt=prompt)
    share = {"example_share": 0} if method == "pair-matching" else {}
    matcher.fit(PAIRS, TRUTH, **A_LITTLE, **share)
    model = matcher.model
    assert model.pair is not None
    weights = model.pair.weight.detach().split([16, 1, 1], dim=1)
    assert all(float(weight.abs().max()) > 1e-4 for weight in weights), "difference and distance are learned"
    assert not model.is_pretrained("pair.weight")
    found = matcher.predict_proba(PAIRS)
    with torch.no_grad():
        data = training_data(matcher.bank, PAIRS, TRUTH)
        scores = model(**data.batch(range(4)))["scores"]
    np.testing.assert_allclose(found, scores.softmax(dim=1).numpy(), atol=1e-4)
    loaded = MaskMatcher.from_pretrained(matcher.save_pretrained(tmp_path / "model"))
    np.testing.assert_allclose(loaded.predict_proba(PAIRS), found, atol=1e-6)
    assert export(matcher, tmp_path / "export").is_close
    np.testing.assert_allclose(
        ExportedMatcher.from_pretrained(tmp_path / "export").predict_proba(PAIRS), found, atol=2e-5
    )
    assert export(matcher, tmp_path / "int8", int8=True).is_close


def test_a_task_with_a_mask_for_each_side_keeps_its_prompt() -> None:
    task = Task("own", "pairs", ("text", "text_b"), ONE, method="pair-matching")
    config = MatcherConfig.make(max_length=64, task=task)
    assert [prompt.template for prompt in config.prompts] == [ONE]


@pytest.mark.parametrize("task", ["nli", "paraphrase", "word-in-context"])
def test_tasks_of_pairs_read_both_sides_unless_there_is_a_prompt_of_the_users_own(task: str) -> None:
    assert MatcherConfig.make(max_length=64, task=task).method.name == "pair-matching"
    assert MatcherConfig.make(max_length=64, task=task, prompt=WHOLE).method.name == "mask-matching"
    assert MatcherConfig.make(max_length=64, task=task, prompt=SIDES, method="pair-matching").prompts[1:]
    seeing = MatcherConfig.make(max_length=64, task=task, label_prompt="{text_b} {label} {mask}")
    assert seeing.method.name == "mask-matching"
    renamed = MatcherConfig.make(max_length=64, task=task, label_prompt="{label}: {mask}")
    assert renamed.method.name == "pair-matching"


def test_a_classifier_from_before_tasks_had_a_method_keeps_its_prompt() -> None:
    older = replace(TASKS["nli"], method="mask-matching")
    config = MatcherConfig.make(max_length=64, task=older, prompt=WHOLE)
    assert config.changed({"task": "nli"}).prompt.template == WHOLE


def test_labels_may_be_read_with_the_pair_as_well(tiny: Tiny) -> None:
    label_prompt = "{text} {text_b} {label} is {mask}."
    matcher = MaskMatcher.from_pretrained(
        tiny("bert"), LABELS, task="nli", method="pair-matching", label_prompt=label_prompt
    )
    matcher.fit(PAIRS, TRUTH, **A_LITTLE)
    assert matcher.predict_proba(PAIRS).shape == (4, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"task": "nli", "prompt": "{text} {text_b} {mask}"},
            "reads a pair at two masks, one for each side",
        ),
        ({"task": "nli", "prompt": "{text} {text_b} {mask*4}"}, "has 4."),
        ({"task": "nli", "prompt": ["{text} {mask}", "so {text} {mask}"]}, "each prompt must name its own side"),
        (
            {"task": "nli", "prompt": ["{text} {mask}"] * 4},
            "or at three, of which the first is for the pair as a whole",
        ),
        ({"task": "nli", "prompt": ["{text} {mask}", "{text_b} {mask*2}"]}, "do not have the same number of masks"),
        ({"task": "nli", "prompt": SIDES, "method": None}, "choose the method pair-matching."),
        *(
            ({"task": "nli", "prompt": prompts}, "the first reads the pair as a whole and names both sides")
            for prompts in ([*SIDES, WHOLE], [SIDES[0], *SIDES], [SIDES[1], *SIDES], [WHOLE, SIDES[0], WHOLE])
        ),
        ({"task": "topic"}, "The task 'topic' has a single field, so there is no pair to read"),
    ],
)
def test_a_prompt_without_a_mask_for_each_side_is_refused(tiny: Tiny, options: Any, message: str) -> None:
    with pytest.raises(MaskMatchError) as caught:
        MaskMatcher.from_pretrained(tiny("bert"), LABELS, **{"method": "pair-matching", **options})
    assert message in str(caught.value)


def test_a_single_text_may_have_two_masks_as_well(tiny: Tiny) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, method="pair-matching", prompt="{mask} {text} {mask}")
    assert matcher.predict_proba(["money"]).shape == (1, 2)


@pytest.mark.parametrize("options", [{"debias": "inputs"}, {"hold": 0.5}])
def test_sides_apart_go_with_debiasing_and_holding(tiny: Tiny, options: dict[str, Any]) -> None:
    own = {name: options[name] for name in options if name == "debias"}
    training = {name: options[name] for name in options if name == "hold"}
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, task="nli", method="pair-matching", prompt=SIDES, **own)
    matcher.fit(PAIRS, TRUTH, **A_LITTLE, **training)
    assert matcher.predict_proba(PAIRS).shape == (4, 2)


def test_a_card_does_not_call_sides_a_mean(tiny: Tiny, tmp_path: Path) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, task="nli", method="pair-matching", prompt=SIDES)
    card = (matcher.save_pretrained(tmp_path / "model") / "README.md").read_text(encoding="utf-8")
    assert f"input prompt: `{SIDES[0]}`, `{SIDES[1]}`" in card
