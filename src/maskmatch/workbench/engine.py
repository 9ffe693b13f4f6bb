"""The predictions for all texts of a project: texts are encoded once, in the background; labels change at once."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.label_tools.check import NameCheck
from maskmatch.prediction.editing import edit_steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from maskmatch.prediction.editing import EditablePredictor
    from maskmatch.prediction.pipeline import Pipeline
    from maskmatch.workbench.records import Labels
    from maskmatch.workbench.store import Store

logger = logging.getLogger("maskmatch")

ENCODED_AT_ONCE = 512
"""Texts are encoded, and shown with their predictions, in parts of this size."""


@dataclass(frozen=True)
class Predictions:
    """The predictions for the first n texts.

    Attributes:
        keys: The predicted label of each text: (n,).
        probabilities: Its probability: (n,).
        seconds: The next label: (n,).
        margins: How much more probable the first is than the next: (n,).
    """

    keys: NDArray[np.int64]
    probabilities: NDArray[np.float32]
    seconds: NDArray[np.int64]
    margins: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def counts(self) -> dict[int, int]:
        """How many texts each label has, by its key."""
        return _counts(self.keys)

    def followed_by(self, other: Predictions) -> Predictions:
        """These predictions, and those of further texts."""
        return Predictions(
            np.concatenate([self.keys, other.keys]),
            np.concatenate([self.probabilities, other.probabilities]),
            np.concatenate([self.seconds, other.seconds]),
            np.concatenate([self.margins, other.margins]),
        )


@dataclass(frozen=True)
class Effect:
    """What an edit of labels changes.

    Attributes:
        rows: How many texts were classified.
        changed: How many of them get another label.
        moves: The texts that go from one label to another, most first.
        before: How many texts each label has.
        after: How many it would have.
        right: How many marked texts are right before and after, and how many there are; None without marks.
        confusions: Pairs of a mark and another prediction, with how many there are before and after; those that
            change most first.
        findings: What the label check says of the names that change.
    """

    rows: int
    changed: int
    moves: dict[tuple[int, int], NDArray[np.int64]]
    before: dict[int, int]
    after: dict[int, int]
    right: tuple[int, int, int] | None
    confusions: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    findings: tuple[str, ...] = ()


NONE = Predictions(
    np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros(0, np.int64), np.zeros(0, np.float32)
)  # fmt: skip


class Engine:
    """Predicts the labels of all texts of a project.

    Args:
        store: The project's database.
        folder: Where vectors of texts are kept.
        predictor: The classifier or export that predicts.
        identity: What identifies its weights and prompts.
    """

    def __init__(self, store: Store, folder: Path, predictor: EditablePredictor, identity: str) -> None:
        self.store, self.predictor = store, predictor
        pipeline = predictor.pipeline
        if pipeline.scorer.in_context:
            raise MaskMatchError("This classifier reads its labels with each text, which the workbench does not show.")
        digest = hashlib.sha256(f"{identity}\n{json.dumps(predictor.config.to_json(), sort_keys=True)}".encode())
        self._file = folder / f"vectors-{digest.hexdigest()[:16]}.f32"
        any_text = dict.fromkeys(pipeline.config.fields, "a")
        self._shape: tuple[int, ...] = pipeline.all_vectors(pipeline.tokenize([any_text])).shape[1:]
        self._vectors = _stored(self._file, self._shape)[: store.count]
        self._count = len(self._vectors)
        self._lock = threading.RLock()
        self._cached: tuple[Any, Predictions] = (None, NONE)
        self._pipelines: dict[str, Pipeline] = {}
        self._names = NameCheck(predictor)
        self._stopped = threading.Event()
        self._more = threading.Event()
        self.error: str | None = None
        self._thread = threading.Thread(target=self._work, name="maskmatch workbench", daemon=True)
        self._thread.start()

    # -- encoding --------------------------------------------------------------------------------------------

    @property
    def encoded(self) -> int:
        """How many texts are encoded."""
        return self._count

    @property
    def vectors(self) -> NDArray[np.float32]:
        """The vectors of the texts that are encoded: (n, masks, dim)."""
        return self._vectors[: self._count]

    def encode_more(self) -> None:
        """Called when texts were added."""
        self._more.set()

    def wait(self, seconds: float = 600) -> None:
        """Wait until all texts are encoded."""
        until = time.monotonic() + seconds
        while self._count < self.store.count and self.error is None:
            if time.monotonic() > until:
                raise MaskMatchError("The texts were not encoded in time.")
            time.sleep(0.01)

    def stop(self) -> None:
        """Stop encoding; what is encoded is kept."""
        self._stopped.set()
        self._more.set()
        self._thread.join(timeout=60)

    def _work(self) -> None:
        while not self._stopped.is_set():
            self._more.clear()
            if self._stopped.is_set():  # between the two lines above
                return
            try:
                self._encode_all()
                self.error = None
            except Exception as error:  # the page shows it; texts that are added are tried again
                logger.exception("encoding failed")
                self.error = str(error)
            self._more.wait()

    def _encode_all(self) -> None:
        total = self.store.count
        if total == self._count:
            return
        with self._lock:  # readers keep the array that they have
            grown = np.zeros((total, *self._shape), np.float32)
            grown[: self._count] = self._vectors[: self._count]
            self._vectors = grown
        pipeline = self.predictor.pipeline
        with self._file.open("ab") as file:
            file.truncate(self._count * grown[0].nbytes)
            while self._count < total and not self._stopped.is_set():
                last = min(self._count + ENCODED_AT_ONCE, total)
                texts = self.store.texts(range(self._count, last))
                part = pipeline.all_vectors(pipeline.tokenize(texts))
                grown[self._count : last] = part
                file.write(part.astype(np.float32).tobytes())
                file.flush()
                os.fsync(file.fileno())
                self._count = last

    # -- predictions -----------------------------------------------------------------------------------------

    def pipeline(self, labels: Labels) -> Pipeline:
        """The prediction pipeline with these labels."""
        label_set = labels.inside()
        with self._lock:
            known = self._pipelines.get(label_set.digest)
            if known is not None:
                return known
            bank = self.predictor.bank.copy()
            own = bank.known_labels
            same = [id_ for id_ in label_set if id_ in own]
            if not same:
                bank.replace(label_set)
            else:  # what training taught about a label stays, whatever it is called now
                changed = [label_set.label(id_) for id_ in same if label_set.label(id_) != own.label(id_)]
                added = [label for label in label_set.labels if label.id not in own]
                gone = [id_ for id_ in own if id_ not in label_set]
                for edits in edit_steps(own, added or None, {}, gone, changed or None):
                    bank.edit(**edits)
            made = self.predictor.pipeline_with(bank)
            if len(self._pipelines) > 8:
                self._pipelines.pop(next(iter(self._pipelines)))
            self._pipelines[label_set.digest] = made
            return made

    def predictions(self, labels: Labels) -> Predictions:
        """The predictions for the texts that are encoded."""
        key = labels.inside().digest
        with self._lock:
            known, found = self._cached
            if known != key:
                found = NONE
            count = self._count
            if len(found) < count:
                found = found.followed_by(self._predict(self.pipeline(labels), self._vectors[len(found) : count]))
            self._cached = (key, found)
            return found

    def predict(self, labels: Labels, texts: Sequence[Any]) -> Predictions:
        """The predictions for some texts, which need not be encoded yet."""
        pipeline = self.pipeline(labels)
        return self._predict(pipeline, pipeline.all_vectors(pipeline.tokenize(list(texts))))

    def novelty(self, labels: Labels) -> NDArray[np.float64]:
        """How far each text that is encoded is from all labels: (n,), higher is further."""
        return self.pipeline(labels).novelty_of(self.vectors)

    def _predict(self, pipeline: Pipeline, vectors: NDArray[np.float32]) -> Predictions:
        places, values = pipeline.nearest_places(vectors, 2)
        keys = np.array([int(str(id_)) for id_ in pipeline.labels], np.int64)[places]
        return Predictions(keys[:, 0], values[:, 0], keys[:, 1], values[:, 0] - values[:, 1])

    def preview(self, labels: Labels, changed: Labels, marks: Mapping[int, int]) -> Effect:
        """What other labels would change.

        Args:
            labels: The labels.
            changed: The other labels.
            marks: The label of each text that has a mark.
        """
        before = self.predictions(labels)
        after = self._predict(self.pipeline(changed), self._vectors[: len(before)])
        return replace(_effect(before.keys, after.keys, marks), findings=self._findings(labels, changed))

    def _findings(self, labels: Labels, changed: Labels) -> tuple[str, ...]:
        """What the label check says of the names of labels that change."""
        if self.predictor.config.method.label_source != "prompt":
            return ()
        same = set(labels.labels)
        new = {label.key for label in changed.labels if label not in same}
        with self._lock:
            found = self._names.find(changed.inside()) if new else []
        return tuple(each.message for each in found if new & {int(str(id_)) for id_ in each.labels})


def _effect(before: NDArray[np.int64], after: NDArray[np.int64], marks: Mapping[int, int]) -> Effect:
    pairs: dict[tuple[int, int], NDArray[np.int64]] = {}
    flips = np.flatnonzero(before != after)
    if len(flips):
        both = np.stack([before[flips], after[flips]], axis=1)
        kinds, own, counts = np.unique(both, axis=0, return_inverse=True, return_counts=True)
        own = own.reshape(-1)
        for place in np.argsort(-counts, kind="stable").tolist():
            pairs[int(kinds[place, 0]), int(kinds[place, 1])] = flips[own == place]
    marked = {text: label for text, label in marks.items() if text < len(before)}
    rows = np.array(list(marked), np.int64)
    truth = np.array(list(marked.values()), np.int64)
    if not len(rows):
        return Effect(len(before), len(flips), pairs, _counts(before), _counts(after), None)
    right = (int((before[rows] == truth).sum()), int((after[rows] == truth).sum()), len(rows))
    confusions = _changed_confusions(before[rows], after[rows], truth)
    return Effect(len(before), len(flips), pairs, _counts(before), _counts(after), right, confusions)


def _changed_confusions(
    before: NDArray[np.int64], after: NDArray[np.int64], truth: NDArray[np.int64]
) -> dict[tuple[int, int], tuple[int, int]]:
    """Pairs of a true label and another prediction whose numbers change, with these numbers."""
    now, then = (
        Counter((mark, key) for mark, key in zip(truth.tolist(), keys.tolist(), strict=True) if mark != key)
        for keys in (before, after)
    )
    changed = [pair for pair in now | then if now[pair] != then[pair]]
    changed.sort(key=lambda pair: (-abs(now[pair] - then[pair]), pair))
    return {pair: (now[pair], then[pair]) for pair in changed}


def _counts(keys: NDArray[np.int64]) -> dict[int, int]:
    found, counts = np.unique(keys, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def _stored(file: Path, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """The vectors that were written before; a part of one at the end is dropped."""
    if not file.exists():
        return np.zeros((0, *shape), np.float32)
    size = int(np.prod(shape))
    flat = np.fromfile(file, np.float32)
    return flat[: len(flat) // size * size].reshape(-1, *shape)
