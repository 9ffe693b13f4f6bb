"""The datasets of a comparison: train, dev and test rows of one task, under one name."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.config.tasks import TASKS, Task, find_task
from maskmatch.data import Examples, load_examples
from maskmatch.errors import MaskMatchError
from maskmatch.labels import LabelSet
from maskmatch.labels.targets import has_several, labels_in, plain_labels
from maskmatch_lab.comparison.cell_key import digest

if TYPE_CHECKING:
    from collections.abc import Sequence

MEASURED_ROWS_SEED = 0
"""The draw of rows to evaluate on is the same for all methods, regimes and seeds."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Labelled rows.

    Attributes:
        texts: Strings, or dicts of fields.
        labels: One label per text, or a list of labels per text.
        numbers: The row number of each text in its table, from 0 on.
    """

    texts: Sequence[Any]
    labels: Sequence[Any]
    numbers: Sequence[int]

    @classmethod
    def of(cls, examples: Examples) -> Rows:
        """Rows of a table; label numbers become names if the dataset has names for them."""
        assert examples.labels is not None
        names = examples.label_names or {}
        labels = [
            [names.get(each, each) for each in label] if isinstance(label, list) else names.get(label, label)
            for label in examples.labels
        ]
        numbers = range(len(examples)) if examples.row_numbers is None else examples.row_numbers
        return cls(examples.texts, labels, numbers)

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def digest(self) -> str:
        """The digest of the rows."""
        pairs = zip(self.texts, self.labels, self.numbers, strict=True)
        return digest(*(json.dumps(pair, sort_keys=True, default=str).encode() for pair in pairs))

    def select(self, positions: Sequence[int]) -> Rows:
        """Some of the rows."""
        return Rows(*([values[place] for place in positions] for values in (self.texts, self.labels, self.numbers)))

    def sample(self, count: int | None) -> Rows:
        """A fixed draw of this many rows, in their order; all rows if there are no more."""
        if count is None or count >= len(self):
            return self
        if count < 1:
            raise MaskMatchError(f"The number of rows to evaluate on is {count}; it must be 1 or more.")
        return self.select(sorted(random.Random(MEASURED_ROWS_SEED).sample(range(len(self)), count)))


@dataclass(frozen=True, eq=False)
class Splits:
    """A dataset: its name, its task, and its rows.

    Attributes:
        name: Its name in tables.
        task: Its task.
        train: The rows that regimes draw from.
        test: The rows to evaluate on.
        dev: The rows to tune on, and to choose the best checkpoint on if that is wanted.
        label_set: The labels with descriptions or phrases. None: the names that occur in train.
        foreign: Unlabelled texts of another dataset. None: unlabelled texts are those of train.
    """

    name: str
    task: Task
    train: Rows
    test: Rows
    dev: Rows | None = None
    label_set: LabelSet | None = None
    foreign: Sequence[Any] | None = None

    @classmethod
    def of(
        cls,
        name: str,
        task: str | Task,
        train: tuple[Sequence[Any], Sequence[Any]],
        test: tuple[Sequence[Any], Sequence[Any]],
        dev: tuple[Sequence[Any], Sequence[Any]] | None = None,
    ) -> Splits:
        """A dataset from lists: ``(texts, labels)`` for each split."""
        rows = [None if split is None else _listed(split, name) for split in (train, test, dev)]
        assert rows[0] is not None
        assert rows[1] is not None
        return cls(name, find_task(task), rows[0], rows[1], rows[2])

    @classmethod
    def from_files(
        cls,
        name: str,
        task: str | Task,
        train: str | Path,
        test: str | Path,
        dev: str | Path | None = None,
        **reading: Any,
    ) -> Splits:
        """A dataset from a file for each split; ``reading`` are options of ``load_examples``."""
        task = find_task(task)
        rows = [
            None if file is None else Rows.of(load_examples(file, task.fields, **reading))
            for file in (train, test, dev)
        ]
        assert rows[0] is not None
        assert rows[1] is not None
        return cls(name, task, rows[0], rows[1], rows[2])

    @classmethod
    def from_folder(cls, folder: str | Path, name: str, task: str | Task = "topic") -> Splits:
        """The dataset ``FOLDER/NAME/{train,dev,test}.jsonl`` (or ``.jsonl.gz``); dev is optional."""
        home = Path(folder).expanduser() / name
        if not home.is_dir():
            raise MaskMatchError(
                f"There is no dataset {name!r} in {folder}; a dataset is a folder with train.jsonl and test.jsonl."
            )
        files = {split: _split_file(home, split) for split in ("train", "dev", "test")}
        missing = next((split for split in ("train", "test") if files[split] is None), None)
        if missing is not None:
            raise MaskMatchError(f"The dataset {name!r} lacks {missing}.jsonl or {missing}.jsonl.gz in {home}.")
        assert files["train"] is not None
        assert files["test"] is not None
        return cls.from_files(name, task, files["train"], files["test"], files["dev"])

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise MaskMatchError("A dataset of the comparison has no name; give each a name of its own.")
        if len(self.labels) < 2:
            raise MaskMatchError(
                f"The dataset {self.name!r} has fewer than two labels in train; give rows of at least two labels."
            )

    @cached_property
    def multi_label(self) -> bool:
        """Whether a text may have several labels."""
        return has_several(list(self.train.labels))

    @cached_property
    def labels(self) -> LabelSet:
        """The labels that all methods choose from."""
        if self.label_set is not None:
            return self.label_set
        return LabelSet.of(labels_in(plain_labels(self.train.labels, self.multi_label), self.multi_label))

    @property
    def unlabelled(self) -> Sequence[Any]:
        """The texts that variants may learn from without labels."""
        return self.train.texts if self.foreign is None else self.foreign

    def with_unlabelled(self, other: Splits) -> Splits:
        """The same dataset with the train texts of another one as its unlabelled texts."""
        if other.task.fields != self.task.fields:
            raise MaskMatchError(f"The texts of {other.name!r} do not have the fields of {self.name!r}.")
        return replace(self, name=f"{self.name}+{other.name}", foreign=other.train.texts)

    def with_labels(self, count: int, name: str | None = None) -> Splits:
        """A dataset with fewer labels, always the same ones, and the rows that have them.

        Args:
            count: The number of labels.
            name: The new name; None: the old name and the number.
        """
        if not 2 <= count <= len(self.labels) or self.multi_label:
            raise MaskMatchError(
                f"The dataset {self.name!r} cannot be cut to {count} labels; give a number from 2 to "
                f"{len(self.labels)}, and a dataset with one label per text."
            )
        known = list(self.labels)
        kept = set(random.Random(MEASURED_ROWS_SEED).sample(range(len(known)), count))
        labels = self.labels.removed([id_ for place, id_ in enumerate(known) if place not in kept])
        rows = [
            None if part is None else part.select([row for row, label in enumerate(part.labels) if label in labels])
            for part in (self.train, self.test, self.dev)
        ]
        assert rows[0] is not None
        assert rows[1] is not None
        return Splits(name or f"{self.name}@{count}", self.task, rows[0], rows[1], rows[2], labels)

    def measured(self, split: str) -> Rows:
        """The rows of a split to evaluate on."""
        if split == "test":
            return self.test
        if self.dev is None:
            raise MaskMatchError(f"The dataset {self.name!r} has no dev rows; add them, or do not use dev.")
        return self.dev


def parse_datasets(named: str, task: str | None = None) -> dict[str, Task]:
    """The datasets of ``banking77:intent,trec50:question``, each with its task.

    Example:
        >>> {name: task.name for name, task in parse_datasets("banking77:intent, agnews").items()}
        {'banking77': 'intent', 'agnews': 'topic'}
    """
    tasks: dict[str, Task] = {}
    for part in filter(None, (part.strip() for part in named.split(","))):
        name, _, own = part.partition(":")
        if name in tasks:
            raise MaskMatchError(f"The dataset {name!r} is named twice; name each once.")
        if own and own not in TASKS:
            raise MaskMatchError(f"{part!r} has no known task; write NAME:TASK with one of {', '.join(TASKS)}.")
        tasks[name] = find_task(own or task or "topic")
    if not tasks:
        raise MaskMatchError("No dataset is named; write for example banking77:intent,trec50:question.")
    return tasks


def datasets_of(datasets: Splits | Sequence[Splits]) -> list[Splits]:
    """The datasets as a list; raise if two have the same name."""
    listed = [datasets] if isinstance(datasets, Splits) else list(datasets)
    names = [data.name for data in listed]
    if not names:
        raise MaskMatchError("There is no dataset to compare on; give at least one.")
    if len(set(names)) < len(names):
        raise MaskMatchError(f"Two datasets have the same name ({', '.join(names)}); give each a name of its own.")
    return listed


def _split_file(home: Path, split: str) -> Path | None:
    files = [home / f"{split}.{ending}" for ending in ("jsonl", "jsonl.gz") if (home / f"{split}.{ending}").is_file()]
    return files[0] if files else None


def _listed(split: tuple[Sequence[Any], Sequence[Any]], name: str) -> Rows:
    texts, labels = list(split[0]), list(split[1])
    if not texts or len(texts) != len(labels):
        raise MaskMatchError(
            f"A split of the dataset {name!r} has {len(texts)} texts and {len(labels)} labels; give equally many, and "
            "at least one."
        )
    return Rows(texts, labels, range(len(texts)))
