"""A study as one web page: the question, the answer, pictures, and then all that a comparison tells."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from maskmatch.comparison.page import STYLE, comparison_sections, headline
from maskmatch.evaluation.html import whole_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.studies.running import StudyResult


def study_page(result: StudyResult) -> str:
    """The whole page."""
    study = result.study
    pictures = "".join(f'<div class="scroll">{picture}</div>' for picture in result.conclusion.pictures)
    body = [
        f"<header><h1>{escape(study.question)}</h1>",
        f'<div class="quiet">The study {escape(study.name)}: {escape(headline(result.comparison))}</div></header>',
        f"<section><h2>What was found</h2>{_listed(result.sentences, 'notes')}</section>",
        f'<section><div class="beside">{pictures}</div></section>' if pictures else "",
        f"<section><h2>What was left out</h2>{_listed(study.cut, 'notes plain')}</section>" if study.cut else "",
        *comparison_sections(result.comparison),
    ]
    return whole_page(study.question, body, STYLE)


def _listed(sentences: Sequence[str], style: str) -> str:
    return f'<ul class="{style}">{"".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)}</ul>'
