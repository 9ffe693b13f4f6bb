"""The rules of a label check: each returns findings of one or two kinds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from maskmatch.label_tools.check.findings import Finding
from maskmatch.label_tools.check.informativeness import cosine_blocks, unrelated_similarity
from maskmatch.label_tools.check.names import (
    WORD,
    abbreviations,
    content_words,
    is_casual,
    is_foreign,
    is_generic,
    stems,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from numpy.typing import NDArray

    from maskmatch.evaluation import EvaluationReport
    from maskmatch.label_tools.check.informativeness import Informativeness
    from maskmatch.label_tools.check.label_texts import LabelTexts
    from maskmatch.label_tools.expansion import EncodedLabels
    from maskmatch.labels import LabelSet

LEAST_SENSE = 0.5
"""A name whose sense is below this is uninformative."""

SAME_DISTANCE, SYNONYM_DISTANCE = 0.12, 0.36
"""Two names at a smaller distance are too close: names that share words, and names that share none. 0 is the same
vector, 1 is the distance of unrelated names. Names that share words are near to each other by these words alone."""

TEXTS_PER_LABEL = 5
"""The average number of texts per label that is needed to report names that are nearest to no text."""

CROWDING = 4.0
"""A label crowds out others if it is nearest to more than 4 times its fair share of texts. With few labels the limit is
that the other labels keep a quarter of their share."""

MOST_FINDINGS = 30
"""The maximum number of pairs of labels of a kind in a report."""

LEAST_CONFUSIONS = 2

COMPARE = "compare the two wordings with `maskmatch labels diff`"


def find_bad_names(labels: EncodedLabels, measured: Informativeness) -> list[Finding]:
    """Find single names that say little: meaningless, generic, abbreviated, in another language or register."""
    findings = [_bad_name(labels, position, measured) for position in range(len(labels.labels))]
    found = [each for each in findings if each is not None]
    return [*found, *_odd_ones(labels.labels, {id_ for each in found for id_ in each.labels})]


def _bad_name(labels: EncodedLabels, position: int, measured: Informativeness) -> Finding | None:
    """The first problem of a name."""
    label = labels.labels.labels[position]
    if is_generic(label.name) and not label.description and not label.phrases:
        return Finding(
            "generic",
            (label.id,),
            f'"{label.name}" names no content, so no text is near it.',
            'Name what its texts have in common. For "none of these", remove it and let the classifier abstain '
            "(--abstain), or look at the novelty of texts (--novelty).",
        )
    short = abbreviations(label.name, [len(ids) for ids in labels.token_ids(WORD.findall(label.name))])
    if short:
        words = ", ".join(f'"{word}"' for word in short)
        return Finding(
            "abbreviation",
            (label.id,),
            f'"{label.name}" has an abbreviation, {words}, that the encoder may not know.',
            f"Write it out, and {COMPARE}.",
        )
    if measured.sense[position] < LEAST_SENSE:
        return Finding(
            "uninformative",
            (label.id,),
            f'"{label.name}" is uninformative: the encoder finds it similar to meaningless names such as "item" or '
            '"class b".',
            "Describe what its texts have in common, in dictionary words.",
        )
    return None


def _odd_ones(labels: LabelSet, known: set[Hashable]) -> list[Finding]:
    """Find names in another language or register than most others."""
    findings = []
    rules: list[tuple[Callable[[str], bool], str, str]] = [
        (is_foreign, "seems to be in another language than the other names", "Translate it"),
        (is_casual, "is written like a chat, other than the other names", "Word it like the others"),
    ]
    for rule, what, suggestion in rules:
        odd = [label for label in labels.labels if rule(label.name)]
        if 2 * len(odd) >= len(labels):  # then it is the style of this label set
            continue
        findings += [
            Finding("language", (label.id,), f'"{label.name}" {what}.', f"{suggestion}, and {COMPARE}.")
            for label in odd
            if label.id not in known
        ]
    return findings


def too_close_cosine(labels: EncodedLabels, distance: float = SAME_DISTANCE) -> float:
    """Return the cosine from which on two names are nearer than a distance."""
    return max(1 - distance * (1 - unrelated_similarity(labels)), 1e-9)


def find_close(labels: EncodedLabels) -> list[Finding]:
    """Find pairs of names that mean almost the same, closest first, and names that contain another name."""
    same, synonyms = too_close_cosine(labels), too_close_cosine(labels, SYNONYM_DISTANCE)
    names = labels.labels.names
    words = [stems(name) for name in names]
    close: list[tuple[float, int, int]] = []
    for start, cosines in cosine_blocks(labels.vectors):
        rows, columns = np.nonzero(np.triu(cosines, k=start + 1) >= min(same, synonyms))
        for row, column in zip((rows + start).tolist(), columns.tolist(), strict=True):
            cosine = float(cosines[row - start, column])
            limit = same if words[row] & words[column] else synonyms
            if cosine >= limit or words[row] == words[column]:
                close.append((-cosine, row, column))
        close = sorted(close)[:MOST_FINDINGS]
    findings = [_close_finding(labels.labels, (first, second), -cosine) for cosine, first, second in close]
    return findings + _same_words(labels, words, {(first, second) for _, first, second in close})


def _same_words(labels: EncodedLabels, words: Sequence[frozenset[str]], known: set[tuple[int, int]]) -> list[Finding]:
    """Find names with the words of another name, or with more: by words, however far apart the encoder finds them."""
    by_words: dict[frozenset[str], list[int]] = {}
    for place, own in enumerate(words):
        by_words.setdefault(own, []).append(place)
    findings: list[Finding] = []
    for own, places in by_words.items():
        if not own:  # names without words or numbers
            continue
        for second in places[1:]:
            if (places[0], second) not in known:
                cosine = float(labels.vectors[places[0]] @ labels.vectors[second])
                findings.append(_close_finding(labels.labels, (places[0], second), cosine))
        if any(label.description for label in (labels.labels.labels[place] for place in places)):
            continue
        for others in _containing(own, by_words):
            pair = (min(places[0], others[0]), max(places[0], others[0]))
            if pair in known or not _is_head(content_words(labels.labels.names[others[0]]), own):
                continue
            short, full = labels.labels.labels[places[0]], labels.labels.labels[others[0]]
            findings.append(
                Finding(
                    "contained",
                    (short.id, full.id),
                    f'"{full.name}" contains "{short.name}", so its texts are near both.',
                    f'Say in the shorter name what else it is for, such as "other {short.name}", and {COMPARE}.',
                )
            )
    return findings[:MOST_FINDINGS]


def _containing(own: frozenset[str], by_words: dict[frozenset[str], list[int]]) -> list[list[int]]:
    """The positions of names that have these words and one or two more."""
    return [places for words, places in by_words.items() if own < words and len(words) <= len(own) + 2]


def _is_head(words: Sequence[str], own: frozenset[str]) -> bool:
    """Whether the contained words stand together at the beginning or the end of a name."""
    found = [next(iter(stems(word)), word) for word in words]
    size = len(own)
    return frozenset(found[:size]) == own or frozenset(found[-size:]) == own


def _close_finding(labels: LabelSet, pair: tuple[int, int], cosine: float) -> Finding:
    names = labels.labels[pair[0]].name, labels.labels[pair[1]].name
    return Finding(
        "close",
        (labels[pair[0]], labels[pair[1]]),
        f'"{names[0]}" and "{names[1]}" mean almost the same (cosine {cosine:.2f}).',
        f"Merge them into one label; or word them so that they say how they differ, and {COMPARE}.",
    )


def find_partial_descriptions(labels: LabelSet) -> list[Finding]:
    """Find descriptions that only some of the labels have: they make these labels' vectors longer texts than others."""
    described = [label for label in labels.labels if label.description]
    if not described or len(described) == len(labels):
        return []
    few = described if 2 * len(described) <= len(labels) else [each for each in labels.labels if not each.description]
    have = "have" if len(described) != 1 else "has"
    return [
        Finding(
            "description",
            tuple(label.id for label in few),
            f"{len(described)} of {len(labels)} labels {have} a description, the others have none.",
            f"Describe all labels or none, and {COMPARE}: descriptions of some labels often do harm.",
        )
    ]


def find_unmatched_and_crowding(
    labels: EncodedLabels, nearest: NDArray[np.int64], label_texts: LabelTexts | None
) -> list[Finding]:
    """Find labels that are nearest to no text, and labels that are nearest to too many.

    Args:
        labels: The labels with their vectors.
        nearest: (n,), the position of the nearest label of each text.
        label_texts: The labelled texts, if there are any: a label's fair share is at least its true share.
    """
    count_labels = len(labels.labels)
    if len(nearest) < TEXTS_PER_LABEL * count_labels:
        return []
    counts = np.bincount(nearest, minlength=count_labels)
    fair_share = np.full(count_labels, 1 / count_labels)  # (K,)
    if label_texts is not None:
        fair_share = np.maximum(fair_share, [len(own) / len(label_texts) for own in label_texts.rows])
    # The second limit applies if there are few labels: four times a fair share of one half would be all texts and more.
    most = len(nearest) * np.minimum(CROWDING * fair_share, 1 - (1 - fair_share) / CROWDING)
    names, ids = labels.labels.names, labels.labels
    unmatched = [
        Finding(
            "unmatched",
            (ids[position],),
            f'"{names[position]}" is the nearest name of none of {len(nearest)} texts.',
            "Remove the label if nobody needs it; or give it examples, and see whether texts get it.",
        )
        for position in np.flatnonzero(counts == 0).tolist()
    ]
    crowding = [
        Finding(
            "crowding",
            (ids[position],),
            f'"{names[position]}" is the nearest name of {counts[position]} of {len(nearest)} texts.',
            "If that is more than you expect, the name is too general.",
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
        total = len(label_texts.rows[first])
        findings.append(
            Finding(
                "confused",
                pair,
                f'{confusion.count} of {total} texts of "{labels.labels[first].name}" are classified as '
                f'"{labels.labels[second].name}".',
                "Give both examples, or train with a few labelled texts.",
                at_stake=confusion.count,
            )
        )
    return findings


def by_stake(findings: Sequence[Finding], report: EvaluationReport | None) -> list[Finding]:
    """The findings, those with the most wrong texts first; without labelled texts, in their order."""
    if report is None:
        return list(findings)
    wrong: dict[frozenset[Hashable], int] = {}
    of_label: dict[Hashable, int] = {}
    for confusion in report.confusions:
        pair = frozenset((confusion.true, confusion.predicted))
        wrong[pair] = wrong.get(pair, 0) + confusion.count
        for id_ in (confusion.true, confusion.predicted):
            of_label[id_] = of_label.get(id_, 0) + confusion.count
    staked = []
    for each in findings:
        stake = each.at_stake
        if stake is None and len(each.labels) == 2:
            stake = wrong.get(frozenset(each.labels), 0)
        elif stake is None:
            stake = sum(of_label.get(id_, 0) for id_ in each.labels)
        staked.append(replace(each, at_stake=stake))
    return sorted(staked, key=lambda each: -(each.at_stake or 0))
