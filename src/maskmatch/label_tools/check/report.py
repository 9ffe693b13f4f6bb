"""The result of a label check, as text, JSON and a web page."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.evaluation.display import counted, shorten
from maskmatch.evaluation.html import whole_page
from maskmatch.files import write_text
from maskmatch.label_tools.check.findings import HEADINGS, Advice, Finding
from maskmatch.label_tools.check.label_map import draw_map, explained_variance, project

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from maskmatch.label_tools.check.informativeness import Informativeness
    from maskmatch.labels import LabelSet


@dataclass(frozen=True)
class LabelCheck:
    """The result of a label check. Print it, or `save` it as a web page with a map of the labels.

    Attributes:
        labels: The labels.
        informativeness: How informative the names are, per name and for the whole set.
        findings: Problems, those with the most wrong texts first if there were labelled texts.
        advice: Edits of labels that were tried on labelled texts and helped on texts that they were not made from.
        improved: The labels with all of that advice.
        vectors: (K, dim), the label vectors.
        model: The name of the classifier that encoded the names.
        texts: The number of texts.
        accuracy: The accuracy on labelled texts, if there were any.
        notes: What could not be checked, and why.
    """

    labels: LabelSet
    informativeness: Informativeness
    findings: tuple[Finding, ...]
    vectors: NDArray[np.float32]
    model: str
    texts: int = 0
    accuracy: float | None = None
    advice: tuple[Advice, ...] = ()
    improved: LabelSet | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [self._headline()]
        if self.advice:
            lines += ["", f"Tried on the texts: {self._gain()}", *(f"  {each.message}" for each in self.advice)]
        for heading, own in self._groups():
            lines += ["", f"{heading} ({len(own)})"]
            for each in own:
                stake = f" ({counted(each.at_stake, 'wrong text')})" if each.at_stake else ""
                lines += [f"  {each.message}{stake}", f"    {each.suggestion}"]
        if not self.findings:
            lines += ["", "No problems were found."]
        if self.notes:
            lines += ["", *self.notes]
        return "\n".join(lines)

    def _groups(self) -> list[tuple[str, list[Finding]]]:
        """The findings by kind, the kind with the most wrong texts first."""
        kinds = sorted(
            HEADINGS,
            key=lambda kind: -max((each.at_stake or 0 for each in self.findings if each.kind == kind), default=0),
        )
        groups = [(HEADINGS[kind], [each for each in self.findings if each.kind == kind]) for kind in kinds]
        return [(heading, own) for heading, own in groups if own]

    def _gain(self) -> str:
        before, after = self.advice[0].before, self.advice[-1].after
        return f"accuracy {before:.1%} → {after:.1%} with all {counted(len(self.advice), 'edit')}"

    def _headline(self) -> str:
        score = (
            f"{counted(len(self.labels), 'label')}, informativeness {self.informativeness.score:.2f} of 1"
            f"{'' if self.texts else ' (names alone; give texts to measure how much the names help)'}"
        )
        texts = f"; {counted(self.texts, 'text')}" if self.texts else ""
        accuracy = "" if self.accuracy is None else f"; accuracy {self.accuracy:.1%} on labelled texts"
        return f"{score}{texts}{accuracy}; {counted(len(self.findings), 'finding')}."

    def to_dict(self) -> dict[str, Any]:
        """Convert the whole result to a JSON object."""
        projection = project(self.vectors)
        return {
            "model": self.model,
            "texts": self.texts,
            "accuracy": self.accuracy,
            "informativeness": self.informativeness.to_dict(),
            "findings": [each.to_dict() for each in self.findings],
            "advice": [each.to_dict() for each in self.advice],
            "notes": list(self.notes),
            "labels": [
                {
                    "label": label.id,
                    "name": label.name,
                    "informativeness": round(score, 4),
                    "map": [round(float(x), 4), round(float(y), 4)],
                }
                for label, score, (x, y) in zip(
                    self.labels.labels, self.informativeness.scores, projection, strict=True
                )
            ],
        }

    def to_html(self) -> str:
        """Render one web page that needs no other file, no script and no network."""
        body = [
            "<header><h1>Label check</h1>",
            f'<div class="quiet">{escape(self._headline())} Encoded by {escape(shorten(self.model, 200))}.</div>'
            "</header>",
            self._map(),
            *self._sections(),
            self._table(),
            "<footer>Made by maskmatch. Informativeness is from 0 to 1; docs/explanation/informativeness.md explains "
            "how it is computed.</footer>",
        ]
        return whole_page("Label check", body)

    def save(self, path: str | Path) -> Path:
        """Write the web page to a file. The write is atomic."""
        path = Path(path).expanduser()
        write_text(path, self.to_html())
        return path

    def _map(self) -> str:
        positions = {id_: position for position, id_ in enumerate(self.labels)}
        with_finding = {id_ for each in self.findings for id_ in each.labels}
        close_pairs = [
            (positions[each.labels[0]], positions[each.labels[1]]) for each in self.findings if each.kind == "close"
        ]
        svg = draw_map(
            self.labels.names, project(self.vectors), [id_ in with_finding for id_ in self.labels], close_pairs
        )
        return (
            "<section><h2>Map of labels</h2>"
            '<p class="quiet">The label vectors, projected onto their first two principal components: similar labels '
            "are near each other, and a dashed line joins names that are too close. The projection explains "
            f"{explained_variance(self.vectors):.0%} of the variance, so labels that look close need not be."
            f'</p><div class="scroll">{svg}</div></section>'
        )

    def _sections(self) -> list[str]:
        sections = []
        if self.advice:
            items = "".join(f"<li><div>{escape(each.message)}</div></li>" for each in self.advice)
            sections.append(
                f'<section><h2>Tried on the texts</h2><p>{escape(self._gain())}.</p><ol class="mistakes">{items}</ol>'
                "</section>"
            )
        for heading, own in self._groups():
            items = "".join(
                f'<li><div class="pair">{escape(each.message)}</div><div>{escape(each.suggestion)}</div></li>'
                for each in own
            )
            sections.append(f'<section><h2>{heading}</h2><ol class="mistakes">{items}</ol></section>')
        if not sections:
            sections.append("<section><h2>Findings</h2><p>No problems were found.</p></section>")
        sections += [f'<p class="quiet">{escape(note)}</p>' for note in self.notes]
        return sections

    def _table(self) -> str:
        pairs = sorted(zip(self.labels.names, self.informativeness.scores, strict=True), key=lambda pair: pair[1])
        rows = "".join(
            f"<tr><td>{escape(shorten(name, 60))}</td>"
            f'<td class="bar"><span><i><b style="width:{100 * score:.1f}%"></b></i>{score:.2f}</span></td></tr>'
            for name, score in pairs
        )
        return (
            '<section><h2>Labels</h2><p class="quiet">Least informative first.</p><div class="scroll tall">'
            f'<table class="wide"><thead><tr><th>label</th><th>informativeness</th></tr></thead><tbody>{rows}</tbody>'
            "</table></div></section>"
        )
