"""Running a study: load its datasets, run the cells that are not cached, conclude and save."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError
from maskmatch.files import write_text
from maskmatch_lab.comparison import Regime, Splits
from maskmatch_lab.comparison.comparing import compare_grids
from maskmatch_lab.comparison.runner import Grid, seeds_of
from maskmatch_lab.comparison.statistics import RESAMPLES
from maskmatch_lab.comparison.variants import variants_of
from maskmatch_lab.studies.study import Conclusion, Evidence, Study

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from maskmatch_lab.comparison import Comparison, Variant

QUICK_NOTE = "This was a quick run, which shows the form of the output: its figures mean nothing."


@dataclass(frozen=True)
class StudyResult:
    """The result of a study. Print it, or `save` it."""

    study: Study
    comparison: Comparison
    conclusion: Conclusion
    quick: bool = False

    @property
    def answer(self) -> list[str]:
        """The answer in a few sentences."""
        return [*([QUICK_NOTE] if self.quick else []), *self.conclusion.answer]

    @property
    def details(self) -> list[str]:
        """All other results, in words."""
        return [sentence for sentence in self.conclusion.sentences if sentence not in self.conclusion.answer]

    @property
    def sentences(self) -> list[str]:
        """All results in words, the answer first."""
        return [*self.answer, *self.details]

    def __str__(self) -> str:
        parts = [self.study.question, "", *(f"* {sentence}" for sentence in self.answer)]
        if self.details:
            parts += ["", "In detail:", *(f"* {sentence}" for sentence in self.details)]
        return "\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """The whole result as plain JSON."""
        return {
            "study": self.study.name,
            "question": self.study.question,
            "quick": self.quick,
            "answer": self.answer,
            "conclusion": self.details,
            "findings": dict(self.conclusion.figures),
            "cut": list(self.study.cut),
            **self.comparison.to_dict(),
        }

    def to_html(self) -> str:
        """The study as one web page."""
        from maskmatch_lab.studies.page import study_page

        return study_page(self)

    def save(self, folder: str | Path) -> Path:
        """Write results, report, pictures and conclusion into a folder, each file atomically."""
        from maskmatch_lab.studies.page import picture_files

        home = Path(folder).expanduser()
        write_text(home / "results.json", json.dumps(self.to_dict(), ensure_ascii=False, indent=2, default=str) + "\n")
        write_text(home / "report.html", self.to_html())
        pictures = picture_files(self)
        for name, drawn in pictures.items():
            write_text(home / name, drawn)
        for path in home.glob("picture-*.svg"):
            if path.name not in pictures:
                path.unlink()  # of an earlier run that had more
        write_text(home / "conclusion.txt", f"{self}\n")
        return home


def run_study(
    study: Study,
    data: str | Path | Mapping[str, Splits],
    folder: str | Path | None = None,
    *,
    model: str | Path | None = None,
    seeds: int | Sequence[int] | None = None,
    test_rows: int | None = None,
    quick: bool = False,
    resamples: int = RESAMPLES,
    log: Callable[[str], Any] | None = None,
    command: str | None = None,
) -> StudyResult:
    """Run a study, or resume one that was stopped.

    Args:
        study: The study; ``find_study`` finds one by its name.
        data: A folder of datasets, ``FOLDER/NAME/{train,dev,test}.jsonl``; or datasets by their names.
        folder: Where to save each finished cell, and in the end results, report and conclusion. None: nothing is
            saved.
        model: The encoder; variants with another encoder are then left out. None: the embedded default.
        seeds: The seeds, or their number; None: as the study says.
        test_rows: Evaluate on this many test rows; None: as the study says.
        quick: Run a tiny version, which shows the form of the output.
        resamples: The number of bootstrap samples of the paired tests.
        log: Called with a line about each cell.
        command: The command to name in the results.
    """
    study = study.quick() if quick else study
    if folder is not None:
        _check_folder(Path(folder).expanduser(), study)
    splits = {name: load_dataset(data, name, task) for name, task in study.datasets.items()}
    grids = [
        Grid(
            datasets=[splits[name]],
            variants=variants_of(_on_model(part.variants_for(splits[name].task), model)),
            regimes=[Regime.of(regime) for regime in part.regimes],
            seeds=seeds_of(study.seeds if seeds is None else seeds)[: part.seeds],
            model=model,
            measured_rows=study.test_rows if test_rows is None else test_rows,
        )
        for part in study.parts
        for name in part.datasets
    ]
    comparison = compare_grids(grids, folder, reference=study.reference, resamples=resamples, log=log, command=command)
    conclusion = study.conclude(Evidence(comparison, splits, model))
    result = StudyResult(study, comparison, conclusion, quick)
    if folder is not None:
        result.save(folder)
    return result


def _check_folder(folder: Path, study: Study) -> None:
    """Raise if the folder holds something else, before any work is done: files of both would mix."""
    for name, what in (("maskmatch.json", "a classifier"), ("export.json", "an export")):
        if (folder / name).exists():
            raise MaskMatchError(f"{folder} holds {what}; name another folder for the study.")
    try:
        other = json.loads((folder / "results.json").read_text(encoding="utf-8"))["study"]
    except (OSError, ValueError, KeyError, TypeError):  # nothing that a study has written
        return
    if other != study.name:
        raise MaskMatchError(f"{folder} holds the study {other!r}; name another folder for {study.name!r}.")


def load_dataset(data: str | Path | Mapping[str, Splits], name: str, task: str) -> Splits:
    """A dataset of a study.

    ``NAME@N`` is the one called NAME, cut to N of its labels. ``NAME+OTHER`` has the texts of OTHER as its unlabelled
    texts.
    """
    name, _, other = name.partition("+")
    if other:
        return load_dataset(data, name, task).with_unlabelled(load_dataset(data, other, task))
    base, _, count = name.partition("@")
    if count and not count.isdecimal():
        raise MaskMatchError(f"{name!r} is not a dataset; write a number of labels after @, as in banking77@10.")
    if not isinstance(data, (str, Path)) and name in data:
        return data[name]
    if not isinstance(data, (str, Path)) and base not in data:
        raise MaskMatchError(f"The dataset {base!r} is not among those given ({', '.join(data)}); the study needs it.")
    splits = Splits.from_folder(data, base, task) if isinstance(data, (str, Path)) else data[base]
    return splits.with_labels(int(count)) if count else splits


def _on_model(variants: Sequence[Variant], model: str | Path | None) -> list[Variant]:
    """The variants to run on an encoder that the user named: those with an encoder of their own are left out."""
    return [variant for variant in variants if model is None or "model" not in variant.matcher]
