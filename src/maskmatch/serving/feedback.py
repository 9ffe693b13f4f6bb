"""Feedback: texts with their right labels, appended to a file that classifiers can be trained on."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maskmatch.errors import MaskMatchError
from maskmatch.files import locked
from maskmatch.serving.errors import RequestError

MOST_BYTES = 100_000_000
"""How large the file may become: whoever may classify can make it grow."""

LOCK_SECONDS = 5.0
"""How long to wait for another process that appends to the file."""


@dataclass(frozen=True)
class FeedbackFile:
    """A file of JSON lines; several processes may append to it."""

    path: Path

    @classmethod
    def open(cls, path: str | None) -> FeedbackFile | None:
        """The file, if there is to be one; MaskMatchError if it cannot be written."""
        if path is None:
            return None
        file = Path(path).expanduser().absolute()
        if file.suffix != ".jsonl":
            raise MaskMatchError(f"The feedback file {path} must end in .jsonl: it has one JSON object per line.")
        if not file.parent.is_dir():
            raise MaskMatchError(f"The feedback file {path} cannot be written: its folder does not exist.")
        try:
            with locked(file), file.open("ab"):
                pass
        except (OSError, MaskMatchError) as error:
            raise MaskMatchError(f"The feedback file {path} cannot be written: {error}") from error
        return cls(file)

    def append(self, row: dict[str, Any]) -> None:
        """Append one row, whole; a line that a crash has cut off is ended first."""
        line = json.dumps(row).encode() + b"\n"
        try:
            with locked(self.path, LOCK_SECONDS), self.path.open("a+b") as file:
                size = file.seek(0, os.SEEK_END)
                if size + len(line) > MOST_BYTES:
                    raise RequestError(507, "feedback_full", "The feedback file is full.")
                if size:
                    file.seek(-1, os.SEEK_END)
                    line = line if file.read(1) == b"\n" else b"\n" + line
                try:
                    file.write(line)
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    os.truncate(self.path, size)  # the whole line, or nothing of it
                    raise
        except (OSError, MaskMatchError) as error:
            raise RequestError(507, "feedback_failed", f"The feedback could not be written: {error}") from error
