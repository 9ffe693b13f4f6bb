"""Pretrained: a model that was loaded once and can start several classifiers, each with weights of its own."""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError
from maskmatch.files import recover
from maskmatch.model.encoder import Encoder, find_model, move_encoder
from maskmatch.storage.export.folder import is_export
from maskmatch.storage.folder import Classifier, new_classifier, read_classifier
from maskmatch.storage.layout import check_encoder, is_saved

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_KEPT = 2
"""How many loaded models a process keeps; the one that was used longest ago goes first."""


@dataclass(frozen=True)
class Pretrained:
    """A model in memory: a saved classifier, or an encoder on which classifiers can start.

    Training changes its weights. To use it again, give a :meth:`copy` to ``MaskMatcher.from_pretrained``.

    Attributes:
        folder: Where it was loaded from.
        source: What to call it.
        encoder: The encoder.
        classifier: The saved classifier, if it is one.
    """

    folder: Path
    source: str
    encoder: Encoder
    classifier: Classifier | None = None

    @classmethod
    def load(cls, model: str | Path | None = None, *, device: str | None = None, verify: bool = True) -> Pretrained:
        """Load a model.

        Args:
            model: None for the embedded default; the folder of a saved classifier or of an encoder; or the id of
                either on the hub.
            device: Where to compute; None: on a GPU if there is one.
            verify: Whether to check that all files of a saved classifier are as they were saved.
        """
        folder, source = _found(model)
        if is_saved(folder):
            classifier = read_classifier(folder, source, device, verify=verify)
            return cls(folder, source, classifier.encoder, classifier)
        check_encoder(folder)
        encoder = Encoder.load(folder, source)
        move_encoder(encoder, device)
        return cls(folder, source, encoder)

    def copy(self) -> Pretrained:
        """The same model with weights of its own, in a tenth of the time that loading takes."""
        if self.classifier is not None:
            classifier = copy.deepcopy(self.classifier)
            return replace(self, encoder=classifier.encoder, classifier=classifier)
        # Tokenizers are not trained, so that copies share them.
        return replace(self, encoder=replace(self.encoder, model=copy.deepcopy(self.encoder.model)))

    def start(self, max_length: int | None, options: Mapping[str, Any]) -> Classifier:
        """A new classifier on the encoder.

        Args:
            max_length: The maximum number of tokens of a prompted text; None: the default.
            options: Task, prompts, method, similarity and so on, as ``MatcherConfig.make`` takes them.
        """
        return new_classifier(self.encoder, self.folder, max_length, options)


class PretrainedCache:
    """The models that were used last, each loaded once. Threads may share it."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._models: OrderedDict[Any, Pretrained] = OrderedDict()

    def get(self, model: str | Path | None, device: str | None = None) -> Pretrained:
        """A copy of a model, which is loaded if it is not in the cache, or has changed on disk since it was."""
        key = _key(model, device)
        with self._lock:
            if key not in self._models:
                self._models[key] = Pretrained.load(model, device=device)
            self._models.move_to_end(key)
            while len(self._models) > self._most:
                self._models.popitem(last=False)
            pristine = self._models[key]
        return pristine.copy()

    def clear(self) -> None:
        """Free the memory of all models."""
        with self._lock:
            self._models.clear()

    def __len__(self) -> int:
        return len(self._models)

    def __reduce__(self) -> Any:
        return type(self), (self._most,)  # another process loads for itself


def _found(model: str | Path | None) -> tuple[Path, str]:
    """The folder and the name of a model."""
    if model is not None:
        recover(Path(model).expanduser())
    folder, source = find_model(model)
    if is_export(folder):
        raise MaskMatchError(f"{source} is an export; load it with ExportedMatcher.from_pretrained.")
    return folder, source


def _key(model: str | Path | None, device: str | None) -> Any:
    """What tells loaded models apart. A folder may change; a hub model is looked up once per process."""
    folder = find_model(None)[0] if model is None else Path(model).expanduser()
    if not folder.is_dir():
        return str(model), device
    stats = [(path.name, path.stat()) for path in sorted(folder.iterdir())]
    stamp = tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)
    return str(model), str(folder.resolve()), stamp, device
