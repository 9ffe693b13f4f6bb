"""The files of a saved classifier, and what can be read of them without torch."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError
from maskmatch.files import recover
from maskmatch.labels import LabelSet, label_from_json
from maskmatch.prompts import FieldText
from maskmatch.storage.integrity import check_files, revision

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable
    from pathlib import Path

    from maskmatch.config.matcher import MatcherConfig

FORMAT = 6
"""Counted up when an older version could not read a folder of this version correctly.

From 4 on, a classifier may be adapted to unlabelled texts. From 5 on, it may smooth texts, and read mask and mean.
From 6 on, probabilities may be calibrated.
"""

EXPORT_FORMAT = 7
"""Counted up when an older version could not read an export of this version correctly.

From 2 on, the graph averages over a pool of prompts. From 3 on, "untrained" is a field. From 4 on, the classifier may
be adapted to unlabelled texts. From 5 on, it may smooth texts. From 6 on, probabilities may be calibrated. From 7 on,
label vectors are stored as they are read, so that labels can be edited.
"""

CONFIG_FILE = "maskmatch.json"
LABELS_FILE = "labels.safetensors"
HEAD_FILE = "head.safetensors"
EXPORT_FILE = "export.json"


def is_saved(folder: Path) -> bool:
    """Whether a folder holds a saved classifier, rather than a bare encoder."""
    return (folder / CONFIG_FILE).exists()


def folder_hash(folder: Path) -> str | None:
    """What identifies a saved classifier or an export: the SHA-256 of its JSON file, which has those of all others."""
    return revision(folder / EXPORT_FILE) or revision(folder / CONFIG_FILE)


def check_target(folder: Path, ours: Callable[[Path], bool] = is_saved, kind: str = "a saved classifier") -> None:
    """Raise if a folder holds anything but what is to be replaced, or cannot be written.

    Args:
        folder: Where something is to be saved.
        ours: Whether a folder holds what may be replaced.
        kind: What that is called.
    """
    recover(folder)
    if folder.exists() and not (folder.is_dir() and (ours(folder) or not any(folder.iterdir()))):
        raise MaskMatchError(f"{folder} exists and is not {kind}; choose another folder, nothing was written.")
    above = next(parent for parent in folder.absolute().parents if parent.exists())
    if not (above.is_dir() and os.access(above, os.W_OK)):
        raise MaskMatchError(f"{folder} cannot be written: {above} is not a folder that can be written to.")


def check_encoder(folder: Path) -> None:
    """Raise if a folder that should hold a bare encoder is a saved classifier whose JSON file is gone."""
    if (folder / LABELS_FILE).exists():
        raise MaskMatchError(f"The saved classifier {folder} is incomplete: {CONFIG_FILE} is missing.")


def read_json(folder: Path, name: str = CONFIG_FILE, newest: int = FORMAT, *, verify: bool = True) -> dict[str, Any]:
    """The content of ``maskmatch.json`` or ``export.json``.

    Args:
        folder: The folder of a saved classifier or an export.
        name: The name of the file.
        newest: The newest format that this version reads.
        verify: Whether to check that the file is as it was saved.
    """
    path = folder / name
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        found = data["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MaskMatchError(f"{path} is damaged and cannot be read: {error}") from error
    if not isinstance(found, int) or found > newest:
        versions = data.get("versions")
        saved_by = versions.get("maskmatch", "unknown") if isinstance(versions, dict) else "unknown"
        raise MaskMatchError(
            f"{folder} was saved by a newer maskmatch ({saved_by}, format {found}); this one reads formats up to "
            f"{newest}: upgrade with pip install -U maskmatch."
        )
    if verify:
        check_files(data, folder, name, ())
    return dict(data)


def read_config(folder: Path) -> MatcherConfig | None:
    """The config of a saved classifier or an export; None if the folder holds neither."""
    from maskmatch.config.matcher import MatcherConfig

    for name in (CONFIG_FILE, EXPORT_FILE):
        if os.path.exists(folder / name):  # Path.exists fails if the name is too long
            try:
                return MatcherConfig.from_json(json.loads((folder / name).read_text(encoding="utf-8"))["config"])
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                raise MaskMatchError(f"{folder / name} is damaged and cannot be read: {error}") from error
    return None


def read_labels(folder: Path, *, verify: bool = True) -> LabelSet:
    """The labels of a saved classifier or an export; nothing else of it is loaded."""
    exported = not is_saved(folder) and (folder / EXPORT_FILE).exists()
    name, newest = (EXPORT_FILE, EXPORT_FORMAT) if exported else (CONFIG_FILE, FORMAT)
    try:
        data = read_json(folder, name, newest, verify=verify)
        return LabelSet(tuple(label_from_json(label) for label in data["labels"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise MaskMatchError(f"{folder / name} is damaged: {error!r} does not fit.") from error


def probe(config: MatcherConfig) -> dict[str, FieldText]:
    """A text that a classifier must be able to read, with a character that few vocabularies have."""
    return dict.fromkeys(config.input_fields, FieldText("a \u2603"))


def portable_name(source: str) -> str:
    """The name of an encoder or a classifier without the folders of this machine; a hub id as it is.

    >>> portable_name("/home/ann/models/bert"), portable_name("FacebookAI/roberta-base")
    ('bert', 'FacebookAI/roberta-base')
    """
    path = os.path.expanduser(source)
    is_path = os.path.isabs(path) or source.startswith((".", "~")) or source.count("/") > 1 or os.path.exists(path)
    return os.path.basename(os.path.normpath(os.path.abspath(path))) if is_path else source


def check_unchanged(folder: Path, known: str | None, name: str = CONFIG_FILE) -> None:
    """Raise if a folder is no longer what it was when it was loaded or saved; it may be gone.

    Args:
        folder: The folder.
        known: Its revision at that time.
        name: The file that says so.
    """
    now = revision(folder / name)
    if now not in (None, known):
        raise MaskMatchError(
            f"{folder} was changed by someone else after this classifier was loaded; load it again and repeat your "
            "changes (the class method editing does both under a lock), or save with overwrite=True."
        )


def check_same_labels(folder: Path, labels: Iterable[Hashable]) -> None:
    """Raise if a folder holds a classifier with other labels, which a new one would replace."""
    if not is_saved(folder):
        return
    old, new = set(map(str, read_labels(folder))), set(map(str, labels))
    if old != new:
        example = next(iter(sorted(old - new) or sorted(new - old)))
        only = "only the old one has" if old - new else "only the new one has"
        raise MaskMatchError(
            f"{folder} holds a classifier with other labels ({only} {example!r}); choose another folder, or replace "
            "it with --overwrite (overwrite=True in Python)."
        )
