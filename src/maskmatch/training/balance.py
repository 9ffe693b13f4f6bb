"""Skewed labels and weighted rows: how much each row, and each label, counts in the loss."""

from __future__ import annotations

import logging
import math
import statistics
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from maskmatch.config.training import FEW_TEXTS
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from maskmatch.config.training import TrainingConfig
    from maskmatch.data import Examples

logger = logging.getLogger("maskmatch")

LARGEST_SHARE = 1 / 3
"""The share of all rows that a label may have in any case."""

RARE = 3
"""Labels with fewer rows are often mistyped ones, so they do not tell how many rows a label usually has."""

LEAST_ROWS = 5
"""A large label never counts less than this many rows."""

SKEWED = 10
"""If a label has this many times as many rows as the median label, users are warned."""


@dataclass(frozen=True)
class Balance:
    """How much each row, and each label, counts in the loss.

    Attributes:
        weights: (n,) how much each text counts, 1 on average; None: all the same.
        adjustment: (K,) what the loss adds to the logits of each label: more for labels with more rows; None: nothing.
    """

    weights: NDArray[np.float32] | None = None
    adjustment: NDArray[np.float32] | None = None

    def batch(self, rows: Sequence[int], owners: NDArray[np.int64]) -> dict[str, Any]:
        """What a batch of some rows needs.

        Args:
            rows: The rows of the batch: texts, or windows of them, which share the weight of their text.
            owners: (rows,) the text of each row.
        """
        weights, windows = self.weights, np.bincount(owners)
        if len(owners) > len(windows):
            each = (np.ones(len(windows)) if weights is None else weights) / windows
            weights = np.asarray(each * len(owners) / len(windows), np.float32)
        return {
            "weights": None if weights is None else torch.from_numpy(weights[owners[list(rows)]]),
            "adjustment": None if self.adjustment is None else torch.from_numpy(self.adjustment),
        }

    def effective_counts(self, targets: NDArray[np.int64], labels: int) -> NDArray[np.float64]:
        """How many rows of the same weight the rows of each label are worth: (K,)."""
        if self.weights is None:
            return np.bincount(targets, minlength=labels).astype(np.float64)
        totals = np.bincount(targets, self.weights, minlength=labels)
        squares = np.bincount(targets, self.weights**2, minlength=labels)
        return np.asarray(totals**2 / np.maximum(squares, 1e-30))

    @property
    def parts(self) -> tuple[bytes, ...]:
        """What tells it from another one, for a digest."""
        return tuple(part.tobytes() for part in (self.weights, self.adjustment) if part is not None)


NO_BALANCE = Balance()


def balance_of(
    targets: NDArray[Any], labels: int, config: TrainingConfig, weights: Sequence[float] | None = None
) -> Balance:
    """How much each row and each label counts.

    Args:
        targets: (n,) positions of labels, or (n, K) of 0 and 1.
        labels: The number of labels.
        config: How to train.
        weights: (n,) the weights of the user, if there are any.
    """
    own = np.ones(len(targets)) if weights is None else np.asarray(weights, np.float64)
    if targets.ndim == 2:  # each label has a loss of its own
        return Balance(None if weights is None else _of_mean_one(own))
    totals = np.bincount(targets, own, minlength=labels).astype(np.float64)  # (K,)
    if config.class_weight == "balanced":
        own = own / totals[targets]
        totals = (totals > 0).astype(np.float64)
    weighted = weights is not None or config.class_weight is not None
    return Balance(_of_mean_one(own) if weighted else None, _adjustment(totals, config.logit_adjustment))


def _of_mean_one(weights: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.asarray(weights / weights.mean(), np.float32)


def _adjustment(totals: NDArray[np.float64], strength: float) -> NDArray[np.float32] | None:
    """What is added to the logits of labels with these total weights; None if they are all alike.

    A label without rows counts as one with the fewest.
    """
    present = totals[totals > 0]
    if not strength or not len(present) or np.ptp(present) < 1e-6 * present.max():
        return None
    logs = np.log(np.maximum(totals, present.min()))
    return np.asarray(strength * (logs - logs.mean()), np.float32)


def without_skew(examples: Examples, config: TrainingConfig, *, quiet: bool = False) -> Examples:
    """The rows to train on: of a label with far more rows than the others, some. Warns if labels are skewed.

    The larger the label, the less all of its rows together count: at least as much as those of the median label, with
    more than 10 rows per label more. A user who weights rows or labels wants all of them.

    Args:
        examples: The rows, with one label each.
        config: How to train.
        quiet: Whether users were warned already.
    """
    rows = examples.labels or []
    if not rows:
        return examples
    counts = Counter(rows)
    usual = _usual_count(list(counts.values()))
    most, large = counts.most_common(1)[0]
    enough = max(LEAST_ROWS, usual) * max(1.0, usual / FEW_TEXTS)
    wanted = config.max_skew and config.class_weight is None and examples.weights is None
    limit = _limit(list(counts.values()), math.ceil(config.max_skew * enough)) if wanted else math.inf
    if large <= limit:
        if large >= SKEWED * usual and not quiet:
            logger.warning(
                "The labels are skewed: %r has %d of %d rows, the median label %g. Look at the report per label.",
                most,
                large,
                len(rows),
                usual,
            )
        return examples
    kept: list[int] = []
    seen: Counter[Any] = Counter()
    for row in np.random.default_rng(config.seed).permutation(len(rows)).tolist():
        seen[rows[row]] += 1
        if seen[rows[row]] <= limit:
            kept.append(row)
    over = {label: count for label, count in counts.items() if count > limit}
    spread = max(0.0, config.max_skew - 1) * enough
    weights = {
        label: min(1.0, (enough + spread * config.max_skew * enough / count) / limit) for label, count in over.items()
    }
    used = examples.select(sorted(kept))
    used = replace(used, weights=[weights.get(label, 1.0) for label in used.labels or []])
    if quiet:
        return used
    others = "" if len(over) == 1 else f" (and {len(over) - 1} more labels have too many)"
    logger.warning(
        "The labels are skewed: %r has %d of %d rows, the median label %g%s. Training uses %d rows of it, drawn at "
        "random, with less weight, because they would drown labels with few rows; max_skew=0 (--max-skew 0) uses all.",
        most,
        large,
        len(rows),
        usual,
        others,
        limit,
    )
    return used


def _usual_count(counts: Sequence[int]) -> int:
    """How many rows the median label has, without labels that have hardly any, if more than one label is left.

    >>> _usual_count([200, 5, 5, 5]), _usual_count([900, 800, 1, 1]), _usual_count([200, 1, 1])
    (5, 800, 1)
    """
    common = [count for count in counts if count >= RARE]
    return statistics.median_low(common if len(common) > 1 else counts)


def _limit(counts: Sequence[int], most: int) -> float:
    """The largest number of rows per label: as given, or more, until it has a third of all rows.

    Several labels are limited only if they are a third of all at most: otherwise the small ones are the exception.

    >>> _limit([200, *[5] * 9], 10), _limit([900, 800, 3, 3], 10)
    (22, inf)
    """
    limit = max(most, _rows_for_share(counts, LARGEST_SHARE))
    over = sum(count > limit for count in counts)
    return math.inf if over > max(1, len(counts) * LARGEST_SHARE) else limit


def _rows_for_share(counts: Sequence[int], share: float) -> int:
    """The largest number of rows per label with which no label has more than this share of all rows.

    >>> _rows_for_share([200, 20, 20], 0.5), _rows_for_share([9, 9, 9, 9], 0.5), _rows_for_share([9, 9], 0.25)
    (40, 9, 0)
    """
    limit = max(counts)
    while limit > share * sum(min(count, limit) for count in counts):
        limit = min(limit - 1, math.floor(share * sum(min(count, limit) for count in counts)))
    return limit


def checked_weights(weights: Any, rows: int) -> list[float] | None:
    """The weights of rows that a user gave; raise unless there is one number of at least 0 per row."""
    if weights is None:
        return None
    try:
        found = np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        raise MaskMatchError("sample_weight must be numbers, one per row.") from None
    if found.shape != (rows,):
        given = f"{len(found)} weights" if found.ndim == 1 else f"an array of shape {found.shape}"
        raise MaskMatchError(f"sample_weight has {given} for {rows} rows; give one number per row.")
    if not np.isfinite(found).all() or (found < 0).any() or not found.any():
        raise MaskMatchError("sample_weight must be numbers of at least 0, and not all of them 0.")
    kept: list[float] = found.tolist()
    return None if min(kept) == max(kept) else kept  # rows that all count the same have no weights
