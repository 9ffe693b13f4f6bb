"""Advice: edits of labels that are tried on labelled texts; what does not help on other texts is not advised."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, get_args

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.evaluation.display import counted
from maskmatch.label_tools.check.findings import Advice, AdviceKind
from maskmatch.label_tools.expansion.training_words import training_words
from maskmatch.labels import LabelSet
from maskmatch.labels.centroids import check_examples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from maskmatch.label_tools.check.label_texts import LabelTexts
    from maskmatch.label_tools.expansion import EncodedLabels
    from maskmatch.labels import Label

KINDS: tuple[AdviceKind, ...] = get_args(AdviceKind)

EXAMPLES = 8
"""How many examples a label is given."""

PHRASES = 3
"""How many phrases a label is given."""

MOST_LABELS = 40
"""For how many labels edits are tried, those with the most errors first."""

LEAST_TEXTS = 4
"""A label with fewer texts has too few to make an edit from one half and try it on the other."""

MARGIN = 2
"""An edit must mend at least this many more texts than it breaks, over both halves."""


@dataclass(frozen=True)
class _Half:
    """One half of the texts, on which edits are tried that were made from the other half."""

    made_from: NDArray[np.int64]  # row numbers
    tried_on: NDArray[np.int64]


@dataclass(frozen=True)
class _Trial:
    """An edit that was tried: what it gains, what is right on each half, and the labels with it."""

    kind: AdviceKind
    gain: int
    right: list[NDArray[np.bool_]]
    halves: list[list[Label]]
    whole: list[Label]


class Trials:
    """Tries edits of labels on labelled texts. What is made from one half is tried on the other.

    Args:
        labels: The labels with their vectors.
        label_texts: The labelled texts.
        vectors: (n, dim), their vectors.
        seed: The seed of the split.
    """

    def __init__(
        self, labels: EncodedLabels, label_texts: LabelTexts, vectors: NDArray[np.float32], seed: int = 0
    ) -> None:
        self._labels, self._texts, self._vectors = labels, label_texts.texts, vectors
        self._targets = np.full(len(vectors), -1, np.int64)
        for place, rows in enumerate(label_texts.rows):
            self._targets[rows] = place
        order = np.random.default_rng(seed).permutation(np.flatnonzero(self._targets >= 0))
        first, second = np.sort(order[::2]), np.sort(order[1::2])
        self._halves = (_Half(first, second), _Half(second, first))

    @cached_property
    def _takes_examples(self) -> bool:
        try:
            check_examples(self._labels.matcher.config)
        except MaskMatchError:
            return False
        return True

    def advise(self) -> tuple[list[Advice], LabelSet]:
        """The edits that help, the label with the most errors first, and the labels after all of them.

        Each half has labels with the edits that were made from the other half alone, so that no text is ever tried with
        an edit that was made from it.
        """
        start = list(self._labels.labels.labels)
        halves, whole = [start, start], start
        advice: list[Advice] = []
        right = [self._right(own, half.tried_on) for own, half in zip(halves, self._halves, strict=True)]
        for place in self._by_errors():
            best: _Trial | None = None
            for kind in KINDS:
                found = self._try(halves, whole, place, kind, right)
                if found is not None and (best is None or found.gain > best.gain):
                    best = found
            if best is not None and best.gain >= MARGIN:
                advice.append(self._advice(place, best, right))
                halves, whole, right = best.halves, best.whole, best.right
        return advice, LabelSet(tuple(whole))

    def _try(
        self,
        halves: Sequence[list[Label]],
        whole: list[Label],
        place: int,
        kind: AdviceKind,
        right: Sequence[NDArray[np.bool_]],
    ) -> _Trial | None:
        """Try an edit of one label; None if there is nothing to edit, or if it does harm on either half."""
        gain, after, edited = 0, [], []
        for half, labels, before in zip(self._halves, halves, right, strict=True):
            own = self._with_edit(labels, place, kind, half.made_from)
            if own is None:
                return None
            now = self._right(own, half.tried_on)
            difference = int(now.sum()) - int(before.sum())
            if difference < 0:
                return None
            gain += difference
            after.append(now)
            edited.append(own)
        final = self._with_edit(whole, place, kind, np.concatenate([half.made_from for half in self._halves]))
        return None if final is None else _Trial(kind, gain, after, edited, final)

    def _with_edit(
        self, labels: list[Label], place: int, kind: AdviceKind, rows: NDArray[np.int64]
    ) -> list[Label] | None:
        """The labels with an edit of one of them that is made from some texts; None if it cannot be made."""
        label = self._edited(labels[place], place, kind, rows)
        if label is None:
            return None
        edited = [*labels[:place], label, *labels[place + 1 :]]
        distinct = {each.name.casefold() for each in edited}
        return edited if len(distinct) == len(edited) else None

    def _edited(self, label: Label, place: int, kind: AdviceKind, rows: NDArray[np.int64]) -> Label | None:
        """A label with an edit that is made from some texts; None if they are too few for it."""
        own = rows[self._targets[rows] == place]
        if kind == "no description":
            return replace(label, description="") if label.description else None
        if len(own) < LEAST_TEXTS // 2:
            return None
        if kind == "examples":
            return self._with_examples(label, own)
        words = self._typical_words(place, rows)
        if not words:
            return None
        if kind == "phrases":
            return replace(label, phrases=(*label.phrases, *words))
        return replace(label, name=" and ".join(words[:2]))

    def _with_examples(self, label: Label, own: NDArray[np.int64]) -> Label | None:
        """A label with the most typical of its texts as examples; None if it cannot have any."""
        if not self._takes_examples or not all(isinstance(self._texts[row], str) for row in own):
            return None
        mean = self._vectors[own].mean(axis=0)
        nearest = own[np.argsort(-(self._vectors[own] @ mean), kind="stable")][:EXAMPLES]
        examples = dict.fromkeys([*label.examples, *(str(self._texts[row]) for row in nearest)])
        return replace(label, examples=tuple(examples))

    def _typical_words(self, place: int, rows: NDArray[np.int64]) -> list[str]:
        """The words that are typical of a label's texts, among some texts."""
        texts = [self._texts[row] for row in rows.tolist()]
        groups = [int(target == place) for target in self._targets[rows].tolist()]
        found = training_words(LabelSet.of([0, 1]), texts, groups, PHRASES)[1]
        return [each.text for each in found]

    def _right(self, labels: Sequence[Label], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some texts get their true label."""
        vectors = replace(self._labels, labels=LabelSet(tuple(labels))).shifted_vectors  # (K, dim)
        return np.asarray((self._vectors[rows] @ vectors.T).argmax(axis=1) == self._targets[rows])

    def _by_errors(self) -> Iterator[int]:
        """The positions of labels that have enough texts, those with the most errors first."""
        known = np.flatnonzero(self._targets >= 0)
        vectors = self._labels.shifted_vectors
        nearest = (self._vectors[known] @ vectors.T).argmax(axis=1)
        wrong = nearest != self._targets[known]
        errors = np.bincount(self._targets[known][wrong], minlength=len(vectors))
        errors += np.bincount(nearest[wrong], minlength=len(vectors))
        sizes = np.bincount(self._targets[known], minlength=len(vectors))
        for place in np.argsort(-errors, kind="stable")[:MOST_LABELS].tolist():
            if errors[place] and sizes[place] >= LEAST_TEXTS:
                yield place

    def _advice(self, place: int, trial: _Trial, before: Sequence[NDArray[np.bool_]]) -> Advice:
        label, name = trial.whole[place], self._labels.labels.labels[place].name
        texts, what = {
            "examples": (label.examples, f"Give it {counted(len(label.examples), 'example')}"),
            "phrases": (label.phrases, f"Give it the phrases {', '.join(label.phrases)}"),
            "name": ((label.name,), f'Name it "{label.name}"'),
            "no description": ((), "Leave out its description"),
        }[trial.kind]
        old, new = (float(np.concatenate(list(part)).mean()) for part in (before, trial.right))
        more = counted(trial.gain, "more text")
        message = f'"{name}": {what}. {more} right, on texts that it was not made from.'
        return Advice(label.id, trial.kind, tuple(texts), round(old, 4), round(new, 4), message)
