"""Results of studies in words: means, differences with their significance, and differences that are not clear."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from maskmatch.evaluation.display import counted
from maskmatch_lab.comparison.statistics import PairedDifference, holm
from maskmatch_lab.comparison.text import p_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch_lab.studies.study import Evidence

BY_NAME: dict[str, Any] = {"training": {"example_share": 0.0}, "epoch_factor": 0.4}
"""How variants train in studies of label vectors. Training texts do not shift the vector of their label, because they
are read with the input prompt. Training takes 40 steps instead of 100, as many as with the usual shift."""

BY_NAME_NOTE = (
    "With training, label vectors come from names alone (example_share 0), because training texts are read with the "
    "input prompt. Training takes as many steps as with the usual example_share."
)

SIGNIFICANT = 0.05
"""A difference is significant if its corrected p is below this."""

HOW_TESTED = (
    "Differences are means over datasets and seeds, in points of accuracy, tested by a paired bootstrap over test "
    "rows; p is corrected for the number of tests in its sentence (Holm). A difference is clear if p < 0.05 and it has "
    "the same sign with every seed."
)


@dataclass(frozen=True)
class Tested:
    """A variant against a reference.

    Attributes:
        name: The variant.
        accuracy: Its mean accuracy.
        result: The difference of its accuracy from that of the reference.
        p: The p-value, corrected for all tests that were made with it.
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
        """1: better than the reference, -1: worse, 0: no clear difference."""
        if self.p >= SIGNIFICANT or not self.agrees:
            return 0
        return 1 if self.result.difference > 0 else -1

    def __str__(self) -> str:
        doubt = ", but not with every seed" if self.p < SIGNIFICANT and not self.agrees else ""
        return f"{self.name} ({points(self.result.difference)}, p {p_text(self.p)}{doubt})"


def paired_tests(
    evidence: Evidence, reference: str, others: Sequence[str], regime: str, datasets: Sequence[str] | None = None
) -> list[Tested]:
    """Each variant against the reference, on the datasets on which both ran in a regime."""
    pairs = [(name, evidence.comparison.difference(name, reference, regime, datasets)) for name in others]
    known = [(name, result) for name, result in pairs if result is not None]
    corrected_ps = holm([result.p for _, result in known])
    return [
        Tested(
            name,
            evidence.comparison.accuracy(name, regime, datasets) or 0.0,
            result,
            p,
            evidence.comparison.difference_by_seed(name, reference, regime, datasets),
        )
        for (name, result), p in zip(known, corrected_ps, strict=True)
    ]


def corrected(tested: Sequence[Tested]) -> list[Tested]:
    """Tests that are reported in one sentence, corrected for all of them."""
    corrected_ps = holm([each.result.p for each in tested])
    return [replace(each, p=p) for each, p in zip(tested, corrected_ps, strict=True)]


def against(
    evidence: Evidence,
    reference: str,
    others: Sequence[str],
    regime: str,
    *,
    datasets: Sequence[str] | None = None,
    about: str = "",
) -> str | None:
    """A sentence: which of the others are better than the reference, which are worse, and which are not clear.

    Args:
        evidence: The cells and datasets.
        reference: The variant to test against.
        others: The variants to test.
        regime: The regime.
        datasets: The datasets; None: all.
        about: The beginning of the sentence, such as "On the label side".

    Returns:
        None if none of these ran.
    """
    rows = paired_tests(evidence, reference, others, regime, datasets)
    own = evidence.comparison.accuracy(reference, regime, datasets)
    if not rows or own is None:
        return None
    parts = []
    for verdict, words in ((1, "better: "), (-1, "worse: "), (0, "no clear difference: ")):
        named = [str(row) for row in rows if row.verdict == verdict]
        if named:
            parts.append(words + ", ".join(named))
    begin = f"{about}, {regime}" if about else sentence_case(regime)
    return f"{begin}: “{reference}” has an accuracy of {percent(own)}; {'; '.join(parts)}."


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


def few_seeds(evidence: Evidence) -> list[str]:
    """A warning if there are too few seeds to report results."""
    seeds = len({cell.seed for cell in evidence.comparison.cells})
    return [] if seeds >= 3 else [f"With {counted(seeds, 'seed')} these results are preliminary."]


def p_text(p: float) -> str:
    """A p-value with its sign, to follow the letter p.

    Example:
        >>> p_text(0.0312), p_text(0.00001)
        ('= 0.031', '< 0.001')
    """
    text = p_value(p)
    return text if text.startswith("<") else f"= {text}"
