"""A project: a folder with a database and the classifiers that were made in it."""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import threading
import zlib
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.config.tasks import find_task
from maskmatch.data import iter_examples
from maskmatch.errors import MaskMatchError
from maskmatch.files import file_digest, locked
from maskmatch.serving.loading import load_predictor
from maskmatch.storage.export.folder import is_export
from maskmatch.storage.layout import folder_hash, read_config
from maskmatch.workbench.engine import Engine
from maskmatch.workbench.layout import Layout
from maskmatch.workbench.learning import HELD_BACK, Kind, Learning
from maskmatch.workbench.queue import random_marks
from maskmatch.workbench.records import ChangedMeanwhileError, Labels, ProjectLabel
from maskmatch.workbench.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from maskmatch.labels import LabelSet
    from maskmatch.prediction.editing import EditablePredictor
    from maskmatch.workbench.people import People

logger = logging.getLogger("maskmatch")

DATABASE = "project.db"
NAMES_ALONE = 0
"""The run that reads names alone."""

KINDS = {"names": "label names alone", "train": "trained on marks", "adapt": "learnt from unmarked texts"}

MOST_ON_MAP, LEAST_ON_MAP = 3_000, 3
"""How many texts the map shows at most, and at least."""


class Project:
    """The texts, labels, marks and classifiers of a project.

    Args:
        folder: The folder.
        database: The address of its database; None: SQLite in the folder.
        model: A classifier or an encoder that predicts first; None: the embedded default.
        task: The task of a new project.
        people: Who may open its pages; None: everybody who reaches them.
    """

    def __init__(
        self,
        folder: Path,
        *,
        database: str | None = None,
        model: str | None = None,
        task: str | None = None,
        people: People | None = None,
    ) -> None:
        self.people = people
        self.folder = folder.expanduser()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise MaskMatchError(f"{self.folder} cannot be made: {error.strerror}.") from error
        self._alone = ExitStack()
        try:
            self._alone.enter_context(locked(self.folder, 1.0))
        except MaskMatchError:
            raise MaskMatchError(f"The project {self.folder} is open in another workbench; close that first.") from None
        try:
            self._open(database, model, task)
        except BaseException:
            self._alone.close()
            raise

    def _open(self, database: str | None, model: str | None, task: str | None) -> None:
        self.store = Store(database or f"sqlite:///{self.folder.resolve() / DATABASE}")
        known = self.store.setting("task")
        if task is not None and known not in (None, task):
            raise MaskMatchError(f"The project is for the task {known}; leave --task out, or begin another project.")
        self.task = find_task(task or known or "topic").name
        if model is None:
            model = self.store.setting("model")
        elif Path(model).expanduser().exists():  # the project may be opened from another folder
            model = str(Path(model).expanduser().resolve())
        self.model = model
        if model is not None:
            self.store.set("model", model)
        self.store.set("task", self.task)
        if self.store.setting("id") is None:
            self.store.set("id", secrets.token_hex(8))
        for run in self.store.runs():  # the process that ran it has ended
            if run["state"] == "running":
                self.store.finish_run(run["id"], "failed", {"error": "The workbench was closed."})
        self._training: Learning | None = None
        self._choosing = threading.Lock()
        self._map: tuple[tuple[int, list[int]], Layout] | None = None
        try:
            self.engine = self._engine(self.run)
        except MaskMatchError as error:
            if self.run == NAMES_ALONE:
                raise
            logger.warning("%s It is left; the names alone predict.", error)
            self.store.set("run", NAMES_ALONE)
            self.engine = self._engine(NAMES_ALONE)

    def close(self) -> None:
        """Stop what runs in the background."""
        if self._training is not None:
            self._training.cancel()
        if self._map is not None:
            self._map[1].stop()
        self.engine.stop()
        self.store.close()
        self._alone.close()

    # -- texts and labels ------------------------------------------------------------------------------------

    def import_once(self, source: Any, **reading: Any) -> int | None:
        """Add texts, unless exactly these were added before; returns how many."""
        path = Path(source).expanduser() if isinstance(source, str) else None
        digest = _digest(source) if path is None else file_digest(path) if path.is_file() else ""
        return self._import(source, _digest([digest, reading]), **reading)

    def import_rows(self, source: Any, **reading: Any) -> int:
        """Add the texts of a file, or of a table in memory, with all of its columns.

        Args:
            source: What ``load_examples`` reads.
            **reading: Options of ``load_examples``.
        """
        count = self._import(source, None, **reading)
        assert count is not None
        return count

    def _import(self, source: Any, digest: str | None, **reading: Any) -> int | None:
        def rows() -> Iterator[tuple[Any, dict[str, Any]]]:
            chunks = iter_examples(source, find_task(self.task).fields, want_label=False, keep_rows=True, **reading)
            for chunk in chunks:
                assert chunk.table is not None
                good = [row for row, why in zip(chunk.table.rows, chunk.table.problems, strict=True) if why is None]
                yield from ((text, row.fields) for text, row in zip(chunk.texts, good, strict=True))

        count = self.store.import_texts(rows(), digest=digest)
        if count:
            self.engine.encode_more()
        return count

    def start_labels(self, labels: LabelSet) -> Labels:
        """The labels of a new project."""
        own = tuple(ProjectLabel.of(key, label) for key, label in enumerate(labels.labels, 1))
        if len(own) < 2:
            raise MaskMatchError("A classifier needs at least two labels; give more with --labels.")
        self.engine.pipeline(Labels(own))  # raises if the classifier cannot read them
        self.store.set("first keys", {label.name: label.key for label in own})
        found = self.store.set_labels(own, f"began with {len(own)} labels", who="", expected=self.labels.version)
        if self.model is not None and read_config(Path(self.model)) is not None:  # its labels get these keys
            self.engine.stop()
            self.engine = self._engine(self.run)
        return found

    @property
    def labels(self) -> Labels:
        """The labels."""
        return self.store.labels()

    def truth(self) -> dict[int, int]:
        """The label of each text whose latest mark, whoever made it, has one label."""
        latest = {mark.text: mark.labels for mark in self.store.marks()}
        return {text: labels[0] for text, labels in latest.items() if len(labels) == 1}

    def map(self) -> tuple[list[int], Layout] | None:
        """Some texts, drawn at random, and where they are in two dimensions; None while too few are encoded."""
        vectors = self.engine.vectors
        drawn = [text for text in self.store.drawn() if text < len(vectors)][:MOST_ON_MAP]
        if len(drawn) < LEAST_ON_MAP:
            return None
        key = (self.run, drawn)
        if self._map is None or self._map[0] != key:
            if self._map is not None:
                self._map[1].stop()
            self._map = (key, Layout(vectors[drawn].reshape(len(drawn), -1)))
        return drawn, self._map[1]

    # -- classifiers -----------------------------------------------------------------------------------------

    @property
    def run(self) -> int:
        """The run that predicts."""
        return int(self.store.setting("run", NAMES_ALONE))

    def choose(self, run: int) -> None:
        """Predict with the classifier of a run from now on."""
        if run == self.run:
            return
        with self._choosing:  # a training that has ended may choose, too
            engine = self._engine(run)  # first: a classifier that cannot be loaded is not kept
            self.store.set("run", run)
            self.engine.stop()
            self.engine = engine

    def _engine(self, run: int) -> Engine:
        if run != NAMES_ALONE:
            model = str(self.folder_of(run))
            predictor = load_predictor(model)
        elif self.model is None:
            from maskmatch.serving.default_export import default_export

            model = str(default_export(self.task))
            predictor = load_predictor(model)
        else:
            model = self.model
            predictor = self._given(model)
        identity = f"{self.store.setting('id')} {folder_hash(Path(model)) or model}"
        return Engine(self.store, self.folder, predictor, identity)

    def _given(self, model: str) -> EditablePredictor:
        """The classifier or encoder that the user named; its labels get the keys of the project's."""
        import maskmatch
        from maskmatch.serving.default_export import PLACEHOLDERS

        if read_config(Path(model)) is None:  # an encoder
            return maskmatch.MaskMatcher.from_pretrained(model, PLACEHOLDERS, task=self.task, verbose=False)
        if is_export(Path(model)):
            raise MaskMatchError(f"{model} is an export, which cannot be trained; give the classifier it was made of.")
        predictor = load_predictor(model)
        keys: dict[str, int] = self.store.setting("first keys", {})
        own = {label.name: label for label in predictor.bank.known_labels.labels}
        same = {own[name].id: replace(own[name], id=key) for name, key in keys.items() if name in own}
        if same:
            predictor.edit_labels(rename=same)
        return predictor

    def folder_of(self, run: int) -> Path:
        """The folder of the classifier of a run."""
        return self.folder / str(self.run_row(run)["folder"])

    @property
    def kind(self) -> str:
        """What kind of run predicts."""
        return "names" if self.run == NAMES_ALONE else str(self.run_row(self.run)["kind"])

    def run_row(self, run: int) -> dict[str, Any]:
        """What is known of a run that is done."""
        found = next((each for each in self.store.runs() if each["id"] == run), None)
        if found is None or found["state"] != "done":
            raise ChangedMeanwhileError("This classifier is no longer there.")
        return found

    # -- learning --------------------------------------------------------------------------------------------

    @property
    def training(self) -> Learning | None:
        """The training that runs, or that ran last."""
        return self._training

    def train(self, who: str, kind: Kind = "train") -> Learning:
        """Train on all marks but those held back, or adapt to all texts, in the background."""
        if self._training is not None and self._training.running:
            raise MaskMatchError("A classifier is being trained; wait, or cancel it.")
        self._training = Learning(self, who, kind)
        return self._training

    def held_back(self) -> set[int]:
        """The marked texts that training does not see: some of the random sample, always the same."""
        return {text for text in random_marks(self) if zlib.crc32(str(text).encode()) % HELD_BACK == 0}

    @property
    def learnt_from(self) -> frozenset[int]:
        """The texts whose marks the classifier that predicts was trained on."""
        return frozenset() if self.run == NAMES_ALONE else frozenset(self.run_row(self.run)["figures"].get("texts", ()))


def described(run: int, kind: str) -> str:
    """A run in a few words.

    >>> described(3, "train")
    '3: trained on marks'
    """
    return KINDS[kind] if run == NAMES_ALONE else f"{run}: {KINDS[kind]}"


def _digest(rows: Any) -> str:
    return hashlib.sha256(json.dumps(rows, sort_keys=True, default=str).encode()).hexdigest()
