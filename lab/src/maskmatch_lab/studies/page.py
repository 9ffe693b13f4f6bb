"""A study as one web page: the question, the answer, pictures, and then the sections of a comparison."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from maskmatch.evaluation.html import whole_page
from maskmatch_lab.comparison.page import STYLE, comparison_sections, headline
from maskmatch_lab.drawing import embedded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch_lab.studies.running import StudyResult


def study_page(result: StudyResult) -> str:
    """The whole page."""
    study = result.study
    pictures = "".join(f"<div>{embedded(picture)}</div>" for picture in result.conclusion.pictures)
    body = [
        f"<header><h1>{escape(study.question)}</h1>",
        f'<div class="quiet">The study {escape(study.name)}: {escape(headline(result.comparison))}</div></header>',
        f"<section><h2>Answer</h2>{_listed(result.answer, 'notes')}</section>" if result.answer else "",
        f'<section><div class="beside">{pictures}</div></section>' if pictures else "",
        f"<section><h2>In detail</h2>{_listed(result.details, 'notes plain')}</section>" if result.details else "",
        f"<section><h2>Limits</h2>{_listed(study.cut, 'notes plain')}</section>" if study.cut else "",
        *comparison_sections(result.comparison),
    ]
    return whole_page(study.question, body, STYLE)


def picture_files(result: StudyResult) -> dict[str, str]:
    """The pictures of a study by the names of their files."""
    return {f"picture-{number}.svg": each for number, each in enumerate(result.conclusion.pictures, 1)}


def _listed(sentences: Sequence[str], style: str) -> str:
    return f'<ul class="{style}">{"".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)}</ul>'
