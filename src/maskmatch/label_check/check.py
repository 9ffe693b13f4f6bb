"""check_labels: what may be wrong with the names of labels, before training and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.evaluation.display import counted
from maskmatch.expansion import Ground
from maskmatch.expansion.vocabulary import vocabulary_words
from maskmatch.inputs import take_examples, take_texts
from maskmatch.label_check.findings import Finding
from maskmatch.label_check.informativeness import cosine_blocks, measure
from maskmatch.label_check.report import LabelCheck
from maskmatch.label_check.rewrites import SAYS_LITTLE, Rewriter, closeness_limit
from maskmatch.label_check.suggestions import WORDS, own_words, rename_hint, tell_apart_hint
from maskmatch.label_check.texts_of_labels import TextsOfLabels
from maskmatch.labels import LabelSet, LabelsLike

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from maskmatch.classifier import MaskMatcher
    from maskmatch.evaluation import EvaluationReport
    from maskmatch.label_check.findings import FindingKind
    from maskmatch.label_check.informativeness import Informativeness

ENOUGH_TEXTS = 5
"""How many texts there have to be for each label, on average, to say that none comes near one."""

ENOUGH_IN_ALL = 100
"""How many texts there have to be at most to say that names tell little about them."""

CROWDING = 4.0
"""How many times its fair share of texts a label may draw; and the others have to keep one in so many of theirs."""

FAINT = 0.3
"""Below this informativeness, names brought less than 25 points without training on the label sets that were tried."""

MOST_PAIRS = 30
"""How many pairs of labels are told of, and for how many names words are looked up."""

LEAST_CONFUSIONS = 2


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
    if test is not None and labels is not None and matcher.labels != known:
        raise MaskMatchError("Labelled texts tell confusions of the classifier's own labels; leave labels out.")
    ground = Ground(matcher, known)
    plain = None if texts is None else take_texts(texts, matcher.config.input_fields)
    report, material = (None, None) if test is None else _labelled(matcher, known, test)
    if plain is None and material is not None:
        plain = list(material.texts)
    vectors = None if plain is None else ground.read_texts(plain)  # (n, dim)
    unlearned = _unlearned(matcher)
    if material is None and vectors is not None and plain is not None and not unlearned:
        material = TextsOfLabels.closest(plain, vectors, ground.matched)
    measured = measure(ground, vectors)
    rewriter = Rewriter(ground)
    findings = [*_uninformative(ground, measured, material, rewriter), *_close(ground, material, rewriter)]
    notes = [] if vectors is not None else ["Without texts, it was not looked for names that no text comes near."]
    if vectors is not None and unlearned:
        notes += unlearned
    elif vectors is not None:
        nearest = np.asarray((vectors @ ground.matched.T).argmax(axis=1))  # (n,)
        findings += _far_and_crowding(ground, nearest, material)
        notes += _too_few(len(nearest), len(known))
    if report is not None and material is not None:
        findings += _confused(known, report, material)
        notes += report.unseen_notes
    if plain is not None and len(plain) >= min(ENOUGH_TEXTS * len(known), ENOUGH_IN_ALL):
        notes += _faint(measured)
    if len(known) < 2:
        notes.append("There is one label, so there was none to compare its name with.")
    return LabelCheck(
        labels=known,
        informativeness=measured,
        findings=tuple(findings),
        vectors=ground.matched,
        model=matcher.name,
        texts=0 if plain is None else len(plain),
        accuracy=None if report is None else report.accuracy,
        notes=tuple(notes),
    )


def _labelled(matcher: MaskMatcher, labels: LabelSet, test: Any) -> tuple[EvaluationReport, TextsOfLabels]:
    """How labelled texts are classified, and which of them are those of each label."""
    given, targets = test if isinstance(test, tuple) else (test, None)
    rows = take_examples(given, targets, matcher.config.input_fields)
    report = matcher.evaluate(rows.texts, rows.labels)
    material = TextsOfLabels.labelled(rows.texts, rows.labels or [], labels)
    if not any(map(len, material.rows)):
        raise MaskMatchError("None of the labelled texts has a label that is checked; their labels have to agree.")
    return report, material


@dataclass(frozen=True)
class _Trouble:
    """Why labels should have another name.

    Attributes:
        kind: What is wrong with them.
        message: The same in a sentence, with {} for the name.
        otherwise: What to do if nothing tells of another name.
    """

    kind: FindingKind
    message: str
    otherwise: str


SAYS_NOTHING = _Trouble(
    "uninformative",
    '"{}" says little: to the encoder it is near to names that mean nothing.',
    "Write out what its texts have in common, in words that stand in a dictionary.",
)


def _uninformative(
    ground: Ground, measured: Informativeness, material: TextsOfLabels | None, rewriter: Rewriter
) -> list[Finding]:
    low = sorted(
        (place for place, score in enumerate(measured.sense) if score < SAYS_LITTLE),
        key=lambda place: measured.sense[place],
    )
    return _to_rename(ground, low, SAYS_NOTHING, material, rewriter)


def _to_rename(
    ground: Ground,
    places: Sequence[int],
    trouble: _Trouble,
    material: TextsOfLabels | None,
    rewriter: Rewriter | None = None,
) -> list[Finding]:
    """Labels that should have another name, with what texts or the encoder tell of it, and a name if one is made."""
    labels, names = ground.labels, ground.labels.names
    told = places[:MOST_PAIRS]  # for very many it would take long, and nobody would read them
    words = {place: _beyond(names[place], material.words(place)) if material else [] for place in told}
    wordless = [place for place in told if not words[place]]
    read_as = dict(zip(wordless, _read_as(ground, wordless), strict=True))
    known = material is not None and material.known
    return [
        Finding(
            trouble.kind,
            (labels[place],),
            trouble.message.format(names[place]),
            rename_hint(words.get(place, ()), known=known, read_as=read_as.get(place, ()), otherwise=trouble.otherwise),
        ).with_rewrite(rewriter.renamed(place, words.get(place, ())) if rewriter is not None and known else None)
        for place in places
    ]


def _beyond(name: str, words: Sequence[str]) -> list[str]:
    """Those words that a name does not have already."""
    return [word for word in words if own_words(word, name)]


def _apart(names: tuple[str, str], material: TextsOfLabels, places: tuple[int, int]) -> tuple[list[str], list[str]]:
    """The words that set the texts of two labels apart, and that their names do not have already."""
    words = material.words_apart(*places)
    return _beyond(names[0], words[0]), _beyond(names[1], words[1])


def _read_as(ground: Ground, places: Sequence[int]) -> list[list[str]]:
    """Words of the encoder's vocabulary that it reads much like the names of some labels."""
    if not places:
        return []
    some = Ground(ground.matcher, LabelSet(tuple(ground.labels.labels[place] for place in places)))
    try:
        return [[each.text for each in own] for own in vocabulary_words(some, WORDS)]
    except MaskMatchError:  # a vocabulary without whole words
        return [[] for _ in places]


def _close(ground: Ground, material: TextsOfLabels | None, rewriter: Rewriter) -> list[Finding]:
    """Pairs of labels whose names the encoder hardly tells apart, the closest first."""
    limit = closeness_limit(ground)
    closest: list[tuple[float, int, int]] = []
    for start, cosines in cosine_blocks(ground.vectors):
        rows, columns = np.nonzero(np.triu(cosines, k=start + 1) >= limit)
        found = zip((-cosines[rows, columns]).tolist(), (rows + start).tolist(), columns.tolist(), strict=True)
        closest = sorted([*closest, *found])[:MOST_PAIRS]
    return [_close_pair(ground.labels, (one, two), -cosine, material, rewriter) for cosine, one, two in closest]


def _close_pair(
    labels: LabelSet, places: tuple[int, int], cosine: float, material: TextsOfLabels | None, rewriter: Rewriter
) -> Finding:
    names = labels.labels[places[0]].name, labels.labels[places[1]].name
    words = ([], []) if material is None else _apart(names, material, places)
    return Finding(
        "close",
        (labels[places[0]], labels[places[1]]),
        f'"{names[0]}" and "{names[1]}" read almost the same (cosine {cosine:.2f}).',
        tell_apart_hint(names, words),
    ).with_rewrite(rewriter.told_apart(places, words))


def _too_few(texts: int, labels: int) -> list[str]:
    """What could not be looked at, as there are too few texts."""
    if texts >= ENOUGH_TEXTS * labels:
        return []
    return [
        f"{counted(texts, 'text')} {'is' if texts == 1 else 'are'} too few to say which of {counted(labels, 'name')} "
        f"no text comes near and which draw too many; give {ENOUGH_TEXTS * labels} or more."
    ]


def _faint(measured: Informativeness) -> list[str]:
    """That the names together tell little about the texts, however good each of them is by itself."""
    if measured.commitment is None or measured.commitment >= FAINT:
        return []
    return [
        f"The texts hardly commit themselves to single names (informativeness {measured.commitment:.2f} of 1): expect "
        "little of names alone; train with labelled rows, or say the names as the texts would."
    ]


def _unlearned(matcher: MaskMatcher) -> list[str]:
    """What a method cannot tell before training."""
    if matcher.training_ is not None or not matcher.config.method.reads_pairs:
        return []
    return [
        f"The method {matcher.config.method.name} learns in training what the distance of two texts says, so before "
        "that it was not looked for names that no text comes near; mask-matching reads a pair as a whole."
    ]


def _far_and_crowding(ground: Ground, nearest: NDArray[np.int64], material: TextsOfLabels | None) -> list[Finding]:
    """Labels that are the nearest of no text, and labels that are the nearest of too many."""
    labels = ground.labels
    if len(nearest) < ENOUGH_TEXTS * len(labels):
        return []
    counts = np.bincount(nearest, minlength=len(labels))
    fair = np.full(len(labels), 1 / len(labels))  # (K,)
    if material is not None and material.known:
        fair = np.maximum(fair, [len(own) / len(material) for own in material.rows])
    most = len(nearest) * np.minimum(CROWDING * fair, 1 - (1 - fair) / CROWDING)  # the second where labels are few
    trouble = _Trouble(
        "unmatched",
        f'No text comes nearest to "{{}}", of {len(nearest)} texts.',
        "Say it as the texts would, add phrases (maskmatch labels expand), or leave out what nobody needs.",
    )
    far = _to_rename(ground, np.flatnonzero(counts == 0).tolist(), trouble, material)
    crowded = [
        Finding(
            "crowding",
            (labels[place],),
            f'"{labels.labels[place].name}" is the nearest name of {counts[place]} of {len(nearest)} texts.',
            "If that is more than you expect, the name is too general: say what is special about its texts.",
        )
        for place in np.argsort(-counts, kind="stable").tolist()
        if counts[place] > most[place]
    ]
    return far + crowded


def _confused(labels: LabelSet, report: EvaluationReport, material: TextsOfLabels) -> list[Finding]:
    """Labels that the classifier takes for one another, the most frequent first."""
    findings = []
    for each in report.confusions[:MOST_PAIRS]:
        pair: tuple[Hashable, Hashable] = (each.true, each.predicted)
        if each.count < LEAST_CONFUSIONS or not all(id_ is not None and id_ in labels for id_ in pair):
            continue
        first, second = (labels.position(id_) for id_ in pair)
        names = (labels.labels[first].name, labels.labels[second].name)
        total = len(material.rows[first])
        findings.append(
            Finding(
                "confused",
                pair,
                f'{each.count} of {total} texts of "{names[0]}" are taken for "{names[1]}".',
                tell_apart_hint(names, _apart(names, material, (first, second))),
            )
        )
    return findings
