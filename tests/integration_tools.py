"""What the tests of other frameworks share."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

from toy_data import TEXTS

if TYPE_CHECKING:
    from pathlib import Path


def made_texts(count: int, seed: int = 0) -> list[str]:
    """Texts of words of the toy set."""
    words, draw = " ".join(TEXTS).split(), random.Random(seed)
    return [" ".join(draw.choices(words, k=draw.randint(1, 12))) for _ in range(count)]


def write_lines(path: Path, rows: list[object]) -> Path:
    """Rows as JSON Lines; a string is a line as it is."""
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
