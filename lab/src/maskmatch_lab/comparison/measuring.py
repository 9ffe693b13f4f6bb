"""The cost of a training run: parameters and memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import TrainerCallback

CLEAR_PEAK, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


class TrainingWatch(TrainerCallback):
    """A callback that records the cost of training.

    Attributes:
        parameters: The number of trained parameters.
        peak_megabytes: The peak resident memory of the process during training, including libraries, weights and data.
            None if unknown: only Linux lets a process reset its own high-water mark.
        rise_megabytes: The increase over the memory at the beginning of training.
    """

    def __init__(self) -> None:
        self.parameters = 0
        self.peak_megabytes: float | None = None
        self.rise_megabytes: float | None = None
        self._memory = MemoryWatch()

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **options: Any) -> None:
        """Count the parameters, and reset the high-water mark."""
        self.parameters = sum(each.numel() for each in model.parameters() if each.requires_grad)
        self._memory = MemoryWatch()

    def on_train_end(self, args: Any, state: Any, control: Any, **options: Any) -> None:
        """Read the high-water mark."""
        self.finish()

    def finish(self) -> None:
        """Read the high-water mark, since the beginning of training or since this was made."""
        self.peak_megabytes, self.rise_megabytes = self._memory.peak, self._memory.rise


class MemoryWatch:
    """The peak resident memory of the process from now on, and its increase.

    None if unknown: only Linux lets a process reset its own high-water mark.
    """

    def __init__(self) -> None:
        try:
            CLEAR_PEAK.write_text("5", encoding="ascii")  # the kernel's code for a reset
        except OSError:
            self._before = None
        else:
            self._before = _megabytes("VmRSS")

    @property
    def peak(self) -> float | None:
        """The peak in megabytes of 1,048,576 bytes."""
        return None if self._before is None else _megabytes("VmHWM")

    @property
    def rise(self) -> float | None:
        """The peak minus the memory at the beginning."""
        peak = self.peak
        return None if peak is None or self._before is None else round(max(0.0, peak - self._before), 1)


def _megabytes(name: str) -> float | None:
    """A memory figure of the process, from the system."""
    try:
        lines = STATUS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    kilobytes = next((line.split()[1] for line in lines if line.startswith(f"{name}:")), None)
    return None if kilobytes is None else round(int(kilobytes) / 1024, 1)
