"""What is tortured: tiny classifiers and exports in a scratch folder, with the answers that they must give."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch import ExportedMatcher, MaskMatcher, export
from maskmatch.testing.tiny_encoders import write_tiny_encoder

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

LABELS = ["refund", "card lost", "exchange rate"]
OTHER_LABELS = ["parcel", "station"]
TEXTS = [
    "Where is my refund?",
    "My card was lost at the station.",
    "What is the exchange rate?",
    "I sent the parcel back two weeks ago, refund it",
    "please block the lost card",
    "exchange money at this rate",
]
TRUTH = ["refund", "card lost", "exchange rate"] * 2
A_LITTLE: dict[str, Any] = {"learning_rate": 1e-2, "batch_size": 6, "epochs": 3, "calibrate": False}
CLOSE = 1e-4


@dataclass(frozen=True)
class Material:
    """Classifiers in a scratch folder.

    Attributes:
        home: The scratch folder.
    """

    home: Path

    @cached_property
    def encoder(self) -> Path:
        """A tiny encoder."""
        return write_tiny_encoder("bert", self.home / "encoder")

    def matcher(self, labels: list[str] | None = None) -> MaskMatcher:
        """An untrained classifier."""
        return MaskMatcher.from_pretrained(self.encoder, LABELS if labels is None else labels, verbose=False)

    @cached_property
    def trained(self) -> MaskMatcher:
        """A trained classifier; do not edit it."""
        return self.matcher().fit(TEXTS, TRUTH, **A_LITTLE)

    @cached_property
    def classifier(self) -> Path:
        """The folder of the trained classifier."""
        return self.trained.save_pretrained(self.home / "classifier")

    @cached_property
    def other_classifier(self) -> Path:
        """The folder of another classifier, whose files have the same names."""
        other = self.matcher(OTHER_LABELS).fit(TEXTS[:2], OTHER_LABELS, **A_LITTLE)
        return other.save_pretrained(self.home / "other-classifier")

    @cached_property
    def export(self) -> Path:
        """An export of the trained classifier, with an index over its labels."""
        folder = self.home / "export"
        export(MaskMatcher.from_pretrained(self.classifier, search="approximate", verbose=False), folder)
        return folder

    @cached_property
    def other_export(self) -> Path:
        """An export of another classifier, whose files have the same names."""
        folder = self.home / "other-export"
        export(MaskMatcher.from_pretrained(self.other_classifier, verbose=False), folder)
        return folder

    @cached_property
    def answers(self) -> NDArray[np.float32]:
        """The probabilities that the trained classifier and its export give."""
        return self.trained.predict_proba(TEXTS)

    def room(self, name: str) -> Path:
        """An empty folder."""
        folder = self.home / "rooms" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder


def load(folder: Path, **options: Any) -> MaskMatcher | ExportedMatcher:
    """Load a saved classifier or an export."""
    is_export = os.path.exists(folder / "export.json")
    return (ExportedMatcher if is_export else MaskMatcher).from_pretrained(folder, verbose=False, **options)


def same(found: Any, expected: Any) -> bool:
    """Whether two arrays of probabilities are alike."""
    found, expected = np.asarray(found), np.asarray(expected)
    return found.shape == expected.shape and bool(np.abs(found - expected).max(initial=0) <= CLOSE)


def link_folder(source: Path, target: Path) -> Path:
    """A folder with the same files as another one, as hard links; replace a file, do not write into it."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in source.iterdir():
        os.link(path, target / path.name)
    return target


def replace_file(path: Path, content: bytes) -> None:
    """Give a hard-linked file a content of its own."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def read_json(path: Path) -> Any:
    """The content of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))
