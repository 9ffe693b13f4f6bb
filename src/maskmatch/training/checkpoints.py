"""Checkpoints: which one to resume from, and whether they belong to this run."""

from __future__ import annotations

import hashlib
import json
import logging
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open

from maskmatch.errors import MaskMatchError
from maskmatch.files import write_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import torch

logger = logging.getLogger("maskmatch")

RUN_FILE = "maskmatch-run.json"
PARTS = ("model.safetensors", "optimizer.pt", "scheduler.pt", "trainer_state.json")
"""The files that a checkpoint needs; a crash may have left one without some of them."""


def checkpoint_to_resume(
    folder: Path,
    resume: bool,
    run: Mapping[str, object],
    weights: Mapping[str, torch.Tensor],
    parts: Sequence[str] = PARTS,
) -> str | None:
    """The newest complete checkpoint of a run; None for a new run, whose identity is written into the folder.

    Args:
        folder: The folder of the checkpoints.
        resume: Whether to resume from the last checkpoint; otherwise there must be none yet.
        run: The identity of the run: a digest of its data, and its settings.
        weights: The model's weights, to compare those of the checkpoint with.
        parts: The files of a complete checkpoint.
    """
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2] or 0), reverse=True)
    if not resume:
        if found:
            raise MaskMatchError(
                f"{folder} holds the checkpoints of an earlier run; resume it, or choose another folder."
            )
        write_text(folder / RUN_FILE, json.dumps(run, indent=2) + "\n")
        return None
    whole = [path for path in found if all((path / part).is_file() for part in parts)]
    if not whole:
        raise MaskMatchError(f"There is no complete checkpoint in {folder} to resume from.")
    for path in found[: found.index(whole[0])]:
        logger.warning("%s is incomplete and is skipped.", path)
    _check_run(folder, run)
    _check_weights(whole[0], weights)
    return str(whole[0])


def _check_run(folder: Path, run: Mapping[str, object]) -> None:
    """Raise if the checkpoints in a folder belong to another run, and say what differs."""
    path = folder / RUN_FILE
    if not path.is_file():
        return
    try:
        other = dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise MaskMatchError(f"{path} is damaged and cannot be read: {error}") from error
    differs = [name for name in run if other.get(name) != run[name]]
    if differs:
        raise MaskMatchError(
            f"The checkpoints in {folder} belong to another run, with other {', '.join(differs)}; resume with the same "
            "data, labels and settings, or choose another folder."
        )


def digest(*parts: bytes) -> str:
    """A digest of some data."""
    result = hashlib.sha256()
    for part in parts:
        result.update(len(part).to_bytes(8, "big") + part)
    return result.hexdigest()


def _check_weights(checkpoint: Path, weights: Mapping[str, torch.Tensor]) -> None:
    try:
        with safe_open(checkpoint / "model.safetensors", framework="pt") as file:
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise MaskMatchError(f"The checkpoint {checkpoint} cannot be read: {error}") from error
    if shapes != {name: tuple(tensor.shape) for name, tensor in weights.items()}:
        raise MaskMatchError(
            f"The checkpoint {checkpoint} belongs to another classifier: encoder, method or labels differ."
        )
