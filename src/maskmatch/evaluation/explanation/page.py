"""An explanation as a self-contained web page: no scripts, no links, and all user text escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from maskmatch.evaluation.display import LabelNames, shorten, shorten_name
from maskmatch.evaluation.html import whole_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.evaluation.explanation.result import ExplainedLabel, Explanation

SHADES = 6
"""In how many strengths words are coloured, for and against a label."""

STYLE = "".join(
    f".{name}{shade} {{ background: color-mix(in srgb, var(--{colour}) {shade * 100 // (SHADES + 2)}%, transparent);"
    " border-radius: 3px; }"
    for name, colour in (("for", "right"), ("against", "wrong"))
    for shade in range(1, SHADES + 1)
) + (
    ".read { font-size: 1.05rem; line-height: 1.9; overflow-wrap: anywhere; white-space: pre-wrap; }"
    ".read b { color: var(--quiet); font-weight: 550; font-size: .85rem; }"
    ".key span { padding: 0 .35rem; }"
    "section + header { margin-top: 2.5rem; }"
)


def explanation_page(explanations: Sequence[Explanation]) -> str:
    """Explanations as a web page, one after the other."""
    body = [
        *(part for each in explanations for part in _explanation(each)),
        f'<section class="key"><span class="for{SHADES}">speaks for the label</span> '
        f'<span class="against{SHADES}">speaks against it</span> '
        '<span class="quiet">A number is how much the log-odds of the label fall if the word is removed.</span>'
        "</section>",
        "<footer>Created by maskmatch. Each word was removed, one at a time, and the text classified again.</footer>",
    ]
    return whole_page("Explanation", body, STYLE)


def _explanation(explanation: Explanation) -> list[str]:
    names = LabelNames(each.label for each in explanation.labels)
    strongest = max((abs(effect) for each in explanation.labels for effect in each.effects), default=0.0)
    best = shorten_name(names[explanation.label], 80)
    return [
        f"<header><h1>Why “{escape(best)}”?</h1>",
        f'<div class="quiet">Probability {explanation.probability:.3f}.</div></header>',
        *(_label(explanation, each, names[each.label], strongest) for each in explanation.labels),
        _similar(explanation),
        _mask_words(explanation),
        "".join(f'<p class="quiet">{escape(note)}</p>' for note in explanation.notes),
    ]


def _label(explanation: Explanation, label: ExplainedLabel, name: str, strongest: float) -> str:
    fields = "".join(
        f'<div class="read">{f"<b>{escape(field)}</b> " if len(explanation.fields) > 1 else ""}'
        f"{_coloured(explanation, label, field, strongest)}</div>"
        for field in explanation.fields
    )
    lists = []
    for sign, heading in ((1, "For it"), (-1, "Against it")):
        words = [f"{escape(text)} {effect:+.2f}" for text, effect in label.strongest(explanation.parts, sign)]
        if words:
            lists.append(f"<div>{heading}: {', '.join(words)}</div>")
    if len(label.phrases) > 1:
        phrases = (f"{escape(shorten(one.phrase, 80))} ({one.similarity:.2f})" for one in label.phrases)
        lists.append(f"<div>Phrases of the label, by similarity: {', '.join(phrases)}</div>")
    heading = f"{escape(shorten_name(name, 80))} · {label.probability:.3f}"
    return f"<section><h2>{heading}</h2>{fields}{''.join(lists)}</section>"


def _coloured(explanation: Explanation, label: ExplainedLabel, field: str, strongest: float) -> str:
    """The text of a field, its words coloured by their effect on a label."""
    text, pieces, copied = explanation.fields[field], [], 0
    for part, effect in zip(explanation.parts, label.effects, strict=True):
        if part.field != field:
            continue
        pieces.append(escape(text[copied : part.start]))
        shade = round(SHADES * abs(effect) / strongest) if strongest > 0 else 0
        word = escape(text[part.start : part.end])
        style = "for" if effect > 0 else "against"
        pieces.append(f'<span class="{style}{shade}" title="{effect:+.2f}">{word}</span>' if shade else word)
        copied = part.end
    return "".join([*pieces, escape(text[copied:])])


def _similar(explanation: Explanation) -> str:
    if not explanation.similar:
        return ""
    rows = "".join(
        f"<tr><td>{escape(shorten(one.text, 300))}</td><td>{escape(shorten_name(str(one.label), 60))}</td>"
        f"<td>{one.similarity:.2f}</td></tr>"
        for one in explanation.similar
    )
    return (
        '<section><h2>Similar training texts</h2><div class="scroll"><table class="wide"><thead><tr><th>text</th>'
        f"<th>label</th><th>cosine</th></tr></thead><tbody>{rows}</tbody></table></div></section>"
    )


def _mask_words(explanation: Explanation) -> str:
    if not explanation.mask_words:
        return ""
    words = ", ".join(f"{escape(word)} ({probability:.2f})" for word, probability in explanation.mask_words)
    return f"<section><h2>Words at the mask</h2><p>{words}</p></section>"
