"""What a training run takes: parameters and memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import TrainerCallback

CLEAR_PEAK, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


class TrainingWatch(TrainerCallback):
    """Looks on while a model is trained.

    Attributes:
        parameters: How many parameters were trained.
        peak_megabytes: The largest resident memory of the whole process from the beginning of training to its end,
            with all that it holds anyway: libraries, weights, data. None where the system does not tell (only Linux
            lets a process set its own high-water mark back).
    """

    def __init__(self) -> None:
        self.parameters = 0
        self.peak_megabytes: float | None = None
        self._watching = False

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **options: Any) -> None:
        """Count the parameters, and set the high-water mark back."""
        self.parameters = sum(each.numel() for each in model.parameters() if each.requires_grad)
        self._watching = reset_peak_memory()

    def on_train_end(self, args: Any, state: Any, control: Any, **options: Any) -> None:
        """Read the high-water mark."""
        self.peak_megabytes = peak_megabytes() if self._watching else None


def reset_peak_memory() -> bool:
    """Set the high-water mark of the process's resident memory back to what it holds now; tells whether it could."""
    try:
        CLEAR_PEAK.write_text("5", encoding="ascii")  # the kernel's sign for this
    except OSError:
        return False
    return peak_megabytes() is not None


def peak_megabytes() -> float | None:
    """The high-water mark of the process's resident memory, in megabytes of 1,048,576 bytes."""
    try:
        lines = STATUS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    kilobytes = next((line.split()[1] for line in lines if line.startswith("VmHWM:")), None)
    return None if kilobytes is None else round(int(kilobytes) / 1024, 1)
