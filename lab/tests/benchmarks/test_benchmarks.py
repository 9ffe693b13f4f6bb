"""The benchmarks run, keep what they found, and the pages of figures are what the results say."""

from __future__ import annotations

import gzip
import json
import sys
from typing import TYPE_CHECKING

import pytest

from maskmatch_lab.benchmarks import (
    benchmarks_page,
    common,
    expansion,
    experiment,
    experiment_page,
    few_shot,
    many_labels,
    similarity,
    studies_page,
    study_leads,
    write_docs,
    zero_shot,
)
from maskmatch_lab.studies import STUDIES

if TYPE_CHECKING:
    from pathlib import Path


def test_the_time_of_a_study_is_that_of_training_and_prediction() -> None:
    trained = {"training_seconds": 90.0, "rows": 100, "texts_per_second": 5.0, "label_seconds": 15.0}
    unmeasured = {"training_seconds": 10.0, "rows": 100, "texts_per_second": None, "label_seconds": None}
    results = {"cells": [{"figures": trained}, {"figures": unmeasured}]}
    assert studies_page.minutes(results) == pytest.approx((90 + 20 + 10) / 60)  # prediction has read the labels


@pytest.fixture
def small_world(tiny_default: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Small datasets, a tiny encoder, and a results folder of the test's own."""
    monkeypatch.setattr("maskmatch.config.training.FEW_STEPS", 4)
    monkeypatch.setattr(common, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(sys, "argv", ["benchmark", "--data", str(tmp_path / "data")])
    used = (similarity.DATASETS, zero_shot.DATASETS, expansion.DATASETS, (few_shot.DATASET, many_labels.DATASET))
    for name in {name for names in used for name in names}:
        (tmp_path / "data" / name).mkdir(parents=True)
        for split in ("train", "dev", "test"):
            rows = [
                {"text": f"{words} {number}", "entity": "my", "label": label}
                for number in range(6)
                for words, label in (("my card is lost", "card lost"), ("where is my refund", "refund"))
            ]
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (tmp_path / "data" / name / f"{split}.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    return tmp_path


def test_few_shot_writes_figures_with_their_origin(small_world: Path) -> None:
    few_shot.main()
    result = json.loads((small_world / "results" / "few_shot.json").read_text(encoding="utf-8"))
    assert [row["way"] for row in result["table"]] == list(few_shot.WAYS)
    full, half, _ = result["table"]
    assert full["steps"] == 2 * half["steps"]
    accuracies = [cell["accuracy"] for cell in result["cells"] if cell["way"] == full["way"]]
    assert len(accuracies) == full["seeds"] == 3
    assert full["accuracy"]["mean"] == pytest.approx(sum(accuracies) / 3, abs=1e-4)
    assert result["command"] == "python -m maskmatch_lab.benchmarks.few_shot"
    assert str(small_world) not in json.dumps(result)
    assert {"torch", "transformers", "maskmatch"} <= set(result["versions"])


def test_zero_shot_compares_ways_and_prompts(small_world: Path) -> None:
    zero_shot.main()
    result = json.loads((small_world / "results" / "zero_shot.json").read_text(encoding="utf-8"))
    assert list(result["means"]) == list(zero_shot.WAYS)
    assert set(result["spread"]) == set(zero_shot.OTHER_PROMPTS)
    prompts = sum(map(len, zero_shot.OTHER_PROMPTS.values()))
    assert len(result["cells"]) == len(zero_shot.DATASETS) * len(zero_shot.WAYS) + prompts


def test_expansion_compares_names_with_what_was_found_for_them(small_world: Path) -> None:
    expansion.main()
    path = small_world / "results" / "expansion.json"
    result = json.loads(path.read_text(encoding="utf-8"))
    assert len(result["cells"]) == len(expansion.DATASETS) * (2 + len(expansion.SEEDS))
    assert set(result["summary"][expansion.EXAMPLES]["gain"]) == set(expansion.DATASETS)
    figures = benchmarks_page.expansion_figures()
    assert all(dataset in figures for dataset in expansion.DATASETS)
    expansion.main()
    assert json.loads(path.read_text(encoding="utf-8"))["cells"] == result["cells"]


def test_similarity_goes_on_where_it_stopped(small_world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "SEEDS", (0,))
    similarity.main()
    path = small_world / "results" / "similarity.json"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert len(cells) == len(similarity.DATASETS) * len(similarity.CHOICES)
    monkeypatch.setattr(similarity.MaskMatcher, "fit", lambda *_, **__: pytest.fail("a finished cell ran again"))
    similarity.main()
    assert json.loads(path.read_text(encoding="utf-8"))["cells"] == cells


def test_the_experiment_tunes_runs_its_parts_and_goes_on(small_world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = small_world / "results" / "experiment"
    names, methods = ("banking77", "trec50"), ("mask-matching", "fine-tuning")
    monkeypatch.setattr(experiment, "ANY_TEXT_METHODS", methods)
    monkeypatch.setattr(experiment, "FOLDER", home)
    monkeypatch.setattr(experiment, "TUNED_ON", names[:1])
    monkeypatch.setattr(experiment, "EPOCH_FACTORS", (1.0,))
    parts = (experiment.Part("5-shots", names, "5 shots", 2), experiment.Part("5-shots-larger", names, "full", 1, None))
    monkeypatch.setattr(experiment, "PARTS", parts)
    experiment.main()
    result = json.loads((small_world / "results" / "experiment.json").read_text(encoding="utf-8"))
    assert list(result["parts"]) == ["5-shots"], "no larger encoder was named"
    table = result["parts"]["5-shots"]["table"]
    assert {(row["dataset"], row["method"]) for row in table} == {
        (name, method) for name in names for method in methods
    }
    assert {tuple(row["seeds"]) for row in table} == {(0, 1)}
    assert str(small_world) not in json.dumps(result)
    assert len(list((home / "5-shots" / "cells").iterdir())) == 2 * 2 * len(methods)

    monkeypatch.setattr("maskmatch.MaskMatcher.fit", lambda *_, **__: pytest.fail("a finished cell ran again"))
    experiment.main()
    figures = experiment_page.figures()
    assert all(method in figures for method in methods)
    assert "Not run yet: " in figures, "the other parts"
    assert all(f">{name}</text>" in experiment_page.scores_picture() for name in (*methods, *names))


def test_the_verdict_of_the_experiment_needs_the_test_and_every_seed() -> None:
    tests = [
        {"dataset": name, "method": "fine-tuning", "difference": difference, "p": p, "by_seed": by_seed}
        for name, difference, p, by_seed in (
            ("a", 0.1, 0.001, [0.05, 0.15]),
            ("b", -0.1, 0.04, [-0.1, -0.1]),
            ("c", 0.1, 0.2, [0.1, 0.1]),
            ("d", -0.1, 0.05, [-0.1, -0.1]),
            ("e", 0.1, 0.001, [0.3, -0.1]),
        )
    ]
    assert experiment_page.verdict_table(tests).splitlines()[-1] == "| fine-tuning | a | b | e | c, d |"
    parts = {"5-shots": {"significance": tests}}
    assert experiment_page.lead(parts) == (
        "- With 5 texts per label, mask-matching is better than fine-tuning on 1 of 5 datasets and worse on 1."
    )


def test_accuracies_of_a_study_are_means_over_datasets_of_means_over_seeds() -> None:
    cells = [
        {"regime": "5 shots", "method": method, "dataset": dataset, "seed": seed, "figures": {"accuracy": accuracy}}
        for method, dataset, seed, accuracy in (
            ("names", "a", 0, 0.5),
            ("names", "a", 1, 0.7),
            ("names", "b", 0, 0.9),
            ("numbers", "a", 1, 0.4),
        )
    ]
    found = study_leads.Accuracies.of({"cells": cells})
    assert found.mean("5 shots", "names") == pytest.approx(0.75)
    assert found.on("a").mean("5 shots", "names") == pytest.approx(0.6)
    assert found.gain("5 shots", "numbers", "names") == pytest.approx(-30.0)  # seed 1 of a, the one that both have
    assert found.means("5 shots") == {"names": pytest.approx(0.75)}  # numbers lack a dataset
    with pytest.raises(KeyError, match="words"):
        found.mean("5 shots", "words")


@pytest.mark.parametrize("name", list(STUDIES))
def test_the_page_of_a_study_begins_with_question_answer_and_one_picture(name: str) -> None:
    study = STUDIES[name]
    results = studies_page.read(study)
    first = studies_page.page(study).split("## ")[0]
    if results is None:
        assert studies_page.NOT_RUN in first
        return
    answer = study_leads.lead(results)
    assert results["question"] in first
    assert " ".join(answer) in first
    assert 1 <= len(answer) <= 3
    assert len(" ".join(answer).split()) <= 90
    assert first.count("![") == 1


def test_a_study_that_was_not_run_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(studies_page, "RESULTS", tmp_path)
    pages = studies_page.pages(tmp_path)
    assert len(pages) == len(STUDIES), "no pictures"
    assert all(studies_page.NOT_RUN in text for text in pages.values())
    assert studies_page.index().count(studies_page.NOT_RUN) == len(pages)


def test_many_labels_compares_full_and_sampled_encoding(small_world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_labels, "SEEDS", (0,))
    many_labels.main()
    path = small_world / "results" / "many_labels.json"
    result = json.loads(path.read_text(encoding="utf-8"))
    assert [cell["way"] for cell in result["cells"]] == list(many_labels.WAYS)
    assert set(result["accuracy"]) == set(many_labels.WAYS)
    many_labels.main()
    assert json.loads(path.read_text(encoding="utf-8"))["cells"] == result["cells"]


def test_no_data_folder_is_a_sentence() -> None:
    with pytest.raises(Exception, match="MASKMATCH_DATA"):
        common.load_split(None, "banking77", "train")


def test_pages_say_what_the_results_say() -> None:
    for path, text in write_docs.pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is not up to date: run make docs"
