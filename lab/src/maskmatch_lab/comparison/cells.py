"""A cell of a comparison, and the folder of finished cells, each in a small file of its own."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.files import write_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

FORMAT = 1
logger = logging.getLogger("maskmatch")


@dataclass(frozen=True)
class Figures:
    """The results of a cell.

    Attributes:
        rows: The number of texts that were evaluated.
        accuracy: The share of correct predictions; with several labels per text, of exactly correct ones.
        macro_f1: The mean F1 over labels.
        metric: The name of the task's own metric.
        score: The value of that metric.
        expected_calibration_error: The mean difference between confidence and accuracy.
        training_texts: The number of training texts.
        steps: The number of training steps.
        training_seconds: The time of training; 0 without training.
        texts_per_second: The speed of prediction, including the encoding of labels.
        trained_parameters: The number of trained parameters.
        peak_megabytes: The peak resident memory of the process during training; None if unknown.
        cut: The number of evaluated texts that were longer than the maximum length and were truncated.
        label_seconds: The time to encode all labels before the first prediction; None in older cells.
        prediction_megabytes: The peak resident memory of the process during prediction; None if unknown.
        training_rise: The increase of memory during training in megabytes; None if unknown, and in older cells.
        prediction_rise: The same during prediction.
        adaptation: The result of adapting to unlabelled texts; None if there were none, and in older cells.
        seen_accuracy: The accuracy on rows of labels that training saw, if labels were left out; None otherwise.
        unseen_accuracy: The accuracy on rows of the labels that were left out.
    """

    rows: int
    accuracy: float
    macro_f1: float
    metric: str
    score: float
    expected_calibration_error: float | None
    training_texts: int
    steps: int
    training_seconds: float
    texts_per_second: float | None
    trained_parameters: int
    peak_megabytes: float | None
    cut: int
    label_seconds: float | None = None
    prediction_megabytes: float | None = None
    training_rise: float | None = None
    prediction_rise: float | None = None
    adaptation: Mapping[str, Any] | None = None
    seen_accuracy: float | None = None
    unseen_accuracy: float | None = None

    @property
    def prediction_speed(self) -> float | None:
        """Texts per second, without the encoding of labels."""
        if not self.texts_per_second or self.label_seconds is None:
            return None
        seconds = self.rows / self.texts_per_second - self.label_seconds
        return self.rows / seconds if seconds > 0 else None


@dataclass(frozen=True)
class Answers:
    """The true and the predicted labels of the evaluated rows, without their texts.

    Attributes:
        rows: The numbers of the rows in their table.
        labels: The labels.
        true: Per row, the position of its label in ``labels``, or a list of positions.
        predicted: The same of its predicted label.
    """

    rows: tuple[int, ...]
    labels: tuple[Any, ...]
    true: tuple[Any, ...]
    predicted: tuple[Any, ...]

    @classmethod
    def of(cls, rows: Sequence[int], known: Sequence[Any], true: Sequence[Any], predicted: Sequence[Any]) -> Answers:
        """Answers with labels as numbers: first the labels of the classifier, then others that occur."""
        several = [row for row in (*true, *predicted) if isinstance(row, (list, tuple))]
        single = [row for row in (*true, *predicted) if not isinstance(row, (list, tuple))] if not several else []
        labels = dict.fromkeys([*known, *single, *(label for row in several for label in row)])
        place = {label: number for number, label in enumerate(labels)}

        def numbered(row: Any) -> Any:
            return sorted(place[label] for label in row) if several else place[row]

        return cls(
            tuple(int(row) for row in rows),
            tuple(label if isinstance(label, (str, int, float, bool)) else str(label) for label in labels),
            tuple(map(numbered, true)),
            tuple(map(numbered, predicted)),
        )

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether the prediction of each row is correct: (rows,)."""
        return np.array([true == given for true, given in zip(self.true, self.predicted, strict=True)], dtype=bool)


@dataclass(frozen=True)
class Cell:
    """A finished cell: one method on one dataset in one regime with one seed."""

    dataset: str
    method: str
    regime: str
    seed: int
    digest: str
    """The digest of everything that can change the result: settings, weights, data."""
    settings: Mapping[str, Any]
    figures: Figures
    answers: Answers
    notes: tuple[str, ...]
    """Notes of the evaluation, in sentences."""
    versions: Mapping[str, str]

    def to_json(self, answers: bool = True) -> dict[str, Any]:
        """The cell as plain JSON, with or without its answers."""
        data = {"format": FORMAT, **asdict(self)}
        if not answers:
            del data["answers"], data["format"]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Cell:
        """The cell that :meth:`to_json` wrote."""
        parts = {name: data[name] for name in cls.__dataclass_fields__}
        parts["figures"] = Figures(**data["figures"])
        parts["answers"] = Answers(**{name: tuple(values) for name, values in data["answers"].items()})
        parts["notes"] = tuple(data["notes"])
        return cls(**parts)


class CellStore:
    """The folder of finished cells.

    Args:
        folder: The folder of the comparison; its cells are in its subfolder ``cells``. None: cells are not saved.
    """

    def __init__(self, folder: str | Path | None) -> None:
        self._folder = None if folder is None else Path(folder).expanduser() / "cells"
        if self._folder is not None:
            make_folder(self._folder)

    def find(self, name: str, digest: str) -> Cell | None:
        """A finished cell with this digest, or None; a damaged file is logged, and its cell runs again."""
        if self._folder is None:
            return None
        path = self._path(self._folder, name, digest)
        if not path.is_file():
            return None
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["format"] != FORMAT or data["digest"] != digest:
                return None
            return Cell.from_json(data)
        except (ValueError, KeyError, TypeError, AttributeError):
            logger.warning("%s is damaged; its cell runs again.", path)
            return None

    def save(self, name: str, cell: Cell) -> None:
        """Write a cell atomically."""
        if self._folder is not None:
            text = json.dumps(cell.to_json(), ensure_ascii=False, default=str) + "\n"
            write_text(self._path(self._folder, name, cell.digest), text)

    @staticmethod
    def _path(folder: Path, name: str, digest: str) -> Path:
        readable = re.sub(r"[^\w.-]+", "-", name).strip("-")[:100]
        return folder / f"{readable}-{digest[:16]}.json"


def make_folder(folder: Path) -> None:
    """Make a folder, or raise an error that names the reason."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MaskMatchError(f"{folder} cannot be created: {error.strerror}; choose another folder.") from error
