"""Checkpoints of a training run: which one to go on from, and that they are of this run and no other."""

from __future__ import annotations

import hashlib
import json
import logging
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import torch

logger = logging.getLogger("maskmatch")

RUN_FILE = "maskmatch-run.json"
PARTS = ("model.safetensors", "optimizer.pt", "scheduler.pt", "trainer_state.json")
"""What a checkpoint needs to go on from it; a crash may have left one without some of them."""


def checkpoint_to_resume(
    folder: Path,
    resume: bool,
    run: Mapping[str, object],
    weights: Mapping[str, torch.Tensor],
    parts: Sequence[str] = PARTS,
) -> str | None:
    """The newest whole checkpoint of a run, or None for a new run, whose folder is marked as its own.

    Args:
        folder: The folder of the checkpoints.
        resume: Whether to go on from the last checkpoint; otherwise there must be none yet.
        run: What tells this run from others: a digest of its data, and its settings.
        weights: The model's weights, to compare a checkpoint's with.
        parts: The files of a whole checkpoint.
    """
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2] or 0), reverse=True)
    if not resume:
        if found:
            raise MaskMatchError(
                f"{folder} holds the checkpoints of an earlier run; resume it, or choose another folder."
            )
        folder.mkdir(parents=True, exist_ok=True)
        (folder / RUN_FILE).write_text(json.dumps(run, indent=2) + "\n", encoding="utf-8")
        return None
    whole = [path for path in found if all((path / part).is_file() for part in parts)]
    if not whole:
        raise MaskMatchError(f"There is no whole checkpoint in {folder} to resume from.")
    for path in found[: found.index(whole[0])]:
        logger.warning("%s is not whole and is passed over.", path)
    if (folder / RUN_FILE).is_file() and json.loads((folder / RUN_FILE).read_text(encoding="utf-8")) != run:
        raise MaskMatchError(f"The checkpoints in {folder} are of another run: its data, labels or settings differ.")
    _check_weights(whole[0], weights)
    return str(whole[0])


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
        raise MaskMatchError(f"The checkpoint {checkpoint} is of another classifier: encoder, method or labels differ.")
