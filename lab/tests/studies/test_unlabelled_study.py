"""The study of unlabelled texts: which texts a cell learns from, and that the conclusion follows from the cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from comparison_tools import rows
from maskmatch.errors import MaskMatchError
from maskmatch_lab.benchmarks import unlabelled_page
from maskmatch_lab.benchmarks.study_leads import Accuracies
from maskmatch_lab.comparison import Regime, Splits, Unlabelled, Variant
from maskmatch_lab.comparison.runner import Grid, plans_of, run_plan
from maskmatch_lab.studies import find_study
from maskmatch_lab.studies.running import load_dataset
from maskmatch_lab.studies.unlabelled import adapted, alone, forced, self_trained
from study_tools import all_places, evidence_of, stand_ins

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STUDY = find_study("unlabelled")


def splits(name: str = "bank") -> Splits:
    return Splits.of(name, "intent", rows(9, 0), rows(9, 1))


def grid(data: Splits, unlabelled: Unlabelled | None, model: Path | None = None, regime: str = "zero-shot") -> Grid:
    variant = Variant("one", training={"epochs": 1}, unlabelled=unlabelled)
    return Grid([data], [variant], [Regime.of(regime)], [0, 1], model=model)


def test_texts_are_drawn_by_the_seed() -> None:
    pool = [f"text {number}" for number in range(50)]
    one, other = (Unlabelled(10).draw(pool, seed) for seed in (0, 1))
    assert len(set(one)) == 10
    assert one == Unlabelled(10).draw(pool, 0) != other
    assert sorted(Unlabelled(500).draw(pool, 0)) == sorted(pool)
    with pytest.raises(MaskMatchError, match="1 or more"):
        Unlabelled(0)


def test_cells_depend_on_the_texts_and_on_the_seed() -> None:
    plain, some, others = (
        [plan.digest for plan in plans_of([grid(data, texts)])]
        for data, texts in (
            (splits(), None),
            (splits(), Unlabelled(5)),
            (splits().with_unlabelled(Splits.of("shop", "intent", rows(12, 3), rows(9, 1))), Unlabelled(5)),
        )
    )
    assert len(plain) == 1, "nothing is drawn"
    assert len(set(some)) == 2
    assert len({*plain, *some, *others}) == 5


@pytest.mark.parametrize("regime", ["zero-shot", "1 shot"])
def test_a_cell_adapts(tiny: Callable[[str], Path], regime: str) -> None:
    how = Unlabelled(20, force=True)
    cell = run_plan(plans_of([grid(splits(), how, tiny("bert"), regime)])[0])
    assert cell.figures.adaptation is not None
    assert cell.figures.adaptation["texts"] == 9
    assert cell.figures.adaptation["adapted"] == (regime == "zero-shot"), "few texts, and not forced in training"


def test_the_texts_of_another_dataset() -> None:
    data = {"bank": splits("bank"), "shop": Splits.of("shop", "intent", rows(30, 3), rows(9, 1))}
    found = load_dataset(data, "bank+shop", "intent")
    assert found.name == "bank+shop"
    assert list(found.unlabelled) == list(data["shop"].train.texts)
    assert list(data["bank"].unlabelled) == list(data["bank"].train.texts)
    pairs = Splits.of("pairs", "nli", *([[{"text": "a", "text_b": "b"}] * 2, ["yes", "no"]] for _ in range(2)))
    with pytest.raises(MaskMatchError, match="do not have the fields"):
        splits().with_unlabelled(pairs)


def test_the_answer_names_what_loses_first() -> None:
    places = all_places(STUDY)
    accuracies = dict.fromkeys(places, 0.5)
    for dataset, method, regime in places:
        if method == forced() and dataset == "goemotions":
            accuracies[dataset, method, regime] = 0.4
        if method == adapted() and dataset in ("agnews", "banking77"):
            accuracies[dataset, method, regime] = 0.6
        if method == forced() and "+" in dataset:
            accuracies[dataset, method, regime] = 0.3
        if method == self_trained() and dataset == "agnews":
            accuracies[dataset, method, regime] = 0.55
    found = STUDY.conclude(evidence_of(STUDY, accuracies))
    assert "does harm on goemotions (-10.0; as decided +0.0)." in found.answer[0]
    words = " ".join(found.answer)
    assert "mask-matching goes from 50.0 % with names alone to 52.5 %" in words
    assert "After training with 5 shots, unlabelled texts add +5.0 to mask-matching" in words
    assert "another dataset cost -20.0 if the classifier must adapt, and +0.0 if it decides" in words
    assert "Self-training after adapting, zero-shot: agnews -4." in words
    assert found.figures["gains"]["zero-shot"][forced()]["goemotions"] == -0.1
    assert len(found.pictures) == 2
    assert "nan" not in words
    equal = " ".join(STUDY.conclude(evidence_of(STUDY, dict.fromkeys(places, 0.5))).answer)
    assert "does harm" not in equal


def test_the_tables_of_the_page() -> None:
    data = [place for place in all_places(STUDY) if place[0] in stand_ins(STUDY)]
    found = Accuracies({(regime, method, dataset, 0): 0.5 for dataset, method, regime in data})
    cells = {**found.cells, ("zero-shot", adapted(), "agnews", 0): 0.7, ("zero-shot", alone(), "agnews", 0): 0.6}
    found = Accuracies(cells)
    assert "| agnews | 0.600 | 0.700 (+10.0) |" in unlabelled_page.zero_shot_table(found)
    assert "| banking77 | agnews | 0.500 |" in unlabelled_page.foreign_table(found)
    assert "10 texts" in unlabelled_page.counts_table(found)
    assert "| mask-matching | 5 shots |" in unlabelled_page.shots_table(found)
