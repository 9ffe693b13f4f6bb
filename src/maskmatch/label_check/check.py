"""check_labels: what may be wrong with the names of labels, before training and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.expansion import Ground
from maskmatch.inputs import take_examples, take_texts
from maskmatch.label_check.findings import Finding
from maskmatch.label_check.informativeness import measure, usual_similarity
from maskmatch.label_check.report import LabelCheck
from maskmatch.label_check.suggestions import rename_hint, tell_apart_hint, typical_words
from maskmatch.labels import LabelSet, LabelsLike

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from maskmatch.classifier import MaskMatcher
    from maskmatch.evaluation import EvaluationReport
    from maskmatch.label_check.informativeness import Informativeness

SAYS_LITTLE = 0.5
"""A name whose sense is below this says little."""

TOO_CLOSE = 0.25
"""Two names that are this near are too close: 0 is the same vector, 1 is as far apart as unrelated names."""

ENOUGH_TEXTS = 5
"""How many texts there have to be for each label, on average, to say that none comes near one."""

CROWDING = 4.0
"""How many times its fair share of texts a label may draw."""

MOST_PAIRS = 30
LEAST_CONFUSIONS = 2


@dataclass(frozen=True)
class _Texts:
    """Texts, and the label that each belongs to or comes nearest to."""

    texts: Sequence[Any]
    places: NDArray[np.int64]  # (n,)
    known: bool
    """Whether these are the texts' true labels."""


def check_labels(
    matcher: MaskMatcher,
    labels: LabelsLike | None = None,
    *,
    texts: Any = None,
    test: Any = None,
) -> LabelCheck:
    """Look for names that say little, that are too close to one another, or that no text comes near.

    Args:
        matcher: What reads names and texts: an untrained classifier, or a trained one.
        labels: The labels; None: the classifier's own.
        texts: Texts without labels, such as those to be classified later.
        test: Labelled texts, ``(texts, labels)`` or a data frame that holds both: they tell which labels the classifier
            takes for one another. These are always those of its own labels.
    """
    known = matcher.labels if labels is None else LabelSet.of(labels)
    if known is None:
        raise MaskMatchError("There are no labels to check: give them to check_labels or to from_pretrained.")
    ground = Ground(matcher, known)
    fields = matcher.config.input_fields
    report: EvaluationReport | None = None
    material: _Texts | None = None
    plain = None if texts is None else take_texts(texts, fields)
    if test is not None:
        if labels is not None and matcher.labels != known:
            raise MaskMatchError("Labelled texts tell confusions of the classifier's own labels; leave labels out.")
        given, targets = test if isinstance(test, tuple) else (test, None)
        rows = take_examples(given, targets, fields)
        report = matcher.evaluate(rows.texts, rows.labels)
        material = _labelled(rows.texts, rows.labels or [], known)
        if not material.texts:
            raise MaskMatchError("None of the labelled texts has a label that is checked; their labels have to agree.")
        plain = rows.texts if plain is None else plain
    vectors = None if plain is None else ground.read_texts(plain)  # (n, dim)
    measured = measure(ground, vectors)
    findings = [*_uninformative(known, measured, material), *_close(ground, material)]
    if vectors is not None and plain is not None:
        nearest = np.asarray((vectors @ ground.matched.T).argmax(axis=1))  # (n,)
        findings += _far_and_crowding(known, nearest)
    if report is not None and material is not None:
        findings += _confused(known, report, material)
    return LabelCheck(
        labels=known,
        informativeness=measured,
        findings=tuple(findings),
        vectors=ground.matched,
        model=matcher.name,
        texts=0 if plain is None else len(plain),
        accuracy=None if report is None else report.accuracy,
    )


def _labelled(texts: Sequence[Any], targets: Sequence[Any], labels: LabelSet) -> _Texts:
    """Texts with the positions of their labels: one row a label where a text has several; unknown labels left out."""
    pairs = [
        (text, labels.position(labels.own(id_)))
        for text, target in zip(texts, targets, strict=True)
        for id_ in (target if isinstance(target, list) else [target])
        if labels.own(id_) in labels
    ]
    return _Texts([text for text, _ in pairs], np.array([place for _, place in pairs], dtype=np.int64), known=True)


def _uninformative(labels: LabelSet, measured: Informativeness, material: _Texts | None) -> list[Finding]:
    low = [place for place, score in enumerate(measured.sense) if score < SAYS_LITTLE]
    words = typical_words(material.texts, material.places.tolist(), len(labels)) if low and material else None
    return [
        Finding(
            "uninformative",
            (labels[place],),
            f'"{labels.labels[place].name}" says little: to the encoder it is near to names that mean nothing.',
            rename_hint(
                words[place] if words else (),
                "Write out what the texts have in common, in words that stand in a dictionary.",
            ),
        )
        for place in sorted(low, key=lambda place: measured.sense[place])
    ]


def _close(ground: Ground, material: _Texts | None) -> list[Finding]:
    """Pairs of labels whose names the encoder hardly tells apart, the closest first."""
    labels, similarities = ground.labels, ground.vectors @ ground.vectors.T  # (K, K)
    limit = 1 - TOO_CLOSE * (1 - usual_similarity(ground))
    rows, columns = np.where(np.triu(similarities, k=1) >= max(limit, 1e-9))
    order = np.argsort(-similarities[rows, columns], kind="stable")[:MOST_PAIRS]
    return [_close_pair(labels, int(rows[each]), int(columns[each]), similarities, material) for each in order]


def _close_pair(
    labels: LabelSet, first: int, second: int, similarities: NDArray[np.float32], material: _Texts | None
) -> Finding:
    names = (labels.labels[first].name, labels.labels[second].name)
    return Finding(
        "close",
        (labels[first], labels[second]),
        f'"{names[0]}" and "{names[1]}" read almost the same (cosine {similarities[first, second]:.2f}).',
        tell_apart_hint(names, _words_of_pair(material, first, second)),
    )


def _words_of_pair(material: _Texts | None, first: int, second: int) -> tuple[list[str], list[str]]:
    """The words that set the texts of two labels apart from each other."""
    if material is None:
        return [], []
    own = np.flatnonzero((material.places == first) | (material.places == second)).tolist()
    places = (material.places[own] == second).astype(int).tolist()
    words = typical_words([material.texts[row] for row in own], places, 2)
    return words[0], words[1]


def _far_and_crowding(labels: LabelSet, nearest: NDArray[np.int64]) -> list[Finding]:
    """Labels that are the nearest of no text, and labels that are the nearest of too many."""
    counts = np.bincount(nearest, minlength=len(labels))
    if len(nearest) < ENOUGH_TEXTS * len(labels):
        return []
    fair = len(nearest) / len(labels)
    far = [
        Finding(
            "unmatched",
            (labels[place],),
            f'No text comes nearest to "{labels.labels[place].name}", of {len(nearest)} texts.',
            "Say it as the texts would, add phrases (maskmatch labels expand), or leave out what nobody needs.",
        )
        for place in np.flatnonzero(counts == 0).tolist()
    ]
    crowded = [
        Finding(
            "crowding",
            (labels[place],),
            f'"{labels.labels[place].name}" is the nearest name of {counts[place]} of {len(nearest)} texts.',
            "If that is more than you expect, the name is too general: say what is special about its texts.",
        )
        for place in np.argsort(-counts, kind="stable").tolist()
        if len(labels) > CROWDING and counts[place] > CROWDING * fair
    ]
    return far + crowded


def _confused(labels: LabelSet, report: EvaluationReport, material: _Texts) -> list[Finding]:
    """Labels that the classifier takes for one another, the most frequent first."""
    findings = []
    for each in report.confusions[:MOST_PAIRS]:
        pair: tuple[Hashable, Hashable] = (each.true, each.predicted)
        if each.count < LEAST_CONFUSIONS or not all(id_ is not None and id_ in labels for id_ in pair):
            continue
        first, second = (labels.position(id_) for id_ in pair)
        names = (labels.labels[first].name, labels.labels[second].name)
        total = int((material.places == first).sum())
        findings.append(
            Finding(
                "confused",
                pair,
                f'{each.count} of {total} texts of "{names[0]}" are taken for "{names[1]}".',
                tell_apart_hint(names, _words_of_pair(material, first, second)),
            )
        )
    return findings
