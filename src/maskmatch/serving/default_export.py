"""The embedded default as an int8 export: made once, then cached, so that it answers without torch."""

from __future__ import annotations

import hashlib
import os
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from maskmatch import __version__
from maskmatch.files import locked
from maskmatch.storage.export.folder import is_export
from maskmatch.storage.layout import EXPORT_FORMAT

if TYPE_CHECKING:
    from maskmatch.storage.export.matcher import ExportedMatcher

PLACEHOLDERS = ("yes", "no")
"""The labels that the cached export has; whoever uses it brings others."""


def cache_folder() -> Path:
    """Where exports of the default are cached: MASKMATCH_CACHE, or the user's cache folder."""
    own = os.environ.get("MASKMATCH_CACHE")
    if own:
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "maskmatch"


def default_export(task: str) -> Path:
    """The folder of the default as an int8 export for a task; it is made if it is not there yet.

    Args:
        task: The name of the task, whose prompts it has.
    """
    folder = cache_folder() / f"default-{task}-{_version()}"
    if not is_export(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            if not is_export(folder):
                from maskmatch.matcher import MaskMatcher
                from maskmatch.storage.export.exporter import export

                export(MaskMatcher.from_pretrained(labels=PLACEHOLDERS, task=task, verbose=False), folder, int8=True)
    return folder


def load_default(folder: Path) -> ExportedMatcher:
    """Load the cached export."""
    from maskmatch.storage.export.matcher import ExportedMatcher

    return ExportedMatcher.from_pretrained(folder, verbose=False)


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
