"""expand_labels: phrases and examples for labels, from several sources, scored and filtered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from maskmatch.choices import PhraseSource
from maskmatch.errors import MaskMatchError
from maskmatch.expansion.brought import listed_words, told_phrases
from maskmatch.expansion.ground import Ground, leads
from maskmatch.expansion.matching_texts import matching_texts
from maskmatch.expansion.phrases import Candidate, Expansion, ScoredPhrase
from maskmatch.expansion.training_words import training_words
from maskmatch.expansion.vocabulary import vocabulary_words
from maskmatch.inputs import take_examples, take_texts
from maskmatch.labels import LabelSet, LabelsLike

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from maskmatch.classifier import MaskMatcher

PHRASES = 5
EXAMPLES = 20


@dataclass(frozen=True)
class _Given:
    """What sources may draw from."""

    texts: Any
    train: Any
    words: Iterable[str] | Callable[[str], Iterable[str]] | None

    def chosen(self, sources: Sequence[PhraseSource] | None) -> list[PhraseSource]:
        """The sources to use, checked: those that were named, or those that something was given for."""
        material: dict[PhraseSource, Any] = {"texts": self.texts, "training-words": self.train, "words": self.words}
        given: list[PhraseSource] = [name for name, what in material.items() if what is not None]
        if sources is None:
            if not given:
                raise MaskMatchError(
                    "There is nothing to draw from: give texts without labels (the best source), labelled texts or a "
                    "word list; or name vocabulary as the source, for words of the encoder's own."
                )
            return given
        for name in sources:
            if name not in get_args(PhraseSource):
                raise MaskMatchError(f"There is no source {name!r}; choose from {', '.join(get_args(PhraseSource))}.")
            if name in material and material[name] is None:
                needed = {"texts": "texts", "training-words": "train", "words": "words"}[name]
                raise MaskMatchError(f"The source {name!r} needs {needed}, and none were given.")
        return list(dict.fromkeys(sources))


def expand_labels(
    matcher: MaskMatcher,
    labels: LabelsLike | None = None,
    *,
    sources: Sequence[PhraseSource] | None = None,
    texts: Any = None,
    train: Any = None,
    words: Iterable[str] | Callable[[str], Iterable[str]] | None = None,
    phrases: int = PHRASES,
    examples: int = EXAMPLES,
    drop_shared: bool = True,
) -> Expansion:
    """Find further phrases, and examples, for labels; nothing is trained and the classifier stays as it is.

    Args:
        matcher: What reads names and texts.
        labels: The labels; None: the classifier's own.
        sources: ``"vocabulary"``: words of the encoder's vocabulary near the label; ``"training-words"``: words that
            set a label's training texts apart; ``"texts"``: unlabelled texts that match the label best, as examples;
            ``"words"``: what you bring. None: those that something is given for.
        texts: Unlabelled texts.
        train: Labelled texts, ``(texts, labels)`` or a data frame that holds both.
        words: A list of words, each of which goes to the label it is nearest to; or a function that tells phrases for
            the name of a label.
        phrases: The most phrases a label and source.
        examples: The most examples a label.
        drop_shared: Whether phrases that come nearer to another label are dropped.
    """
    known = matcher.labels if labels is None else LabelSet.of(labels)
    if known is None:
        raise MaskMatchError("There are no labels to expand: give them to expand_labels or to from_pretrained.")
    for name, value in (("phrases", phrases), ("examples", examples)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise MaskMatchError(f"{name} is {value!r}; it has to be a whole number from 0 on.")
    given = _Given(texts, train, words)
    ground = Ground(matcher, known)
    had = [{text.casefold() for text in (*label.phrases, *label.examples)} for label in known.labels]
    most_known = max(map(len, had), default=0)  # which may be among the best that a source proposes
    found: list[list[ScoredPhrase]] = [[] for _ in known]
    dropped: list[list[ScoredPhrase]] = [[] for _ in known]
    for source in given.chosen(sources):
        number = examples if source == "texts" else phrases
        proposed = _propose(source, ground, given, number + most_known if number else 0)
        for place, scored in enumerate(_scored(ground, source, proposed)):
            taken = had[place].union(other.text.casefold() for other in found[place])
            new = [(each, settled) for each, settled in scored if each.text.casefold() not in taken]
            for each, settled in new[:number]:
                shared = drop_shared and not settled and each.lead <= 0
                (dropped if shared else found)[place].append(each)
    return Expansion(known, tuple(map(tuple, found)), tuple(map(tuple, dropped)))


def _propose(source: PhraseSource, ground: Ground, given: _Given, number: int) -> list[list[Candidate]]:
    """What a source proposes for each label, at most so much of it."""
    fields = ground.matcher.config.input_fields
    if source == "texts":
        return matching_texts(ground, take_texts(given.texts, fields), number)
    if source == "training-words":
        texts, targets = given.train if isinstance(given.train, tuple) else (given.train, None)
        rows = take_examples(texts, targets, fields)
        assert rows.labels is not None
        return training_words(ground.labels, rows.texts, rows.labels, number)
    if source == "words":
        assert given.words is not None
        if callable(given.words):
            return told_phrases(ground, given.words, number)
        return listed_words(ground, given.words, number)
    return vocabulary_words(ground, number)


def _scored(
    ground: Ground, source: str, proposed: Sequence[Sequence[Candidate]]
) -> list[list[tuple[ScoredPhrase, bool]]]:
    """Candidates with their scores and leads, and whether they are settled."""
    found = []
    for place, candidates in enumerate(proposed):
        scored = []
        for kind, read in (("phrase", ground.read_phrases), ("example", ground.read_texts)):
            own = [each for each in candidates if each.kind == kind]
            if own:
                similarities = read([each.text for each in own]) @ ground.vectors.T  # (n, K)
                figures = zip(own, similarities[:, place], leads(similarities)[:, place], strict=True)
                scored += [
                    (ScoredPhrase(each.text, each.kind, float(score), float(lead), source), each.settled)
                    for each, score, lead in figures
                ]
        found.append(scored)
    return found
