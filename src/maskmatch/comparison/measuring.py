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
        rise_megabytes: By how much that is more than at the beginning of training.
    """

    def __init__(self) -> None:
        self.parameters = 0
        self.peak_megabytes: float | None = None
        self.rise_megabytes: float | None = None
        self._memory = MemoryWatch()

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **options: Any) -> None:
        """Count the parameters, and set the high-water mark back."""
        self.parameters = sum(each.numel() for each in model.parameters() if each.requires_grad)
        self._memory = MemoryWatch()

    def on_train_end(self, args: Any, state: Any, control: Any, **options: Any) -> None:
        """Read the high-water mark."""
        self.peak_megabytes, self.rise_megabytes = self._memory.peak, self._memory.rise


class MemoryWatch:
    """The resident memory of the process from now on: its peak, and by how much that is more than now.

    None where the system does not tell: only Linux lets a process set its own high-water mark back.
    """

    def __init__(self) -> None:
        try:
            CLEAR_PEAK.write_text("5", encoding="ascii")  # the kernel's sign for this
        except OSError:
            self._before = None
        else:
            self._before = _megabytes("VmRSS")

    @property
    def peak(self) -> float | None:
        """The largest since it began to watch, in megabytes of 1,048,576 bytes."""
        return None if self._before is None else _megabytes("VmHWM")

    @property
    def rise(self) -> float | None:
        """The same, less what the process held then."""
        peak = self.peak
        return None if peak is None or self._before is None else round(max(0.0, peak - self._before), 1)


def _megabytes(name: str) -> float | None:
    """What the system says of the process's memory."""
    try:
        lines = STATUS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    kilobytes = next((line.split()[1] for line in lines if line.startswith(f"{name}:")), None)
    return None if kilobytes is None else round(int(kilobytes) / 1024, 1)
