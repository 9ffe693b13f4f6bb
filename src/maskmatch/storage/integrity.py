"""Integrity of saved folders: a SHA-256 of every file, checked on load.

The digests are in the folder's JSON file, ``maskmatch.json`` or ``export.json``, under "sha256". The JSON file's own
digest is that of its content without this digest, so a folder's JSON file stands for the whole folder.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, TypeVar

from maskmatch.errors import MaskMatchError
from maskmatch.files import file_digest, locked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

KEY = "sha256"
ATTEMPTS = 3
"""How often a folder is read without its lock if another process replaces it meanwhile."""

Read = TypeVar("Read")


def signed(data: Mapping[str, Any], folder: Path, own: str, names: Iterable[str]) -> dict[str, Any]:
    """The content of a folder's JSON file, with the digests of the folder's files.

    Args:
        data: The content.
        folder: The folder, with all other files in it.
        own: The name of the JSON file.
        names: The names of the files to digest.
    """
    plain: dict[str, Any] = json.loads(json.dumps(data))  # as it will be read: keys are texts
    result = {**plain, KEY: {name: file_digest(folder / name) for name in sorted(set(names) - {own})}}
    result[KEY][own] = _content_digest(result, own)
    return result


def check_files(data: Mapping[str, Any], folder: Path, own: str, names: Iterable[str] | None = None) -> bool:
    """Raise if a file of a folder is not as it was saved.

    Args:
        data: The content of the folder's JSON file.
        folder: The folder.
        own: The name of the JSON file.
        names: The files to check; None: all.

    Returns:
        Whether they were checked: a folder of an earlier version has no digests.
    """
    digests = data.get(KEY)
    if digests is None:
        return False
    if not isinstance(digests, dict) or digests.get(own) != _content_digest(data, own):
        raise _changed(folder / own)
    for name, digest in digests.items():
        if name == own or (names is not None and name not in names):
            continue
        if not is_file_name(name):
            raise _changed(folder / own)
        try:
            found = file_digest(folder / name)
        except OSError as error:
            raise MaskMatchError(f"{folder / name} cannot be read: {error.strerror}.") from error
        if found != digest:
            raise _changed(folder / name)
    return True


def is_file_name(name: object) -> bool:
    """Whether this is the plain name of a file in a folder, and no path that leads out of it."""
    return isinstance(name, str) and name not in ("", ".", "..") and not set(name) & set("/\\\0")


def read_stable(path: Path, read: Callable[[], Read]) -> Read:
    """Read a folder; read it again if another process replaced it meanwhile.

    Args:
        path: The folder's JSON file, which stands for the whole folder.
        read: Reads the folder.
    """
    for _ in range(ATTEMPTS):
        before = _identity(path)
        try:
            result = _read(path, read)
        except MaskMatchError:
            if _identity(path) == before:
                raise
            continue
        if _identity(path) == before:  # what was read belongs together
            return result
    with locked(path.parent):  # it is replaced all the time: keep the writers out
        return _read(path, read)


def _read(path: Path, read: Callable[[], Read]) -> Read:
    """Read a folder; what its content makes the parsers of other libraries raise becomes one sentence."""
    try:
        return read()
    except (MaskMatchError, ImportError, MemoryError):
        raise
    except OSError as error:
        raise MaskMatchError(f"{path.parent} cannot be read: {error.strerror or error}.") from error
    except Exception as error:
        if "out of memory" in str(error):
            raise
        reason = f"{type(error).__name__}: {error}".strip().partition("\n")[0]
        raise MaskMatchError(f"{path.parent} could not be loaded, it is probably damaged: {reason}") from error


def revision(path: Path) -> str | None:
    """What identifies the content of a folder, by its JSON file; None if there is none."""
    try:
        return file_digest(path)
    except OSError:
        return None


def _identity(path: Path) -> tuple[int, ...] | None:
    """What differs between two saves, also of the same content: a folder may be replaced and replaced back."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _content_digest(data: Mapping[str, Any], own: str) -> str:
    digests = {name: digest for name, digest in data[KEY].items() if name != own}
    text = json.dumps({**data, KEY: digests}, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _changed(path: Path) -> MaskMatchError:
    return MaskMatchError(
        f"{path} is damaged, or was changed after it was saved: its SHA-256 differs. If you changed it, load the "
        "folder with verify=False (--no-verify)."
    )
