"""Keys of cells: equal to those of committed cells, and unchanged by new settings of the product."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from maskmatch import METHODS, TASKS, Label, LabelSet, Method, SimilarityConfig, Task, TrainingConfig
from maskmatch_lab.comparison import Regime, Variant
from maskmatch_lab.comparison.cell_key import (
    cell_digest,
    digest,
    label_text,
    labels_digest,
    method_key,
    regime_key,
    similarity_key,
    task_key,
    training_key,
    variant_key,
)
from maskmatch_lab.comparison.cells import Cell, CellStore
from maskmatch_lab.paths import RESULTS
from maskmatch_lab.studies import STUDIES

if TYPE_CHECKING:
    from pathlib import Path

    from maskmatch_lab.studies import Part


@cache
def committed() -> dict[Path, dict[str, Any]]:
    """All committed cells by their files."""
    found = {path: json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.rglob("cells/*.json")}
    assert len(found) > 900
    return found


def test_committed_cells_have_the_digest_of_their_settings() -> None:
    for path, data in committed().items():
        assert cell_digest(data["settings"]) == data["digest"], path
        cell = Cell.from_json(data)
        name = f"{cell.dataset}, {cell.method}, {cell.regime}, seed {cell.seed}"
        assert CellStore(path.parents[1]).find(name, cell.digest) == cell, f"{path} is not at its place"


def test_results_name_committed_cells() -> None:
    for path in RESULTS.rglob("results.json"):
        known = {data["digest"] for file, data in committed().items() if path.parent in file.parents}
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert cells, path
        for cell in cells:
            assert cell_digest(cell["settings"]) == cell["digest"], path
            assert cell["digest"] in known, f"{path} names a cell that is not there: {cell['method']}"


def test_tasks_and_methods_are_written_as_in_committed_cells() -> None:
    settings = [data["settings"] for data in committed().values()]
    tasks = {each["task"]["name"]: each["task"] for each in settings}
    assert {name: task_key(TASKS[name]) for name in tasks} == tasks
    methods = {each["variant"]["method"]["name"]: each["variant"]["method"] for each in settings}
    own = {name: method for name, method in methods.items() if name in METHODS}
    assert {"mask-matching", "pair-matching", "prompt-tuning"} <= set(own)
    assert {name: method_key(METHODS[name]) for name in own} == own


def test_labels_are_written_as_in_committed_cells() -> None:
    plain = [data for data in committed().values() if "labels" not in data["settings"]["variant"]]
    known = {(data["settings"]["labels"], tuple(data["answers"]["labels"])) for data in plain}
    assert len(known) > 15
    for digest_, ids in known:
        assert labels_digest(LabelSet.of(list(ids)).labels) == digest_
    assert "examples=('b',)" in label_text(Label("a", examples=("b",)))


@pytest.mark.parametrize("study", list(STUDIES))
def test_variants_are_written_as_in_committed_cells(study: str) -> None:
    folder = RESULTS / "studies" / study
    cells = {
        (data["dataset"], data["method"], data["regime"]): data["settings"]
        for path, data in committed().items()
        if folder in path.parents
    }
    written = {
        (dataset, variant.name, Regime.of(regime).name): (variant_key(variant), regime_key(Regime.of(regime)))
        for part in STUDIES[study].parts
        for dataset, task in part.datasets.items()
        for variant in part.variants_for(task)
        for regime in part.regimes
    }
    assert written == {place: (each["variant"], each["regime"]) for place, each in cells.items()}


def test_training_is_written_as_in_committed_cells() -> None:
    """The settings of training follow from those of the variant and the number of training rows and labels."""
    checked = 0
    for data in committed().values():
        settings = data["settings"]
        if settings["training"] is None or settings["variant"]["method"]["name"] not in METHODS:
            continue
        own = settings["variant"]
        variant = Variant(
            own["name"], own["method"]["name"], training=own["training"], epoch_factor=own["epoch_factor"]
        )
        share = settings["training"].get("example_share")
        labels = len({json.dumps(true) for true in data["answers"]["true"]}) if share else 0
        config = variant.config(settings["train"]["rows"], data["seed"], labels_with_centroids=labels)
        exact = replace(config, epochs=settings["training"]["epochs"])  # those depend on the labels of training rows
        assert training_key(exact) == settings["training"]
        checked += 1
    assert checked > 300


def test_the_study_of_pairs_writes_its_own_prompts() -> None:
    part: Part = STUDIES["pairs"].parts[0]
    assert all("prompt" in each.matcher for each in part.variants_for("nli") if each.row.reads_pairs)


@dataclass(frozen=True)
class LaterTask(Task):
    hint: str = "none"


@dataclass(frozen=True)
class LaterMethod(Method):
    window: tuple[int, ...] = ()


@dataclass(frozen=True)
class LaterSimilarity(SimilarityConfig):
    margin: float = 0.0


@dataclass(frozen=True)
class LaterTraining(TrainingConfig):
    warmup: float = 0.1


@dataclass(frozen=True)
class LaterLabel(Label):
    parent: str | None = None


def test_a_new_setting_counts_only_where_it_differs_from_its_default() -> None:
    task = LaterTask("topic", "texts")
    assert task_key(task) == task_key(Task("topic", "texts"))
    assert task_key(replace(task, hint="more"))["hint"] == "more"
    assert task_key(replace(task, method="fine-tuning")) == task_key(task)
    method = LaterMethod("own", "mask", "prompt")
    assert method_key(method) == method_key(Method("own", "mask", "prompt"))
    assert method_key(replace(method, window=(1, 2)))["window"] == [1, 2]
    assert similarity_key(LaterSimilarity()) == similarity_key(SimilarityConfig())
    assert similarity_key(LaterSimilarity(margin=0.5))["margin"] == 0.5
    assert training_key(LaterTraining()) == training_key(TrainingConfig(checkpoints="here"))
    assert training_key(LaterTraining(warmup=0.2))["warmup"] == 0.2
    assert label_text(LaterLabel("a")) == label_text(Label("a"))
    assert "parent='b'" in label_text(LaterLabel("a", parent="b"))


def test_settings_that_were_added_early_have_values_of_their_own() -> None:
    """A new default of the product is another result, so it makes another key."""
    assert "max_tokens" not in training_key(TrainingConfig())
    assert training_key(TrainingConfig(max_tokens=100))["max_tokens"] == 100
    assert similarity_key(SimilarityConfig(masks="late"))["masks"] == "late"
    assert method_key(replace(METHODS["mask-matching"], learning_rate=1.0))["learning_rate"] == 1.0


def test_digests_depend_on_order_and_boundaries() -> None:
    assert digest(b"ab", b"c") != digest(b"a", b"bc")
    one, other = Label("a"), Label("b", phrases=("c",))
    assert labels_digest([one, other]) != labels_digest([other, one])
    assert labels_digest([Label(1)]) != labels_digest([Label("1", "1")])
