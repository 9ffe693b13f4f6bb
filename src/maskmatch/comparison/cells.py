"""A cell of a comparison, and the folder in which finished cells are kept, each in a small file of its own."""

from __future__ import annotations

import json
import logging
import os
import re
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

FORMAT = 1
logger = logging.getLogger("maskmatch")


@dataclass(frozen=True)
class Figures:
    """What a cell found.

    Attributes:
        rows: How many texts were measured.
        accuracy: The share of texts that were right; with several labels a text, exactly right.
        macro_f1: The mean F1 over labels.
        metric: The name of the task's own metric.
        score: Its value.
        expected_calibration_error: How far confidence is from the chance of being right.
        training_texts: How many texts were trained on.
        steps: How many steps training took.
        training_seconds: How long it took; 0 without training.
        texts_per_second: The speed of prediction.
        trained_parameters: How many parameters were trained.
        peak_megabytes: The largest resident memory of the whole process during training; None where it is not known.
        cut: How many measured texts were longer than the model reads, and were shortened.
        label_seconds: How long it took to read all labels before the first prediction; None in older cells.
        prediction_megabytes: The largest resident memory of the whole process while labels were read and texts
            classified; None where it is not known.
        training_rise: By how many megabytes memory rose in training over what the process held before; None where it
            is not known, and in older cells.
        prediction_rise: The same while labels were read and texts classified.
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

    @property
    def prediction_speed(self) -> float | None:
        """Texts a second once the labels are read."""
        if not self.texts_per_second or self.label_seconds is None:
            return None
        seconds = self.rows / self.texts_per_second - self.label_seconds
        return self.rows / seconds if seconds > 0 else None


@dataclass(frozen=True)
class Answers:
    """The labels of the measured rows, true and predicted, but none of their texts.

    Attributes:
        rows: The numbers of the rows in their table.
        labels: The labels that the other two point at.
        true: Per row, the position of its label in ``labels``, or a list of them.
        predicted: The same of what was predicted.
    """

    rows: tuple[int, ...]
    labels: tuple[Any, ...]
    true: tuple[Any, ...]
    predicted: tuple[Any, ...]

    @classmethod
    def of(cls, rows: Sequence[int], known: Sequence[Any], true: Sequence[Any], predicted: Sequence[Any]) -> Answers:
        """Answers in which labels are numbered: those of the classifier, and then others that occur."""
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
        """Whether each row was right: (rows,)."""
        return np.array([true == given for true, given in zip(self.true, self.predicted, strict=True)], dtype=bool)


@dataclass(frozen=True)
class Cell:
    """A finished cell: one method on one dataset in one regime with one seed."""

    dataset: str
    method: str
    regime: str
    seed: int
    digest: str
    """Of all that decides on the result: settings, weights, data."""
    settings: Mapping[str, Any]
    figures: Figures
    answers: Answers
    notes: tuple[str, ...]
    """What the evaluation noted, in sentences."""
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
        folder: The folder of the comparison; its cells are in ``cells`` below it. None: cells are not kept.
    """

    def __init__(self, folder: str | Path | None) -> None:
        self._folder = None if folder is None else Path(folder).expanduser() / "cells"
        if self._folder is not None:
            make_folder(self._folder)

    def find(self, name: str, digest: str) -> Cell | None:
        """A finished cell with this digest; a file that is damaged is told, and its cell runs again."""
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
            logger.warning("%s is damaged; its cell is run again.", path)
            return None

    def keep(self, name: str, cell: Cell) -> None:
        """Write a cell, whole or not at all."""
        if self._folder is not None:
            text = json.dumps(cell.to_json(), ensure_ascii=False, default=str) + "\n"
            write_whole(self._path(self._folder, name, cell.digest), text)

    @staticmethod
    def _path(folder: Path, name: str, digest: str) -> Path:
        readable = re.sub(r"[^\w.-]+", "-", name).strip("-")[:100]
        return folder / f"{readable}-{digest[:16]}.json"


def write_whole(path: Path, text: str) -> None:
    """Write beside the file and then take its place, so that nobody ever reads half of it."""
    beside = path.with_name(f".{path.name[-60:]}.{uuid.uuid4().hex}")
    try:
        beside.write_bytes(text.encode("utf-8", errors="replace"))
        os.replace(beside, path)
    except OSError as error:
        raise MaskMatchError(f"{path} cannot be written: {error.strerror}; give a folder that can be.") from error
    finally:
        beside.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Make a folder, or say why it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MaskMatchError(f"{folder} cannot be made: {error.strerror}; name a folder that can be.") from error
