"""expand_labels: collect candidate phrases and examples from several sources, score and filter them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from maskmatch.data import take_examples, take_texts
from maskmatch.errors import MaskMatchError, did_you_mean
from maskmatch.label_tools.expansion.encoded_labels import EncodedLabels, leads
from maskmatch.label_tools.expansion.nearest_texts import nearest_texts
from maskmatch.label_tools.expansion.result import Candidate, Expansion, ScoredPhrase
from maskmatch.label_tools.expansion.training_words import training_words
from maskmatch.label_tools.expansion.user_words import phrases_from_function, phrases_from_list
from maskmatch.label_tools.expansion.vocabulary import vocabulary_words
from maskmatch.labels import LabelSet, LabelsLike

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from maskmatch.matcher import MaskMatcher

PhraseSource = Literal["vocabulary", "training-words", "texts", "words"]

PHRASES = 5
EXAMPLES = 20


@dataclass(frozen=True)
class _Material:
    """The data that sources draw from."""

    texts: Any
    train: Any
    words: Iterable[str] | Callable[[str], Iterable[str]] | None

    def checked_sources(self, sources: Sequence[PhraseSource] | None) -> list[PhraseSource]:
        """Return the sources to use: those requested, or else those that have data. Raise if one has no data."""
        arguments: dict[PhraseSource, str] = {"texts": "texts", "training-words": "train", "words": "words"}
        if sources is None:
            with_data = [source for source, argument in arguments.items() if getattr(self, argument) is not None]
            if not with_data:
                raise MaskMatchError(
                    "There is nothing to expand labels from: give texts without labels (the best source), labelled "
                    "texts or a word list; or choose the source vocabulary, for words of the encoder's vocabulary."
                )
            return with_data
        for source in sources:
            if source not in get_args(PhraseSource):
                raise MaskMatchError(
                    f"There is no source {source!r}; choose from {', '.join(get_args(PhraseSource))}."
                    f"{did_you_mean(source, get_args(PhraseSource))}"
                )
            if source in arguments and getattr(self, arguments[source]) is None:
                raise MaskMatchError(f"The source {source!r} needs {arguments[source]}, and none were given.")
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
    """Find more phrases and examples for labels. Nothing is trained, and the classifier does not change.

    Args:
        matcher: The classifier that encodes names and texts.
        labels: The labels; None for the classifier's labels.
        sources: ``"vocabulary"``: words of the encoder's vocabulary near the label; ``"training-words"``: words that
            are typical of the label's training texts; ``"texts"``: the unlabelled texts nearest to the label, as
            examples; ``"words"``: your own words. None for all sources that have data.
        texts: Unlabelled texts.
        train: Labelled texts, ``(texts, labels)`` or a data frame with both.
        words: A list of words, each of which is assigned to its nearest label; or a function that takes the name of a
            label and returns phrases.
        phrases: The maximum number of phrases per label and source.
        examples: The maximum number of examples per label.
        drop_shared: Whether to drop phrases that are nearer to another label.
    """
    known = matcher.labels if labels is None else LabelSet.of(labels)
    if known is None:
        raise MaskMatchError("There are no labels to expand: give them to expand_labels or to from_pretrained.")
    for name, value in (("phrases", phrases), ("examples", examples)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise MaskMatchError(f"{name} is {value!r}; it has to be an integer of at least 0.")
    material = _Material(texts, train, words)
    encoded = EncodedLabels(matcher, known)
    chosen = material.checked_sources(sources)
    return _expand(encoded, chosen, material, phrases=phrases, examples=examples, drop_shared=drop_shared)


def _expand(
    labels: EncodedLabels,
    sources: Sequence[PhraseSource],
    material: _Material,
    *,
    phrases: int,
    examples: int,
    drop_shared: bool,
) -> Expansion:
    """Collect the candidates of every source, without those that a label already has."""
    existing = [{text.casefold() for text in (*label.phrases, *label.examples)} for label in labels.labels.labels]
    most_existing = max(map(len, existing), default=0)  # these may be among a source's best candidates
    found: list[list[ScoredPhrase]] = [[] for _ in existing]
    dropped: list[list[ScoredPhrase]] = [[] for _ in existing]
    for source in sources:
        limit = examples if source == "texts" else phrases
        candidates = _candidates(source, labels, material, limit + most_existing if limit else 0)
        for position, scored in enumerate(_scored(labels, source, candidates)):
            taken = existing[position].union(other.text.casefold() for other in found[position])
            new = [(each, skip_filter) for each, skip_filter in scored if each.text.casefold() not in taken]
            for each, skip_filter in new[:limit]:
                is_shared = drop_shared and not skip_filter and each.lead <= 0
                (dropped if is_shared else found)[position].append(each)
    return Expansion(labels.labels, tuple(map(tuple, found)), tuple(map(tuple, dropped)))


def _candidates(source: PhraseSource, labels: EncodedLabels, material: _Material, limit: int) -> list[list[Candidate]]:
    """Return the candidates of one source per label."""
    fields = labels.matcher.config.input_fields
    if source == "texts":
        return nearest_texts(labels, take_texts(material.texts, fields), limit)
    if source == "training-words":
        texts, targets = material.train if isinstance(material.train, tuple) else (material.train, None)
        rows = take_examples(texts, targets, fields)
        assert rows.labels is not None
        return training_words(labels.labels, rows.texts, rows.labels, limit)
    if source == "words":
        assert material.words is not None
        if callable(material.words):
            return phrases_from_function(labels, material.words, limit)
        return phrases_from_list(labels, material.words, limit)
    return vocabulary_words(labels, limit)


def _scored(
    labels: EncodedLabels, source: str, candidates: Sequence[Sequence[Candidate]]
) -> list[list[tuple[ScoredPhrase, bool]]]:
    """Return candidates with score and lead, and whether each skips the filter."""
    scored_per_label = []
    for position, own_candidates in enumerate(candidates):
        scored = []
        for kind, encode in (("phrase", labels.encode_phrases), ("example", labels.encode_texts)):
            own = [each for each in own_candidates if each.kind == kind]
            if own:
                similarities = encode([each.text for each in own]) @ labels.vectors.T  # (n, K)
                columns = zip(own, similarities[:, position], leads(similarities)[:, position], strict=True)
                scored += [
                    (ScoredPhrase(each.text, each.kind, float(score), float(lead), source), each.skip_filter)
                    for each, score, lead in columns
                ]
        scored_per_label.append(scored)
    return scored_per_label
