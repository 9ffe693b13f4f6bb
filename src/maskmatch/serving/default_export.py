"""The embedded default as an int8 export: made once, then cached, so that it answers without torch."""

from __future__ import annotations

import hashlib
import os
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from maskmatch import __version__
from maskmatch.config.methods import find_method
from maskmatch.config.tasks import find_task
from maskmatch.errors import MissingPackageError
from maskmatch.files import locked
from maskmatch.storage.export.folder import is_export
from maskmatch.storage.layout import EXPORT_FORMAT

if TYPE_CHECKING:
    from collections.abc import Callable


PLACEHOLDERS = ("yes", "no")
"""The labels that the cached export has; whoever uses it brings others."""


def cache_folder() -> Path:
    """Where exports of the default are cached: MASKMATCH_CACHE, or the user's cache folder."""
    own = os.environ.get("MASKMATCH_CACHE")
    if own:
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "maskmatch"


def default_export_folder(task: str) -> Path:
    """Where the int8 export of the default for a task is cached."""
    return cache_folder() / f"default-{task}-{_version()}"


def default_export(task: str, *, making: Callable[[], None] = lambda: None) -> Path:
    """The folder of the default as an int8 export for a task; it is made if it is not there yet.

    Args:
        task: The name of the task, whose prompts it has.
        making: Called before it is made, which takes some seconds.
    """
    folder = default_export_folder(task)
    if not is_export(folder):
        if find_spec("torch") is None:
            raise MissingPackageError(
                f"There is no export of the default encoder in {folder}, and making one needs torch, which is not "
                "installed; name an export of your own, or copy that folder from a machine with torch.",
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            if not is_export(folder):
                making()
                _make(task, folder)
    return folder


def _make(task: str, folder: Path) -> None:
    from maskmatch.matcher import MaskMatcher
    from maskmatch.storage.export.exporter import export

    # A method that compares the sides of a pair must be trained. Untrained, a pair is read as a whole.
    pairs = find_method(find_task(task).method).reads_pairs
    method = "mask-matching" if pairs else None
    export(MaskMatcher.from_pretrained(labels=PLACEHOLDERS, task=task, method=method, verbose=False), folder, int8=True)


def _version() -> str:
    """Changes with what the export is made of: this version, its adapter and calibration, and the format."""
    digest = hashlib.sha256(f"{__version__}/{EXPORT_FORMAT}".encode())
    home = files("maskmatch.model")
    for name in sorted(each.name for each in home.joinpath("default_adapter").iterdir()):
        part = home.joinpath("default_adapter").joinpath(name)
        if part.is_file():
            digest.update(part.read_bytes())
    digest.update(home.joinpath("default_calibration.json").read_bytes())
    return digest.hexdigest()[:12]
