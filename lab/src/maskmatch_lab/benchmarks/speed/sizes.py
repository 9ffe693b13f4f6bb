"""The sizes of the benchmark: those of reported results, and tiny ones that only check that everything runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Sizes:
    """The sizes of all parts.

    Attributes:
        datasets: The datasets for training.
        shots: Training rows per label.
        test_texts: The number of test texts for accuracy; None: all.
        shares: The shares of maskmatch's usual epochs to train for.
        iterations: SetFit's numbers of iterations, for each dataset.
        repeats: The number of measurements of a short run.
        short_seconds: A training run that takes longer is measured three times.
        long_seconds: A training run that takes longer than this is measured once.
        prediction_texts: The number of texts of a prediction.
        cross_texts: The number of texts for a cross-encoder, which encodes each with every label.
        prompt_texts: The number of texts for peers that encode a text together with all labels.
        batch: Texts per training step.
        prompt_batch: Texts per training step of peers that encode a text together with all labels; their time is
            scaled to the batch size of the others.
        setfit_steps: The number of SetFit's steps that are timed together.
        labels: The numbers of labels of the curves.
        most_full: The largest number of labels that a step encodes in full; the states of more do not fit into memory.
        most_head: The largest number of labels of a learned head; a million would take 6 GB.
        most_read: The largest number of labels whose names are encoded; for more, vectors are synthetic.
        lengths: The lengths of texts of the curves, in words.
        memory_lengths: The lengths at which memory is measured, each in a process of its own.
        memory_labels: The numbers of labels at which memory is measured.
        searched: The numbers of labels at which the search alone is measured, exact and approximate.
        length_labels: The number of labels of the curves over length.
        curve_texts: The number of texts of a prediction at each number of labels.
        length_texts: The number of texts of a prediction at each length.
        limit: A curve ends before a run that would take more seconds than this.
    """

    datasets: tuple[str, ...] = ("banking77", "clinc150")
    shots: int = 5
    test_texts: int | None = None
    shares: tuple[float, ...] = (0.125, 0.25, 0.5, 1.0)
    iterations: tuple[tuple[int, ...], ...] = ((5, 20), (5,))
    repeats: int = 5
    short_seconds: float = 20.0
    long_seconds: float = 300.0
    prediction_texts: int = 1000
    cross_texts: int = 2
    prompt_texts: int = 4
    batch: int = 32
    prompt_batch: int = 4
    setfit_steps: int = 4
    labels: tuple[int, ...] = (10, 100, 1000, 10_000, 100_000, 1_000_000)
    most_full: int = 1000
    most_head: int = 100_000
    most_read: int = 10_000
    lengths: tuple[int, ...] = (8, 16, 32, 64, 128, 192)
    memory_lengths: tuple[int, ...] = (8, 64, 192)
    memory_labels: tuple[int, ...] = (10, 1000, 100_000, 1_000_000)
    searched: tuple[int, ...] = (1000, 5000, 10_000, 20_000, 50_000, 100_000, 1_000_000)
    length_labels: int = 100
    curve_texts: int = 256
    length_texts: int = 64
    limit: float = 15.0

    def to_dict(self) -> dict[str, Any]:
        """The sizes as plain JSON."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


TINY = Sizes(
    datasets=("banking77",),
    shots=1,
    test_texts=20,
    shares=(0.01, 0.02),
    iterations=((1,),),
    repeats=1,
    short_seconds=0.0,
    prediction_texts=8,
    cross_texts=1,
    prompt_texts=2,
    batch=4,
    prompt_batch=1,
    setfit_steps=1,
    labels=(2, 20, 1200),
    most_full=20,
    most_head=20,
    most_read=20,
    lengths=(4, 8),
    memory_lengths=(4, 8),
    memory_labels=(2, 1200),
    searched=(600, 1200),
    length_labels=4,
    curve_texts=8,
    length_texts=4,
)
"""Measurements with these sizes mean nothing."""
