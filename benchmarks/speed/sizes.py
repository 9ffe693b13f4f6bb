"""How much is measured: as it is reported, and so little that it only shows that everything runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Sizes:
    """The sizes of all parts.

    Attributes:
        datasets: What training is measured on.
        shots: Examples a label.
        test_texts: How many test texts accuracy is measured on; None: all.
        shares: The shares of maskmatch's usual epochs that it trains for.
        iterations: The numbers of iterations of SetFit, for each dataset.
        repeats: How often a short run is measured.
        short_seconds: A training run that takes longer is measured three times.
        long_seconds: One that takes even longer, once.
        prediction_texts: How many texts are predicted at once.
        cross_texts: How many of them a cross-encoder reads, once with each label.
        prompt_texts: How many of them are read together with all labels.
        batch: Texts of a training step.
        prompt_batch: Texts of a training step of which each is read together with all labels; the seconds are told
            for as many texts as others have, in proportion.
        setfit_steps: How many of SetFit's steps are timed together.
        labels: The numbers of labels of the curves.
        most_full: The most labels of which a step reads all: beyond, their states do not fit into a small memory.
        most_head: The most labels that a learned head has: a million would take 6 GB beside all others.
        most_read: The most labels whose names are read; the vectors of more are mixed of real ones with noise.
        lengths: The lengths of texts of the curves, in words.
        memory_lengths: Those of them that memory is measured at: each takes a process of its own.
        memory_labels: The same of the numbers of labels.
        searched: The numbers of labels that the search alone is measured at, exactly and by an index.
        length_labels: How many labels there are when the length is varied.
        curve_texts: How many texts are predicted at each number of labels.
        length_texts: How many texts are predicted at each length.
        limit: A curve ends before a run that would take more seconds.
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
"""Nothing that is measured so is worth telling."""
