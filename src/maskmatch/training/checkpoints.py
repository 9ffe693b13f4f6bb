"""Checkpoints: which one to resume from, and whether they belong to this run."""

from __future__ import annotations

import hashlib
import json
import logging
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open
from transformers import TrainerCallback

from maskmatch.errors import MaskMatchError
from maskmatch.files import file_digest, sync_folder, write_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import torch

logger = logging.getLogger("maskmatch")

RUN_FILE = "maskmatch-run.json"
SEAL_FILE = "maskmatch-checkpoint.json"
"""The SHA-256 of all files of a checkpoint, written last: a checkpoint without it is not complete."""


STATE_FILE = "trainer_state.json"
"""What transformers writes last into a checkpoint."""


class CheckpointSealer(TrainerCallback):
    """Seals each checkpoint that a run can be resumed from, after everything else was written into it."""

    def on_save(self, args: Any, state: Any, control: Any, **options: Any) -> None:
        """Write the digests of all files, when they are on the disk."""
        if state.is_world_process_zero and not args.save_only_model:
            checkpoint = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            sync_folder(checkpoint)
            digests = {path.name: file_digest(path) for path in sorted(checkpoint.iterdir()) if path.is_file()}
            write_text(checkpoint / SEAL_FILE, json.dumps(digests, indent=2) + "\n")


@contextmanager
def writing_checkpoints(folder: str) -> Iterator[None]:
    """Errors of a disk within, such as a full one, become a sentence."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise MaskMatchError(f"Training stopped: a checkpoint could not be written to {folder}: {error}.") from error
    except RuntimeError as error:  # torch's own writer
        if "PytorchStreamWriter" not in str(error) and "inline_container" not in str(error):
            raise
        raise MaskMatchError(
            f"Training stopped: a checkpoint could not be written to {folder}; is the disk full?"
        ) from error


def checkpoint_to_resume(
    folder: Path, resume: bool, run: Mapping[str, object], weights: Mapping[str, torch.Tensor]
) -> str | None:
    """The newest complete checkpoint of a run; None for a run from its start, whose identity is written down.

    Args:
        folder: The folder of the checkpoints.
        resume: Whether to resume from the last checkpoint; otherwise there must be none yet.
        run: The identity of the run: a digest of its data, and its settings.
        weights: The model's weights, to compare those of the checkpoint with.
    """
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2] or 0), reverse=True)
    if resume and not found:
        raise MaskMatchError(f"There is no checkpoint in {folder} to resume from.")
    if resume:
        _check_run(folder, run)
    complete = next((path for path in found if _is_complete(path)), None)
    if not resume and (complete is not None or any((path / STATE_FILE).exists() for path in found)):
        raise MaskMatchError(f"{folder} holds the checkpoints of an earlier run; resume it, or choose another folder.")
    for path in found[: None if complete is None else found.index(complete)]:
        logger.warning("%s is incomplete or damaged and is skipped.", path)
    if complete is not None:
        _check_weights(complete, weights)
        return str(complete)
    if resume:
        logger.warning("No checkpoint in %s is complete; training starts from its beginning.", folder)
    write_text(folder / RUN_FILE, json.dumps(run, indent=2) + "\n")
    return None


def _is_complete(checkpoint: Path) -> bool:
    """Whether all files of a checkpoint are as they were written."""
    try:
        digests = dict(json.loads((checkpoint / SEAL_FILE).read_text(encoding="utf-8")))
        return all(file_digest(checkpoint / name) == digest for name, digest in digests.items())
    except (OSError, ValueError, TypeError):
        return False


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
