"""The result of an explanation, as text, JSON and a web page."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.evaluation.display import LabelNames, shorten, shorten_name
from maskmatch.files import write_text

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

WORDS_IN_TEXT = 5
LEAST_EFFECT = 0.05
"""Words whose removal changes the log-odds by less than this are not listed."""


@dataclass(frozen=True)
class TextPart:
    """A word of a text; in a long text, several words in a row.

    Attributes:
        field: The field that it is in.
        start: Where it starts in the field, in characters.
        end: Where it ends.
        text: The words.
    """

    field: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class MatchedPhrase:
    """A phrase of a label, and how similar the text is to it: the cosine, or the dot product."""

    phrase: str
    similarity: float


@dataclass(frozen=True)
class ExplainedLabel:
    """A label that the text may have.

    Attributes:
        label: The label.
        probability: Its probability.
        effects: Per part of the text, by how much the log-odds of the label fall if the part is removed. Positive:
            the part speaks for the label.
        phrases: The phrases of the label, most similar first; with a single one, its name.
    """

    label: Hashable
    probability: float
    effects: tuple[float, ...]
    phrases: tuple[MatchedPhrase, ...] = ()

    def strongest(self, parts: tuple[TextPart, ...], sign: int, count: int = WORDS_IN_TEXT) -> list[tuple[str, float]]:
        """The parts that speak most for the label (sign 1) or against it (sign -1), with their effects."""
        pairs = zip((part.text for part in parts), self.effects, strict=True)
        found = [(text, effect) for text, effect in pairs if sign * effect >= LEAST_EFFECT]
        return sorted(found, key=lambda pair: -sign * pair[1])[:count]


@dataclass(frozen=True)
class SimilarText:
    """A training text that resembles the text: its label, and the cosine of the two vectors."""

    text: str
    label: Hashable
    similarity: float


@dataclass(frozen=True)
class Explanation:
    """Why a text got its label. Print it, or `save` it as a web page.

    Attributes:
        fields: The text, by field.
        parts: Its words.
        labels: The most probable labels, best first.
        similar: The training texts that resemble it, if the classifier keeps their vectors.
        mask_words: The words that the encoder's own language-model head would put at the mask, with their
            probabilities; empty if it has no such head.
        notes: What a reader should know, in sentences.
    """

    fields: Mapping[str, str]
    parts: tuple[TextPart, ...]
    labels: tuple[ExplainedLabel, ...]
    similar: tuple[SimilarText, ...] = ()
    mask_words: tuple[tuple[str, float], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> Hashable:
        """The most probable label."""
        return self.labels[0].label

    @property
    def probability(self) -> float:
        """Its probability."""
        return self.labels[0].probability

    def __str__(self) -> str:
        names = LabelNames(each.label for each in self.labels)
        lines = []
        for each in self.labels:
            lines.append(f"{each.probability:.3f}  {shorten_name(names[each.label], 60)}")
            for sign, heading in ((1, "for"), (-1, "against")):
                words = [f"{shorten(text, 40)} {effect:+.2f}" for text, effect in each.strongest(self.parts, sign)]
                if words:
                    lines.append(f"         {heading + ':':<9}{', '.join(words)}")
            if len(each.phrases) > 1:
                best = [f"{shorten(one.phrase, 50)} ({one.similarity:.2f})" for one in each.phrases[:3]]
                lines.append(f"         phrases: {', '.join(best)}")
        if self.similar:
            lines += ["", "similar training texts"]
            lines += [
                f"  {one.similarity:.2f}  {shorten_name(str(one.label), 30)}: {shorten(one.text, 80)}"
                for one in self.similar
            ]
        if self.mask_words:
            words = [f"{word} {probability:.2f}" for word, probability in self.mask_words]
            lines += ["", f"words at the mask: {', '.join(words)}"]
        lines += ["", *self.notes] if self.notes else []
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The whole explanation as a JSON object."""
        return {
            "label": self.label,
            "probability": self.probability,
            "fields": dict(self.fields),
            "words": [asdict(part) for part in self.parts],
            "labels": [asdict(each) for each in self.labels],
            "similar": [asdict(each) for each in self.similar],
            "mask_words": [{"word": word, "probability": value} for word, value in self.mask_words],
            "notes": list(self.notes),
        }

    def to_html(self) -> str:
        """One web page that needs no other file, no script and no network."""
        from maskmatch.evaluation.explanation.page import explanation_page

        return explanation_page([self])

    def save(self, path: str | Path) -> Path:
        """Write the web page to a file. The write is atomic."""
        path = Path(path).expanduser()
        write_text(path, self.to_html(), errors="replace")
        return path
