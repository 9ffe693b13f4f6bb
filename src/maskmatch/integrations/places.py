"""Places: files in folders and object stores, by path or by URI."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError
from maskmatch.files import write_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyarrow.fs import FileInfo

RENAMING = ("hdfs", "py")
"""File systems that show a file while it is written, and can rename it; object stores show it when it is complete."""


@dataclass(frozen=True)
class Place:
    """A file or a folder, on any file system that pyarrow knows.

    Attributes:
        uri: What the user gave: a path, or a URI such as ``s3://bucket/folder``.
        below: The path below it, with slashes; empty for the place itself.
    """

    uri: str
    below: str = ""

    @classmethod
    def of(cls, given: str | Path) -> Place:
        """A place by a path, which becomes absolute, or by a URI."""
        text = os.fspath(given)
        return cls(text if "://" in text else str(Path(text).expanduser().resolve()))

    def __truediv__(self, name: str) -> Place:
        return Place(self.uri, f"{self.below}/{name}".lstrip("/"))

    def __str__(self) -> str:
        return f"{self.uri.rstrip('/')}/{self.below}" if self.below else self.uri

    @cached_property
    def _found(self) -> tuple[Any, str]:
        """The file system, and the path in it."""
        from pyarrow import ArrowException, fs

        if "://" not in self.uri:
            return fs.LocalFileSystem(), str(self)
        try:
            system, path = fs.FileSystem.from_uri(self.uri)
        except (ArrowException, OSError, ValueError) as error:
            raise self._error(error) from error
        return system, f"{path.rstrip('/')}/{self.below}" if self.below else path

    @property
    def local(self) -> Path | None:
        """The path on this machine; None if it is elsewhere."""
        system, path = self._found
        return Path(path) if system.type_name == "local" else None

    def contains(self, other: Place) -> bool:
        """Whether another place is this one, or in it."""
        (system, path), (its_system, its_path) = self._found, other._found
        return bool(system.type_name == its_system.type_name) and f"{its_path.rstrip('/')}/".startswith(
            f"{path.rstrip('/')}/"
        )

    def info(self) -> FileInfo:
        """What is there: type, size, time of the last change."""
        system, path = self._found
        try:
            return system.get_file_info(path)
        except OSError as error:
            raise self._error(error) from error

    def files(self) -> Iterator[tuple[Place, FileInfo]]:
        """All files below a folder, in the order of their names, less hidden ones; nothing if there is no folder."""
        from pyarrow import fs

        system, path = self._found
        try:
            found = system.get_file_info(fs.FileSelector(path, allow_not_found=True, recursive=True))
        except OSError as error:
            raise self._error(error) from error
        for info in sorted(found, key=lambda info: info.path):
            below = info.path[len(path.rstrip("/")) + 1 :]
            hidden = any(part.startswith((".", "_")) for part in below.split("/"))
            if info.type == fs.FileType.File and not hidden:
                yield self / below, info

    def open(self) -> Any:
        """Open a file to read its bytes, also from any position."""
        system, path = self._found
        try:
            return system.open_input_file(path)
        except OSError as error:
            raise self._error(error) from error

    def write(self, content: Any) -> None:
        """Write a file whole: no reader ever sees a part of it, not even after a crash."""
        system, path = self._found
        try:
            if self.local is not None:
                with write_file(self.local) as scratch:
                    scratch.write_bytes(content)
                return
            renaming = system.type_name in RENAMING
            target = f"{path}.writing" if renaming else path
            if renaming:
                system.create_dir(path.rpartition("/")[0], recursive=True)
            with system.open_output_stream(target) as stream:  # an object store shows it when it is closed
                stream.write(content)
            if renaming:
                system.move(target, path)
        except OSError as error:
            raise self._error(error) from error

    def delete(self) -> None:
        """Delete a file, if it is there."""
        from pyarrow import fs

        system, path = self._found
        try:
            if self.info().type == fs.FileType.File:
                system.delete_file(path)
        except OSError as error:
            raise self._error(error) from error

    def _error(self, error: Exception) -> MaskMatchError:
        reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        return MaskMatchError(f"{self} cannot be read or written: {reason}.")
