"""A project: a folder with a database and the classifiers that were made in it."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.config.tasks import find_task
from maskmatch.data import iter_examples
from maskmatch.data.tables import write_table
from maskmatch.errors import MaskMatchError
from maskmatch.labels.files import save_labels
from maskmatch.serving.loading import load_predictor
from maskmatch.storage.layout import folder_hash, read_config
from maskmatch.workbench.engine import Engine
from maskmatch.workbench.store import ChangedMeanwhileError, Labels, ProjectLabel, Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from maskmatch.labels import LabelSet
    from maskmatch.prediction.editing import EditablePredictor

logger = logging.getLogger("maskmatch")

DATABASE = "project.db"
NAMES_ALONE = 0
"""The run that reads names alone."""

HELD_BACK = 5
"""One of this many marks that were drawn at random is held back from training, to judge what it brought."""

ENOUGH_TO_JUDGE = 10
"""How many held-back marks it takes to decide that a trained classifier is worse."""

COLUMNS = ("label", "probability", "mark", "who")


class Project:
    """The texts, labels, marks and classifiers of a project.

    Args:
        folder: The folder.
        database: The address of its database; None: SQLite in the folder.
        model: A classifier or an export that predicts first; None: the embedded default.
        task: The task of a new project.
    """

    def __init__(
        self, folder: Path, *, database: str | None = None, model: str | None = None, task: str | None = None
    ) -> None:
        self.folder = folder.expanduser()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise MaskMatchError(f"{self.folder} cannot be made: {error.strerror}.") from error
        self.store = Store(database or f"sqlite:///{self.folder.resolve() / DATABASE}")
        known = self.store.setting("task")
        if task is not None and known not in (None, task):
            raise MaskMatchError(f"The project is for the task {known}; leave --task out, or begin another project.")
        self.task = find_task(task or known or "topic").name
        self.model = model
        self.store.set("task", self.task)
        for run in self.store.runs():  # the process that ran it has ended
            if run["state"] == "running":
                self.store.finish_run(run["id"], "failed", {"error": "The workbench was closed."})
        self._training: Training | None = None
        self.engine = self._engine()

    def close(self) -> None:
        """Stop what runs in the background."""
        if self._training is not None:
            self._training.cancel()
        self.engine.stop()
        self.store.close()

    # -- texts and labels ------------------------------------------------------------------------------------

    def import_file(self, path: str, **reading: Any) -> int:
        """Add the texts of a file, with all of its columns."""

        def rows() -> Iterator[tuple[Any, dict[str, Any]]]:
            chunks = iter_examples(path, find_task(self.task).fields, want_label=False, keep_rows=True, **reading)
            for chunk in chunks:
                assert chunk.table is not None
                good = [row for row, why in zip(chunk.table.rows, chunk.table.problems, strict=True) if why is None]
                yield from ((text, row.fields) for text, row in zip(chunk.texts, good, strict=True))

        count = self.store.import_texts(rows())
        self.engine.encode_more()
        return count

    def start_labels(self, labels: LabelSet) -> Labels:
        """The labels of a new project."""
        own = tuple(ProjectLabel.of(key, label) for key, label in enumerate(labels.labels, 1))
        self.store.set("first keys", {label.name: label.key for label in own})
        if len(own) < 2:
            raise MaskMatchError("A classifier needs at least two labels; give more with --labels.")
        found = self.store.set_labels(own, f"began with {len(own)} labels", who="", expected=self.labels.version)
        if self.model is not None and read_config(Path(self.model)) is not None:  # its labels get these keys
            self.engine.stop()
            self.engine = self._engine()
        return found

    @property
    def labels(self) -> Labels:
        """The labels."""
        return self.store.labels()

    def truth(self) -> dict[int, int]:
        """The label of each text that has a mark of one label; where people disagree, that of the latest mark."""
        return {mark.text: mark.labels[0] for mark in self.store.marks() if len(mark.labels) == 1}

    # -- classifiers -----------------------------------------------------------------------------------------

    @property
    def run(self) -> int:
        """The run that predicts."""
        return int(self.store.setting("run", NAMES_ALONE))

    def choose(self, run: int) -> None:
        """Predict with the classifier of a run from now on."""
        if run == self.run:
            return
        before = self.store.setting("run", NAMES_ALONE)
        self.store.set("run", run)
        try:
            engine = self._engine()
        except MaskMatchError:
            self.store.set("run", before)
            raise
        self.engine.stop()
        self.engine = engine

    def _engine(self) -> Engine:
        run = self.run
        if run != NAMES_ALONE:
            model = str(self.folder / self._run(run)["folder"])
            predictor = load_predictor(model)
        elif self.model is None:
            from maskmatch.serving.default_export import default_export

            model = str(default_export(self.task))
            predictor = load_predictor(model)
        else:
            model = self.model
            predictor = self._given(model)
        return Engine(self.store, self.folder, predictor, folder_hash(Path(model)) or model)

    def _given(self, model: str) -> EditablePredictor:
        """The classifier or encoder that the user named; its labels get the keys of the project's."""
        import maskmatch
        from maskmatch.serving.default_export import PLACEHOLDERS

        if read_config(Path(model)) is None:  # an encoder
            return maskmatch.MaskMatcher.from_pretrained(model, PLACEHOLDERS, task=self.task, verbose=False)
        predictor = load_predictor(model)
        keys: dict[str, int] = self.store.setting("first keys", {})
        own = {label.name: label for label in predictor.bank.known_labels.labels}
        same = {own[name].id: replace(own[name], id=key) for name, key in keys.items() if name in own}
        if same:
            predictor.edit_labels(rename=same)
        return predictor

    def _run(self, run: int) -> dict[str, Any]:
        found = next((each for each in self.store.runs() if each["id"] == run), None)
        if found is None or found["state"] != "done":
            raise ChangedMeanwhileError("This classifier is no longer there.")
        return found

    # -- learning --------------------------------------------------------------------------------------------

    @property
    def training(self) -> Training | None:
        """The training that runs, or that ran last."""
        return self._training

    def train(self, who: str) -> Training:
        """Train on all marks but those held back, in the background."""
        if self._training is not None and self._training.running:
            raise MaskMatchError("A classifier is being trained; wait, or cancel it.")
        self._training = Training(self, who)
        return self._training

    def held_back(self) -> set[int]:
        """The marked texts that training does not see: some of those that were drawn at random."""
        drawn = [mark.text for mark in self.store.marks() if mark.reason == "random" and len(mark.labels) == 1]
        return {text for text in drawn if text % HELD_BACK == 0}

    # -- what leaves the project -----------------------------------------------------------------------------

    def save_predictions(self, path: Path) -> Path:
        """Write all texts with their columns, predictions and marks; the ending of the file says the format."""
        labels = self.labels
        predictions = self.engine.predictions(labels)
        if len(predictions) < self.store.count:
            raise MaskMatchError("The texts are still being encoded; wait until all have predictions.")
        names = {label.key: label.outside().id for label in labels.labels}
        marks = {mark.text: mark for mark in self.store.marks()}
        columns: dict[str, None] = {}
        for part in self.store.all_rows():
            for _, row in part:
                columns.update(dict.fromkeys(row))
        prefix = "" if not set(map(str.casefold, columns)) & set(COLUMNS) else "predicted_"

        def rows() -> Iterator[dict[str, Any]]:
            number = 0
            for part in self.store.all_rows():
                for _, row in part:
                    mark = marks.get(number)
                    cells = {
                        "label": names[int(predictions.keys[number])],
                        "probability": round(float(predictions.probabilities[number]), 6),
                        "mark": None if mark is None else "|".join(str(names[key]) for key in mark.labels),
                        "who": None if mark is None else mark.who,
                    }
                    yield {**row, **{f"{prefix}{name}": cell for name, cell in cells.items()}}
                    number += 1

        return write_table(path, [*columns, *(f"{prefix}{name}" for name in COLUMNS)], rows())

    def save_labels(self, path: Path) -> Path:
        """Write the labels to a label file."""
        return save_labels(self.labels.outside(), path)

    def save_classifier(self, folder: Path, *, int8: bool = False) -> Path:
        """Save the classifier that predicts, with the labels as they are now; as an int8 export, if asked for."""
        from maskmatch import MaskMatcher, export

        labels = self.labels
        run = self.run
        source = self.model if run == NAMES_ALONE else str(self.folder / self._run(run)["folder"])
        if run == NAMES_ALONE:
            matcher = MaskMatcher.from_pretrained(source, labels.outside(), task=self.task, verbose=False)
        else:
            matcher = MaskMatcher.from_pretrained(source, verbose=False)
            matcher.edit_labels(**edits_to(matcher.bank.known_labels, labels.inside()))
            matcher.edit_labels(rename={label.key: label.outside() for label in labels.labels})
        if int8:
            export(matcher, folder, int8=True)
            return folder
        return matcher.save_pretrained(folder)


def edits_to(own: LabelSet, wanted: LabelSet) -> dict[str, Any]:
    """The edits that make one label set of another; labels with the same id are the same."""
    return {
        "add": [label for label in wanted.labels if label.id not in own] or None,
        "remove": [id_ for id_ in own if id_ not in wanted],
        "change": [label for label in wanted.labels if label.id in own and label != own.label(label.id)] or None,
    }


class Training:
    """A classifier that is trained on the marks of a project, in the background."""

    def __init__(self, project: Project, who: str) -> None:
        self._project, self._who = project, who
        labels, held = project.labels, project.held_back()
        truth = project.truth()
        self._rows = {text: key for text, key in truth.items() if text not in held}
        self._held = {text: key for text, key in truth.items() if text in held}
        if len(set(self._rows.values())) < 2:
            raise MaskMatchError("Training needs marked texts of at least two labels; mark some more.")
        self._labels = labels
        self.share, self.message = 0.0, "loading"
        self.seen = False  # whether a page has shown how it ended
        self._cancelled = threading.Event()
        self.run = project.store.start_run("train", who)
        self._thread = threading.Thread(target=self._work, name="maskmatch training", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()

    def cancel(self) -> None:
        """Stop at the next step; nothing of it is kept."""
        self._cancelled.set()
        self._thread.join(timeout=60)

    def wait(self) -> None:
        """Wait until it has ended."""
        self._thread.join()

    def _work(self) -> None:
        store, folder = self._project.store, f"run-{self.run}"
        started = time.monotonic()
        try:
            figures = self._train(self._project.folder / folder)
        except _CancelledError:
            store.finish_run(self.run, "cancelled", {})
        except Exception as error:
            logger.exception("training failed")
            store.finish_run(self.run, "failed", {"error": str(error)})
        else:
            seconds = round(time.monotonic() - started, 1)
            store.finish_run(self.run, "done", {**figures, "seconds": seconds}, folder)
            self.message = "done"
            if figures["better"]:
                self._project.choose(self.run)
        finally:
            with suppress(OSError):
                if not (self._project.folder / folder / "maskmatch.json").exists():
                    shutil.rmtree(self._project.folder / folder, ignore_errors=True)

    def _train(self, folder: Path) -> dict[str, Any]:
        from maskmatch import MaskMatcher
        from maskmatch.workbench.watching import watcher

        project = self._project
        matcher = MaskMatcher.from_pretrained(project.model, self._labels.inside(), task=project.task, verbose=False)
        texts = project.store.texts(list(self._rows))
        self.message = "training"
        matcher.fit(texts, list(self._rows.values()), callbacks=[watcher(self._step)])
        self._check()
        self.message = "judging"
        figures: dict[str, Any] = {"marks": len(self._rows), "held back": len(self._held), "better": True}
        if self._held:
            held = project.store.texts(list(self._held))
            truth = np.array(list(self._held.values()))
            after = float(np.mean(np.array(matcher.predict(held)) == truth))
            before = project.engine.predictions(self._labels).keys[list(self._held)]
            figures |= {"accuracy": round(after, 4), "accuracy before": round(float(np.mean(before == truth)), 4)}
            figures["better"] = len(self._held) < ENOUGH_TO_JUDGE or after >= figures["accuracy before"]
        self._check()
        matcher.save_pretrained(folder)
        return figures

    def _step(self, share: float) -> None:
        self._check()
        self.share = share

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise _CancelledError


class _CancelledError(Exception):
    """Somebody has cancelled the training."""
