"""The settings of a classifier."""

from __future__ import annotations

import json
from typing import Any

import pytest

from maskmatch.config.matcher import MatcherConfig
from maskmatch.config.methods import ANY_TEXT_METHODS, METHODS, Method
from maskmatch.config.similarity import SimilarityConfig
from maskmatch.config.tasks import TASKS, Task
from maskmatch.config.training import CENTROID_WEIGHT, TrainingConfig
from maskmatch.errors import MaskMatchError

OWN_TASK = Task("ticket", "tickets", ("subject", "body"), "{subject}: {body} {mask}", "{label}: {mask}")
MATCHING = METHODS["mask-matching"]
OWN_METHOD = Method("own", "max", "prompt", label_readout="cls", similarity=SimilarityConfig(phrases="max"))


@pytest.mark.parametrize("task", [*TASKS, OWN_TASK])
@pytest.mark.parametrize("method", [*ANY_TEXT_METHODS, OWN_METHOD])
def test_task_and_method_bring_what_is_left_out(task: Any, method: Any) -> None:
    config = MatcherConfig.make(max_length=64, task=task, method=method)
    masked = config.method.input_masked
    assert config.prompt.template == (config.task.prompt if masked else config.task.bare_prompt)
    assert config.label_prompt.template == (config.task.label_prompt if config.method.label_masked else "{label}")
    assert (config.prompt.masks > 0) == masked
    assert config.similarity == config.method.similarity
    assert not config.multi_label
    assert MatcherConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_a_task_may_bring_its_method() -> None:
    task = Task("pairs", "pairs", ("text", "text_b"), "{text} {text_b} {mask}", method="pair-matching")
    config = MatcherConfig.make(max_length=64, task=task)
    assert config.method.name == "pair-matching"
    assert tuple(prompt.template for prompt in config.prompts) == task.pair_prompts
    assert MatcherConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
    assert MatcherConfig.make(max_length=64, task=task, method="mask-matching").prompt.template == task.prompt
    with pytest.raises(MaskMatchError, match="There is no method 'magic'"):
        MatcherConfig.make(max_length=64, task=Task("own", "own", method="magic"))


def test_a_config_comes_back_from_json_with_all_that_was_set() -> None:
    config = MatcherConfig.make(
        max_length=99,
        task=OWN_TASK,
        prompt="{body} {{}} {mask} {mask}",
        label_prompt="{label} {sep} {mask}",
        method=Method("mine", "mask", "prompt", "mask", True, SimilarityConfig("dot", 2.0, True, "logsumexp")),
        similarity=SimilarityConfig("cosine", 0.3, True, "max"),
        multi_label=True,
        threshold=0.25,
    )
    back = MatcherConfig.from_json(json.loads(json.dumps(config.to_json())))
    assert back == config
    assert back.prompt.masks == 2
    assert back.similarity == SimilarityConfig("cosine", 0.3, True, "max")
    assert back.threshold == 0.25
    assert back.to_json() == config.to_json()


def test_left_out_altogether_it_is_topics_by_mask_matching() -> None:
    config = MatcherConfig.make(max_length=64)
    assert config.task.name == "topic"
    assert config.method.name == "mask-matching"
    assert config.prompt.template == "{text} It is about {mask}."
    assert config.label_prompt.template == "{label} is {mask}."


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "weather"}, "There is no task 'weather'"),
        ({"task": ""}, "There is no task ''"),
        ({"method": "magic"}, "There is no method 'magic'"),
        ({"method": ""}, "There is no method ''"),
        ({"similarity": "l2"}, "similarity is 'l2'"),
        ({"prompt": ""}, "A prompt is a string such as"),
        ({"prompt": "{text}"}, "has no mask"),
        ({"prompt": "{text_b} {mask}"}, "uses the field {text_b}"),
        ({"prompt": "{label} {mask}"}, "uses the field {label}"),
        ({"label_prompt": "{label}"}, "has no mask"),
        ({"label_prompt": "is {mask}"}, "must use {label}"),
        ({"label_prompt": "{text_b} {label} {mask}"}, "uses the field {text_b}"),
    ],
)
def test_settings_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(MaskMatchError) as caught:
        MatcherConfig.make(max_length=64, **options)
    assert message in str(caught.value)


def test_a_method_without_masks_takes_a_prompt_without_one() -> None:
    config = MatcherConfig.make(max_length=64, method="semantic-matching", prompt="{text}!", label_prompt="a {label}")
    assert config.prompt.template == "{text}!"
    assert config.label_prompt.template == "a {label}"


def own_config() -> MatcherConfig:
    return MatcherConfig.make(
        max_length=64,
        task="sentiment",
        prompt="{text} So {mask}!",
        label_prompt="{label}: {mask}",
        similarity=SimilarityConfig("dot", 3.0),
        multi_label=True,
        threshold=0.3,
    )


def test_nothing_changed_is_the_same() -> None:
    assert own_config().changed({}) == own_config()
    assert own_config().changed({"task": None, "prompt": None, "max_length": None}) == own_config()
    assert own_config().changed({"task": "sentiment", "method": "mask-matching"}) == own_config()


@pytest.mark.parametrize(
    ("name", "value", "other"),
    [
        ("prompt", "{text} {mask} again", ["label_prompt", "task", "method", "similarity"]),
        ("label_prompt", "{label} {mask} again", ["prompt", "task", "method", "similarity"]),
        ("similarity", SimilarityConfig("cosine", 0.7), ["prompt", "label_prompt", "task", "method"]),
        ("max_length", 32, ["prompt", "label_prompt", "task", "method", "similarity"]),
        ("multi_label", False, ["prompt", "label_prompt", "task", "method", "similarity"]),
        ("threshold", 0.9, ["prompt", "label_prompt", "task", "method", "similarity"]),
    ],
)
def test_what_is_not_changed_stays(name: str, value: Any, other: list[str]) -> None:
    config = own_config()
    changed = config.changed({name: value})
    found = getattr(changed, name)
    assert (str(found) if name.endswith("prompt") else found) == value
    names = {*other, "max_length", "multi_label", "threshold"} - {name}
    assert all(getattr(changed, same) == getattr(config, same) for same in names)


def test_a_new_task_brings_its_own_prompts() -> None:
    changed = own_config().changed({"task": "nli"})
    assert changed.prompt.template == TASKS["nli"].prompt
    assert changed.label_prompt.template == TASKS["nli"].label_prompt
    assert changed.similarity == own_config().similarity
    assert changed.multi_label


def test_a_new_method_brings_its_own_prompts_and_similarity() -> None:
    changed = own_config().changed({"method": "semantic-matching"})
    assert changed.prompt.template == "{text}"
    assert changed.label_prompt.template == "{label}"
    assert changed.similarity == METHODS["semantic-matching"].similarity
    assert own_config().changed({"method": "fine-tuning", "prompt": "{text}?"}).prompt.template == "{text}?"


@pytest.mark.parametrize(
    ("moving", "texts", "epochs"),
    [
        *((0, *row) for row in [(0, 50), (32, 50), (33, 50), (65, 34), (330, 10), (3200, 3), (10**5, 3)]),
        *((33, *row) for row in [(1, 40), (33, 20), (330, 4), (3200, 3)]),
        *((2, *row) for row in [(20, 40), (30, 50), (40, 40), (640, 5), (3200, 3)]),
    ],
)
def test_epochs_suffice_for_some_steps_but_are_three_to_fifty(moving: int, texts: int, epochs: int) -> None:
    assert TrainingConfig(batch_size=32).resolved(MATCHING, texts, labels_with_centroids=moving).epochs == epochs
    assert TrainingConfig(epochs=0.5).resolved(MATCHING, texts, labels_with_centroids=moving).epochs == 0.5


def test_a_method_has_a_learning_rate_of_its_own_unless_one_is_given() -> None:
    rates = {name: TrainingConfig().resolved(METHODS[name], 10, 0).learning_rate for name in METHODS}
    assert rates == {**dict.fromkeys(METHODS, 2e-4), "pair-matching": 2e-5}
    assert TrainingConfig(learning_rate=0.1).resolved(METHODS["pair-matching"], 10, 0).learning_rate == 0.1


def test_training_texts_have_a_share_where_labels_can_move() -> None:
    assert TrainingConfig().resolved(MATCHING, 10, labels_with_centroids=2).example_share == CENTROID_WEIGHT
    assert TrainingConfig().resolved(MATCHING, 10, labels_with_centroids=0).example_share is None
    by_name = TrainingConfig(example_share=0).resolved(MATCHING, 330, labels_with_centroids=33)
    assert by_name.example_share == 0
    assert by_name.epochs == TrainingConfig().resolved(MATCHING, 330, labels_with_centroids=0).epochs == 10
    with pytest.raises(MaskMatchError, match="from 0 to 1"):
        TrainingConfig(example_share=1.5)


@pytest.mark.parametrize(
    ("options", "moves"),
    [
        ({}, True),
        ({"method": "semantic-matching"}, True),
        ({"method": "semantic-matching", "prompt": "{text} {mask} {mask}"}, True),
        ({"task": "nli", "method": "pair-matching"}, True),
        ({"method": "fine-tuning"}, False),
        ({"method": "prompt-tuning"}, False),
        ({"multi_label": True}, False),
        ({"prompt": "{text} {mask} {mask}"}, False),
        ({"prompt": "{text} {mask} {mask}", "label_prompt": "{label} {mask} {mask}"}, True),
        ({"label_prompt": "{text} {label} {mask}"}, False),
    ],
)
def test_where_labels_can_move_towards_training_texts(options: dict[str, Any], moves: bool) -> None:
    assert MatcherConfig.make(max_length=64, **options).uses_centroids is moves


@pytest.mark.parametrize("name", ["epochs", "learning_rate", "head_rate", "batch_size", "patience"])
@pytest.mark.parametrize("value", [0, -1])
def test_training_with_nothing_is_refused(name: str, value: int) -> None:
    with pytest.raises(MaskMatchError, match=f"{name} is {value}; it must be .*above 0"):
        TrainingConfig(**{name: value})  # type: ignore[arg-type]


def test_resuming_needs_checkpoints() -> None:
    with pytest.raises(MaskMatchError, match="name the folder of the checkpoints"):
        TrainingConfig(resume=True)
    assert TrainingConfig(resume=True, checkpoints="folder").resume
