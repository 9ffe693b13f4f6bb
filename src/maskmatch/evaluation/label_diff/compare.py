"""Compare the predictions of a classifier before and after an edit of its labels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError, packages_needed
from maskmatch.evaluation.display import excerpt
from maskmatch.evaluation.label_diff.result import ChangedText, LabelCount, LabelDiff, Move, PairedAccuracy

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

EXAMPLES = 3
"""How many texts are shown per pair of labels."""


@dataclass(frozen=True)
class _Answer:
    """The predictions for a text before and after."""

    before: Hashable
    after: Hashable
    before_probability: float
    after_probability: float


def diff_predictions(
    texts: Sequence[Any],
    before: Sequence[tuple[Hashable, float]],
    after: Sequence[tuple[Hashable, float]],
    *,
    old_labels: Iterable[Hashable],
    new_labels: Iterable[Hashable],
    truth: Sequence[Hashable] | None = None,
    ids: Mapping[Hashable, Hashable] | None = None,
) -> LabelDiff:
    """Compare the predictions for the same texts before and after an edit of the labels.

    Args:
        texts: The texts, or dicts of fields.
        before: The predicted label of each text with its probability, before.
        after: The same after.
        old_labels: The labels before.
        new_labels: The labels after.
        truth: The true label of each text, if known, by its old id, or by its new one if it has no old one.
        ids: The new id of each old label that stays; None: labels with the same id are the same.
    """
    old_ids, new_ids = list(old_labels), list(new_labels)
    same = {id_: id_ for id_ in old_ids if id_ in set(new_ids)} if ids is None else dict(ids)
    # A label that was removed is not the one that has its name now.
    removed = {id_: f"{id_} (removed)" for id_ in old_ids if id_ not in same and id_ in set(new_ids)}
    same = {**removed, **same}
    if not texts:
        raise MaskMatchError("There are no texts to classify; give at least one.")
    if truth is not None and len(truth) != len(texts):
        raise MaskMatchError(f"There are {len(texts)} texts and {len(truth)} true labels; give one per text.")
    answers = [
        _Answer(same.get(old, old), new, old_probability, new_probability)
        for (old, old_probability), (new, new_probability) in zip(before, after, strict=True)
    ]
    shown = {row: excerpt(texts[row]) for row, one in enumerate(answers) if one.before != one.after}
    true = None if truth is None else [same.get(label, label) for label in truth]
    kept = [one for one in answers if one.before == one.after]
    shifts = [abs(one.after_probability - one.before_probability) for one in kept]
    return LabelDiff(
        rows=len(answers),
        changed=len(answers) - len(kept),
        moves=_moves(answers, shown, true),
        labels=_counts(answers, [same.get(id_, id_) for id_ in old_ids], new_ids),
        confidence=(
            _mean([one.before_probability for one in answers]),
            _mean([one.after_probability for one in answers]),
        ),
        shift=_mean(shifts),
        accuracy=None if true is None else _accuracy(answers, true),
        renamed=tuple((old, new) for old, new in same.items() if old != new and old not in removed),
    )


def _moves(answers: Sequence[_Answer], shown: Mapping[int, str], true: Sequence[Hashable] | None) -> tuple[Move, ...]:
    """The changed texts by pair of labels, the most frequent pair first."""
    pairs: dict[tuple[Hashable, Hashable], list[int]] = {}
    for row in shown:
        pairs.setdefault((answers[row].before, answers[row].after), []).append(row)
    moves = []
    for (old, new), rows in sorted(pairs.items(), key=lambda pair: -len(pair[1])):
        surest = sorted(rows, key=lambda row: -answers[row].after_probability)[:EXAMPLES]
        examples = tuple(
            ChangedText(
                row,
                shown[row],
                round(answers[row].before_probability, 4),
                round(answers[row].after_probability, 4),
                None if true is None else true[row],
            )
            for row in surest
        )
        mended = None if true is None else sum(true[row] == new for row in rows)
        broken = None if true is None else sum(true[row] == old for row in rows)
        moves.append(Move(old, new, len(rows), mended, broken, examples))
    return tuple(moves)


def _counts(
    answers: Sequence[_Answer], old_ids: Sequence[Hashable], new_ids: Sequence[Hashable]
) -> tuple[LabelCount, ...]:
    """Texts per label, the largest changes first."""
    before, after = Counter(one.before for one in answers), Counter(one.after for one in answers)
    moved = [one for one in answers if one.before != one.after]
    won, lost = Counter(one.after for one in moved), Counter(one.before for one in moved)
    old, new = set(old_ids), set(new_ids)
    labels = [
        LabelCount(
            label=id_,
            before=before[id_],
            after=after[id_],
            won=won[id_],
            lost=lost[id_],
            is_new=id_ not in old,
            is_removed=id_ not in new,
        )
        for id_ in dict.fromkeys([*new_ids, *old_ids])
    ]
    return tuple(sorted(labels, key=lambda each: -(each.won + each.lost)))


def _accuracy(answers: Sequence[_Answer], true: Sequence[Hashable]) -> PairedAccuracy:
    with packages_needed():
        from scipy.stats import binomtest

    right = [(one.before == label, one.after == label) for one, label in zip(answers, true, strict=True)]
    mended = sum(new and not old for old, new in right)
    broken = sum(old and not new for old, new in right)
    p = float(binomtest(mended, mended + broken).pvalue) if mended + broken else 1.0
    before, after = (_mean([each[place] for each in right]) for place in (0, 1))
    return PairedAccuracy(len(right), before, after, mended, broken, round(p, 5))


def _mean(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 4) if values else 0.0
