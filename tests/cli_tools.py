"""What the tests of the command line share."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Tiny = Callable[..., Path]

QUICK = ["--epochs", "2", "--learning-rate", "0.01", "--batch-size", "12"]


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


class Stdin(io.TextIOWrapper):
    """Standard input: a pipe with some text in it, or a terminal."""

    def __init__(self, text: str | None) -> None:
        super().__init__(io.BytesIO((text or "").encode()), encoding="utf-8")
        self._terminal = text is None

    def isatty(self) -> bool:
        return self._terminal


Run = Callable[..., Result]


def fails(result: Result, *words: object) -> str:
    """Checks that a run failed with one sentence on standard error, and nothing else."""
    assert result.code == 1, result
    assert result.out == ""
    assert "Traceback" not in result.err
    lines = [line for line in result.err.splitlines() if not line.startswith("drew ")]
    assert len(lines) == 1, result.err
    assert lines[0].startswith("maskmatch: ")
    for word in words:
        assert str(word) in lines[0], lines[0]
    return lines[0]


def is_wrong_usage(result: Result, *words: str) -> None:
    assert result.code == 2, result
    assert result.out == ""
    assert "Traceback" not in result.err
    plain = " ".join(result.err.replace("│", " ").split())
    for word in words:
        assert word in plain, result.err


def write_csv(path: Path, texts: Sequence[str], labels: Sequence[object], header: str = "text,label") -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header.split(","))
        writer.writerows(zip(texts, labels, strict=True))
    return path
