"""A study as one web page: the question, the answer, pictures, and then all that a comparison tells."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from maskmatch.comparison.page import STYLE, comparison_sections, headline
from maskmatch.evaluation.html import whole_page
from maskmatch.evaluation.style import STYLE as PAGE_STYLE

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
        f"<section><h2>What was found</h2>{_listed(result.answer, 'notes')}</section>" if result.answer else "",
        f'<section><div class="beside">{pictures}</div></section>' if pictures else "",
        f"<section><h2>In detail</h2>{_listed(result.details, 'notes plain')}</section>" if result.details else "",
        f"<section><h2>What was left out</h2>{_listed(study.cut, 'notes plain')}</section>" if study.cut else "",
        *comparison_sections(result.comparison),
    ]
    return whole_page(study.question, body, STYLE)


def picture_files(result: StudyResult) -> dict[str, str]:
    """The pictures of a study as files that stand for themselves, by their names."""
    return {f"picture-{number}.svg": standalone(each) for number, each in enumerate(result.conclusion.pictures, 1)}


def standalone(picture: str) -> str:
    """A picture of a page as a file of its own, in which its style and its namespace have to stand."""
    start, _, rest = picture.partition(">")
    named = start.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    return f"{named}><style>{PICTURE_STYLE}</style>{rest}\n"


def _of_pictures(style: str) -> str:
    """The part of a style sheet that pictures need: its colours, and the rules for what is in a picture."""
    light = r"^:root \{[^}]*\}"
    dark = r"^@media \(prefers-color-scheme: dark\) \{.*?^\}"
    rules = r"^svg [^}]*\}"
    return "\n".join(re.findall(f"{light}|{dark}|{rules}", style, re.DOTALL | re.MULTILINE))


FONT = "svg { font-family: system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif; }"
PICTURE_STYLE = "\n".join([FONT, _of_pictures(PAGE_STYLE), _of_pictures(STYLE)])


def _listed(sentences: Sequence[str], style: str) -> str:
    return f'<ul class="{style}">{"".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)}</ul>'
