"""How studies say what cells show: means, differences with their significance, and when nothing can be told."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from maskmatch.comparison.statistics import PairedDifference, holm
from maskmatch.comparison.text import p_value
from maskmatch.evaluation.display import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.studies.study import Found

BY_NAME: dict[str, Any] = {"training": {"example_share": 0.0}, "epoch_factor": 0.4}
"""How variants train by which the reading of labels is judged: a label's texts have no share in its vector, since they
are read on the other side; 40 steps take the place of 100, as many as where they have a share."""

BY_NAME_TOLD = (
    "With training, label vectors are what is read of names alone (example_share 0), as a label's training texts are "
    "read on the side of texts; training takes as many steps as with the usual share."
)

CERTAIN = 0.05
"""Below this a difference is not taken for chance."""

HOW_TESTED = (
    "Differences are means over datasets and seeds, in points of accuracy, tested by a paired bootstrap over test "
    "rows; p is corrected for the number of tests in its sentence (Holm). A difference counts from p < 0.05, if it has "
    "the same sign with every seed."
)


@dataclass(frozen=True)
class Tested:
    """A variant against a reference.

    Attributes:
        name: The variant.
        accuracy: Its mean accuracy.
        result: How much more often it is right than the reference.
        p: The chance of such a difference, corrected for all tests that were made with it.
        by_seed: The difference with each seed.
    """

    name: str
    accuracy: float
    result: PairedDifference
    p: float
    by_seed: tuple[float, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether the difference has the same sign with every seed."""
        return all(each * self.result.difference > 0 for each in self.by_seed)

    @property
    def verdict(self) -> int:
        """1: better than the reference, -1: worse, 0: not to be told apart."""
        if self.p >= CERTAIN or not self.agrees:
            return 0
        return 1 if self.result.difference > 0 else -1

    def __str__(self) -> str:
        doubt = ", but not with every seed" if self.p < CERTAIN and not self.agrees else ""
        return f"{self.name} ({points(self.result.difference)}, p {compared(self.p)}{doubt})"


def trials(
    found: Found, reference: str, others: Sequence[str], regime: str, datasets: Sequence[str] | None = None
) -> list[Tested]:
    """Each variant against the reference, wherever both answered in a regime."""
    pairs = [(name, found.comparison.difference(name, reference, regime, datasets)) for name in others]
    known = [(name, result) for name, result in pairs if result is not None]
    raised = holm([result.p for _, result in known])
    return [
        Tested(
            name,
            found.comparison.accuracy(name, regime, datasets) or 0.0,
            result,
            p,
            found.comparison.difference_by_seed(name, reference, regime, datasets),
        )
        for (name, result), p in zip(known, raised, strict=True)
    ]


def corrected(tested: Sequence[Tested]) -> list[Tested]:
    """Tests that are told in one sentence, corrected for all of them."""
    raised = holm([each.result.p for each in tested])
    return [replace(each, p=p) for each, p in zip(tested, raised, strict=True)]


def against(
    found: Found,
    reference: str,
    others: Sequence[str],
    regime: str,
    *,
    datasets: Sequence[str] | None = None,
    about: str = "",
) -> str | None:
    """A sentence: which of the others are better than the reference, which worse, and which cannot be told apart.

    Args:
        found: What was found.
        reference: The variant to test against.
        others: The variants to test.
        regime: The regime.
        datasets: On which datasets; None: on all.
        about: What the sentence begins with, such as "On the label side".

    Returns:
        None where nothing of this was run.
    """
    rows = trials(found, reference, others, regime, datasets)
    own = found.comparison.accuracy(reference, regime, datasets)
    if not rows or own is None:
        return None
    parts = []
    for verdict, words in ((1, "better: "), (-1, "worse: "), (0, "not to be told apart from it: ")):
        named = [str(row) for row in rows if row.verdict == verdict]
        if named:
            parts.append(words + ", ".join(named))
    begin = f"{about}, {regime}" if about else sentence_case(regime)
    return f"{begin}: {reference} is right in {percent(own)}; {'; '.join(parts)}."


def points(difference: float) -> str:
    """A difference of accuracies in points.

    Example:
        >>> points(0.0312), points(-0.2)
        ('+3.1', '-20.0')
    """
    return f"{100 * difference:+.1f}"


def percent(share: float) -> str:
    """A share in percent.

    Example:
        >>> percent(0.6178)
        '61.8 %'
    """
    return f"{100 * share:.1f} %"


def sentence_case(words: str) -> str:
    """Words with a capital at their beginning."""
    return words[:1].upper() + words[1:]


def few_seeds(found: Found) -> list[str]:
    """A sentence of warning where there are too few seeds to report figures."""
    seeds = len({cell.seed for cell in found.comparison.cells})
    return [] if seeds >= 3 else [f"With {counted(seeds, 'seed')} this is a first look, not a finding."]


def compared(p: float) -> str:
    """A p value behind the letter.

    Example:
        >>> compared(0.0312), compared(0.00001)
        ('= 0.031', '< 0.001')
    """
    told = p_value(p)
    return told if told.startswith("<") else f"= {told}"
