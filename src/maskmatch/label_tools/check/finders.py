"""The rules of a label check: each returns findings of one or two kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.label_tools.check.findings import Finding
from maskmatch.label_tools.check.informativeness import cosine_blocks
from maskmatch.label_tools.check.label_texts import WORDS
from maskmatch.label_tools.check.rewrites import LEAST_SENSE, too_close_cosine
from maskmatch.label_tools.check.suggestions import own_words, suggest_distinction, suggest_name
from maskmatch.label_tools.expansion import EncodedLabels
from maskmatch.label_tools.expansion.vocabulary import vocabulary_words
from maskmatch.labels import LabelSet

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from maskmatch.evaluation import EvaluationReport
    from maskmatch.label_tools.check.findings import FindingKind
    from maskmatch.label_tools.check.informativeness import Informativeness
    from maskmatch.label_tools.check.label_texts import LabelTexts
    from maskmatch.label_tools.check.rewrites import Rewriter

TEXTS_PER_LABEL = 5
"""The average number of texts per label that is needed to report names that are nearest to no text."""

CROWDING = 4.0
"""A label crowds out others if it is nearest to more than 4 times its fair share of texts. With few labels the limit is
that the other labels keep a quarter of their share."""

MOST_FINDINGS = 30
"""The maximum number of pairs of labels in a report, and of names for which words are looked up."""

LEAST_CONFUSIONS = 2


@dataclass(frozen=True)
class _NameProblem:
    """A problem of a name that another name would solve.

    Attributes:
        kind: The kind of finding.
        message: The problem in a sentence, with {} for the name.
        default_suggestion: The suggestion if neither texts nor the vocabulary have words for a new name.
    """

    kind: FindingKind
    message: str
    default_suggestion: str


UNINFORMATIVE = _NameProblem(
    "uninformative",
    '"{}" is uninformative: the encoder finds it similar to meaningless names such as "item" or "class b".',
    "Describe what its texts have in common, in dictionary words.",
)


def find_uninformative(
    labels: EncodedLabels, measured: Informativeness, label_texts: LabelTexts | None, rewriter: Rewriter
) -> list[Finding]:
    """Find names that are similar to meaningless names, least informative first."""
    low = sorted(
        (position for position, sense in enumerate(measured.sense) if sense < LEAST_SENSE),
        key=lambda position: measured.sense[position],
    )
    return _name_findings(labels, low, UNINFORMATIVE, label_texts, rewriter)


def find_close(labels: EncodedLabels, label_texts: LabelTexts | None, rewriter: Rewriter) -> list[Finding]:
    """Find pairs of labels whose names the encoder hardly distinguishes, closest first."""
    limit = too_close_cosine(labels)
    closest: list[tuple[float, int, int]] = []
    for start, cosines in cosine_blocks(labels.vectors):
        rows, columns = np.nonzero(np.triu(cosines, k=start + 1) >= limit)
        pairs = zip((-cosines[rows, columns]).tolist(), (rows + start).tolist(), columns.tolist(), strict=True)
        closest = sorted([*closest, *pairs])[:MOST_FINDINGS]
    return [
        _close_finding(labels.labels, (first, second), -cosine, label_texts, rewriter)
        for cosine, first, second in closest
    ]


def find_unmatched_and_crowding(
    labels: EncodedLabels, nearest: NDArray[np.int64], label_texts: LabelTexts | None
) -> list[Finding]:
    """Find labels that are nearest to no text, and labels that are nearest to too many.

    Args:
        labels: The labels with their vectors.
        nearest: (n,), the position of the nearest label of each text.
        label_texts: The texts of each label. If they are labelled, a label's fair share is at least its true share.
    """
    count_labels = len(labels.labels)
    if len(nearest) < TEXTS_PER_LABEL * count_labels:
        return []
    counts = np.bincount(nearest, minlength=count_labels)
    fair_share = np.full(count_labels, 1 / count_labels)  # (K,)
    if label_texts is not None and label_texts.labelled:
        fair_share = np.maximum(fair_share, [len(own) / len(label_texts) for own in label_texts.rows])
    # The second limit applies if there are few labels: four times a fair share of one half would be all texts and more.
    most = len(nearest) * np.minimum(CROWDING * fair_share, 1 - (1 - fair_share) / CROWDING)
    problem = _NameProblem(
        "unmatched",
        f'"{{}}" is the nearest name of none of {len(nearest)} texts.',
        "Use words of the texts, add phrases (maskmatch labels expand), or remove the label if nobody needs it.",
    )
    unmatched = _name_findings(labels, np.flatnonzero(counts == 0).tolist(), problem, label_texts)
    crowding = [
        Finding(
            "crowding",
            (labels.labels[position],),
            f'"{labels.labels.labels[position].name}" is the nearest name of {counts[position]} of {len(nearest)} '
            "texts.",
            "If that is more than you expect, the name is too general: add what is specific to its texts.",
        )
        for position in np.argsort(-counts, kind="stable").tolist()
        if counts[position] > most[position]
    ]
    return unmatched + crowding


def find_confused(labels: LabelSet, report: EvaluationReport, label_texts: LabelTexts) -> list[Finding]:
    """Find labels that the classifier confuses, most frequent first."""
    findings = []
    for confusion in report.confusions[:MOST_FINDINGS]:
        pair: tuple[Hashable, Hashable] = (confusion.true, confusion.predicted)
        if confusion.count < LEAST_CONFUSIONS or not all(id_ is not None and id_ in labels for id_ in pair):
            continue
        first, second = (labels.position(id_) for id_ in pair)
        names = (labels.labels[first].name, labels.labels[second].name)
        total = len(label_texts.rows[first])
        findings.append(
            Finding(
                "confused",
                pair,
                f'{confusion.count} of {total} texts of "{names[0]}" are classified as "{names[1]}".',
                suggest_distinction(names, _distinguishing_words(names, label_texts, (first, second))),
            )
        )
    return findings


def _name_findings(
    labels: EncodedLabels,
    positions: Sequence[int],
    problem: _NameProblem,
    label_texts: LabelTexts | None,
    rewriter: Rewriter | None = None,
) -> list[Finding]:
    """Return a finding per label that needs another name, with words for it and a new name if one was made."""
    ids, names = labels.labels, labels.labels.names
    looked_up = positions[:MOST_FINDINGS]  # for very many labels it would be slow, and nobody would read it
    words = {
        position: _new_words(names[position], label_texts.typical_words(position)) if label_texts else []
        for position in looked_up
    }
    without_words = [position for position in looked_up if not words[position]]
    similar = dict(zip(without_words, _similar_words(labels, without_words), strict=True))
    labelled = label_texts is not None and label_texts.labelled
    return [
        Finding(
            problem.kind,
            (ids[position],),
            problem.message.format(names[position]),
            suggest_name(
                words.get(position, ()),
                labelled=labelled,
                similar_words=similar.get(position, ()),
                default=problem.default_suggestion,
            ),
        ).with_rewrite(
            rewriter.rename(position, words.get(position, ())) if rewriter is not None and labelled else None
        )
        for position in positions
    ]


def _close_finding(
    labels: LabelSet, pair: tuple[int, int], cosine: float, label_texts: LabelTexts | None, rewriter: Rewriter
) -> Finding:
    names = labels.labels[pair[0]].name, labels.labels[pair[1]].name
    words = ([], []) if label_texts is None else _distinguishing_words(names, label_texts, pair)
    return Finding(
        "close",
        (labels[pair[0]], labels[pair[1]]),
        f'"{names[0]}" and "{names[1]}" are almost the same to the encoder (cosine {cosine:.2f}).',
        suggest_distinction(names, words),
    ).with_rewrite(rewriter.separate(pair, words))


def _new_words(name: str, words: Sequence[str]) -> list[str]:
    """Return the words that are not in the name already."""
    return [word for word in words if own_words(word, name)]


def _distinguishing_words(
    names: tuple[str, str], label_texts: LabelTexts, positions: tuple[int, int]
) -> tuple[list[str], list[str]]:
    """Return the words that distinguish the texts of two labels and are not in their names already."""
    words = label_texts.distinguishing_words(*positions)
    return _new_words(names[0], words[0]), _new_words(names[1], words[1])


def _similar_words(labels: EncodedLabels, positions: Sequence[int]) -> list[list[str]]:
    """Return the vocabulary words that the encoder finds similar to the names of some labels."""
    if not positions:
        return []
    some = EncodedLabels(labels.matcher, LabelSet(tuple(labels.labels.labels[position] for position in positions)))
    try:
        return [[each.text for each in own] for own in vocabulary_words(some, WORDS)]
    except MaskMatchError:  # a vocabulary without whole words
        return [[] for _ in positions]
