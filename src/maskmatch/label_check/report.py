"""The result of a check: prints, saves and draws itself."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.evaluation.display import counted, shorten
from maskmatch.evaluation.html import whole_page
from maskmatch.label_check.findings import HEADINGS, Finding
from maskmatch.label_check.label_map import map_picture, positions, shown_share
from maskmatch.whole_folder import write_whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from maskmatch.label_check.informativeness import Informativeness
    from maskmatch.labels import LabelSet


@dataclass(frozen=True)
class LabelCheck:
    """What a check of labels found. Print it, or `save` it as a web page with the map of labels.

    Attributes:
        labels: The labels.
        informativeness: How much the names say, each and together.
        findings: What may be wrong, with what may be done about it.
        vectors: (K, dim), the labels' vectors.
        model: What has read the names.
        texts: How many texts were looked at.
        accuracy: The share of labelled texts that the classifier gets right, if there were any.
        notes: What could not be looked at, and why, in sentences.
    """

    labels: LabelSet
    informativeness: Informativeness
    findings: tuple[Finding, ...]
    vectors: NDArray[np.float32]
    model: str
    texts: int = 0
    accuracy: float | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [self._headline()]
        for kind, heading in HEADINGS.items():
            own = [each for each in self.findings if each.kind == kind]
            if own:
                lines += ["", f"{heading} ({len(own)})"]
                lines += [line for each in own for line in (f"  {each.message}", f"    {each.suggestion}")]
        if not self.findings:
            lines += ["", "Nothing was found that should be changed."]
        if self.notes:
            lines += ["", *self.notes]
        return "\n".join(lines)

    def _headline(self) -> str:
        told = (
            f"{counted(len(self.labels), 'label')}, informativeness {self.informativeness.score:.2f} of 1"
            f"{'' if self.texts else ' (by names alone; how much they will help, only texts tell)'}"
        )
        looked = f"; {counted(self.texts, 'text')} looked at" if self.texts else ""
        right = "" if self.accuracy is None else f"; {self.accuracy:.1%} of the labelled texts are right"
        return f"{told}{looked}{right}; {counted(len(self.findings), 'finding')}."

    def to_dict(self) -> dict[str, Any]:
        """The whole result, ready for JSON."""
        places = positions(self.vectors)
        return {
            "model": self.model,
            "texts": self.texts,
            "accuracy": self.accuracy,
            "informativeness": self.informativeness.to_dict(),
            "findings": [each.to_dict() for each in self.findings],
            "notes": list(self.notes),
            "labels": [
                {
                    "label": label.id,
                    "name": label.name,
                    "informativeness": round(score, 4),
                    "map": [round(float(x), 4), round(float(y), 4)],
                }
                for label, score, (x, y) in zip(self.labels.labels, self.informativeness.scores, places, strict=True)
            ],
        }

    def to_html(self) -> str:
        """The result as one web page that needs no other file, no script and no network."""
        body = [
            "<header><h1>Label check</h1>",
            f'<div class="quiet">{escape(self._headline())} Read by {escape(shorten(self.model, 200))}.</div></header>',
            self._map(),
            *self._sections(),
            self._table(),
            "<footer>Made by maskmatch. Informativeness goes from 0 to 1; docs/labels.md says how it is made.</footer>",
        ]
        return whole_page("Label check", body)

    def save(self, path: str | Path) -> Path:
        """Write the web page to a file, whole or not at all."""
        path = Path(path).expanduser()
        write_whole(path, self.to_html())
        return path

    def _map(self) -> str:
        positions_of = {id_: place for place, id_ in enumerate(self.labels)}
        troubled = {id_ for each in self.findings for id_ in each.labels}
        close = [
            (positions_of[each.labels[0]], positions_of[each.labels[1]])
            for each in self.findings
            if each.kind == "close"
        ]
        drawn = map_picture(self.labels.names, positions(self.vectors), [id_ in troubled for id_ in self.labels], close)
        return (
            "<section><h2>Map of labels</h2>"
            '<p class="quiet">Labels that the encoder reads alike lie close together; a dashed line joins names that '
            f"are too close. The plane shows {shown_share(self.vectors):.0%} of their spread, so what looks close need "
            "not be."
            f'</p><div class="scroll">{drawn}</div></section>'
        )

    def _sections(self) -> list[str]:
        sections = []
        for kind, heading in HEADINGS.items():
            items = "".join(
                f'<li><div class="pair">{escape(each.message)}</div><div>{escape(each.suggestion)}</div></li>'
                for each in self.findings
                if each.kind == kind
            )
            if items:
                sections.append(f'<section><h2>{heading}</h2><ol class="mistakes">{items}</ol></section>')
        if not sections:
            sections.append("<section><h2>Findings</h2><p>Nothing that should be changed.</p></section>")
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
            '<section><h2>Labels</h2><p class="quiet">Those that say least come first.</p><div class="scroll tall">'
            f'<table class="wide"><thead><tr><th>label</th><th>informativeness</th></tr></thead><tbody>{rows}</tbody>'
            "</table></div></section>"
        )
