"""The table of methods and the task presets."""

from __future__ import annotations

from typing import Any

import pytest

from maskmatch.config.methods import ANY_TEXT_METHODS, METHODS, Method, find_method
from maskmatch.config.tasks import TASKS, Task, find_task
from maskmatch.errors import MaskMatchError
from maskmatch.prompts import Prompt


@pytest.mark.parametrize(
    ("name", "input_readout", "label_source", "label_readout", "similarity"),
    [
        ("fine-tuning", "cls", "matrix", None, "dot"),
        ("soft-prompt", "mask", "matrix", None, "dot"),
        ("prompt-tuning", "mask", "verbalizer", None, "dot"),
        ("semantic-matching", "mean", "prompt", "mean", "cosine"),
        ("mean-matching", "mean", "prompt", "mean", "cosine"),
        ("mask-mean-matching", "mask-mean", "prompt", "mask-mean", "cosine"),
        ("mask-matching", "mask", "prompt", "mask", "cosine"),
        ("pair-matching", "pair", "prompt", "mask", "cosine"),
    ],
)
def test_the_table_of_methods(
    name: str, input_readout: str, label_source: str, label_readout: str | None, similarity: str
) -> None:
    method = find_method(name)
    assert method.name == name
    assert method.input_readout == input_readout
    assert method.label_source == label_source
    assert label_readout is None or method.label_readout == label_readout
    assert method.similarity.kind == similarity
    prompted = name == "mean-matching"
    assert method.prompted == prompted
    assert method.input_masked == (input_readout in ("mask", "mask-mean", "pair") or prompted)
    assert method.reads_pairs == (input_readout == "pair") == (name not in ANY_TEXT_METHODS)
    assert method.label_masked == (label_readout in ("mask", "mask-mean") or prompted)
    assert method.reads_labels == (label_source != "matrix")
    assert method.transform == (name == "prompt-tuning")


def test_a_method_of_ones_own_is_taken_as_it_is() -> None:
    own = Method("own", "max", "prompt", label_readout="cls")
    assert find_method(own) is own
    assert set(METHODS) == {
        "fine-tuning",
        "soft-prompt",
        "prompt-tuning",
        "semantic-matching",
        "mean-matching",
        "mask-mean-matching",
        "mask-matching",
        "pair-matching",
    }


@pytest.mark.parametrize("cell", ["input_readout", "label_source", "label_readout"])
def test_a_cell_that_there_is_not_is_refused(cell: str) -> None:
    with pytest.raises(MaskMatchError, match=f"{cell} is 'magic'; choose one of "):
        Method(**{"name": "own", "input_readout": "mask", "label_source": "matrix", cell: "magic"})  # type: ignore[arg-type]


def test_a_method_that_there_is_not_is_refused() -> None:
    with pytest.raises(MaskMatchError, match=r"There is no method 'magic'; choose one of fine-tuning, .*mask-matching"):
        find_method("magic")


def test_the_presets_are_those_of_the_contract() -> None:
    contract = "topic sentiment nli paraphrase word-in-context relation entity-typing stance intent question emotion"
    assert set(TASKS) == set(contract.split())


@pytest.mark.parametrize("name", sorted(TASKS))
def test_a_preset_has_prompts_that_use_its_fields(name: str) -> None:
    task = find_task(name)
    assert task.name == name
    assert task.description
    prompt = Prompt(task.prompt, task.fields)
    assert set(prompt.fields) == set(task.fields)
    assert prompt.masks == 1
    label_prompt = Prompt(task.label_prompt, ("label",))
    assert label_prompt.fields == ("label",)
    assert label_prompt.masks == 1
    bare = Prompt(task.bare_prompt, task.fields, masked=False)
    assert bare.fields == task.fields
    assert bare.masks == 0
    assert sum(part.kind == "sep" for part in bare.parts) == len(task.fields) - 1
    if len(task.fields) == 1:
        with pytest.raises(MaskMatchError, match=f"The task '{name}' has a single field, so there is no pair to read"):
            assert task.pair_prompts
    else:
        sides = [Prompt(template, task.fields) for template in task.pair_prompts]
        assert [set(task.fields) - set(side.fields) for side in sides] == [{task.fields[1]}, {task.fields[0]}]
        assert [side.masks for side in sides] == [1, 1]


def test_every_preset_has_the_metric_of_its_field() -> None:
    others = {"relation": "relation-micro-f1", "entity-typing": "micro-f1", "stance": "stance-f1"}
    assert {name: task.metric for name, task in TASKS.items()} == {**dict.fromkeys(TASKS, "accuracy"), **others}


def test_a_task_of_ones_own() -> None:
    fields: Any = ["subject", "body"]
    task = Task("ticket", "tickets", fields=fields, prompt="{subject}: {body} {mask}")
    assert find_task(task) is task
    assert task.bare_prompt == "{subject} {sep} {body}"
    assert task == Task("ticket", "tickets", ("subject", "body"), "{subject}: {body} {mask}")
    assert hash(task)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fields": ()}, "The task 't' has no fields"),
        ({"fields": ("text", "mask")}, "has a field 'mask'"),
        ({"fields": ("text", "sep")}, "has a field 'sep'"),
        ({"fields": ("body",)}, "uses the field {text}"),
        ({"prompt": "{text}"}, "has no mask"),
        ({"label_prompt": "it is {mask}"}, "must use {label}"),
        ({"label_prompt": "{label}"}, "has no mask"),
        ({"label_prompt": "{text_b} {label} {mask}"}, "uses the field {text_b}"),
        ({"metric": "luck"}, "There is no metric 'luck'; choose one of accuracy, micro-f1"),
    ],
)
def test_a_task_that_cannot_work_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(MaskMatchError) as caught:
        Task("t", "d", **options)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["weather", ""])
def test_a_task_that_there_is_not_is_refused(name: str) -> None:
    with pytest.raises(MaskMatchError, match=f"There is no task '{name}'; choose one of topic, intent"):
        find_task(name)
