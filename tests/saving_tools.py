"""What the tests of saved classifiers share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Tiny = Callable[..., Path]

SHORT = {"learning_rate": 1e-2, "batch_size": 4, "epochs": 4, "calibrate": False}
OURS = {
    "README.md",
    "config.json",
    "head.safetensors",
    "labels.safetensors",
    "maskmatch.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
}


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def edit_json(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change a JSON file of a saved folder as if it had been saved so, without digests, by an earlier version."""
    data = json.loads(path.read_text())
    data.pop("sha256", None)
    change(data)
    path.write_text(json.dumps(data))
