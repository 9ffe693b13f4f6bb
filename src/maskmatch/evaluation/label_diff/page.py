"""The label diff as a self-contained web page: no scripts, no links, and all user text escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from maskmatch.evaluation.display import LabelNames, counted, shorten, shorten_name
from maskmatch.evaluation.html import whole_page

if TYPE_CHECKING:
    from maskmatch.evaluation.label_diff.result import LabelDiff, Move

MOST_MOVES = 100


def diff_page(diff: LabelDiff) -> str:
    """The diff as a web page."""
    names = LabelNames(each.label for each in diff.labels)
    body = [
        "<header><h1>Label diff</h1>",
        f'<div class="quiet">{escape(diff.headline)}</div></header>',
        _tiles(diff),
        _renamed(diff, names),
        _moves(diff, names),
        _labels(diff, names),
        "<footer>Created by maskmatch. Rows are counted from 0. Two numbers with an arrow are probabilities of the "
        "predicted label, before and after. A label that was renamed is the same label.</footer>",
    ]
    return whole_page("Label diff", body)


def _tiles(diff: LabelDiff) -> str:
    tiles = [("Changed", f"{diff.changed:,}", f"of {counted(diff.rows, 'text')}")]
    if diff.accuracy is not None:
        found = diff.accuracy
        tiles += [
            ("Accuracy", f"{found.before:.3f} → {found.after:.3f}", f"{counted(found.rows, 'labelled text')}"),
            ("Mended", f"{found.mended:,}", "texts that become right"),
            ("Broken", f"{found.broken:,}", "texts that become wrong"),
            ("p", f"{found.p:.3f}", "exact McNemar test"),
        ]
    tiles.append(("Confidence", f"{diff.confidence[0]:.2f} → {diff.confidence[1]:.2f}", "mean probability"))
    cells = "".join(
        f'<div class="tile"><dt>{name}</dt><dd><span class="figure">{figure}</span>'
        f'<span class="meaning">{meaning}</span></dd></div>'
        for name, figure, meaning in tiles
    )
    return f'<dl class="tiles">{cells}</dl>'


def _renamed(diff: LabelDiff, names: LabelNames) -> str:
    if not diff.renamed:
        return ""
    items = "".join(f"<li>{escape(str(old))} → {escape(names[new])}</li>" for old, new in diff.renamed)
    return f"<section><h2>Renamed labels</h2><ul>{items}</ul></section>"


def _moves(diff: LabelDiff, names: LabelNames) -> str:
    if not diff.moves:
        return "<section><h2>Changes</h2><p>No text gets another label.</p></section>"
    items = "".join(_move(each, names) for each in diff.moves[:MOST_MOVES])
    more = len(diff.moves) - MOST_MOVES
    rest = f'<p class="quiet">And {counted(more, "more pair")} of labels.</p>' if more > 0 else ""
    return f'<section><h2>Changes</h2><ol class="mistakes">{items}</ol>{rest}</section>'


def _move(move: Move, names: LabelNames) -> str:
    became = "" if move.mended is None else f" ({move.mended:,} mended, {move.broken:,} broken)"
    pair = " → ".join(escape(shorten_name(names[label], 60)) for label in (move.before, move.after))
    examples = "".join(
        f"<div>{one.before:.2f} → {one.after:.2f} &nbsp; {escape(shorten(one.text, 300))} "
        f'<span class="quiet">row {one.row:,}</span></div>'
        for one in move.examples
    )
    return f'<li><div class="pair">{pair}: {counted(move.count, "text")}{became}</div>{examples}</li>'


def _labels(diff: LabelDiff, names: LabelNames) -> str:
    rows = "".join(
        f"<tr><td>{escape(shorten_name(names[each.label], 60))}"
        f"{' <i>new</i>' if each.is_new else ' <i>removed</i>' if each.is_removed else ''}</td>"
        f"<td>{each.before:,}</td><td>{each.after:,}</td><td>{each.won:,}</td><td>{each.lost:,}</td></tr>"
        for each in diff.labels
    )
    return (
        '<section><h2>Texts per label</h2><p class="quiet">The largest changes first.</p><div class="scroll tall">'
        '<table class="wide"><thead><tr><th>label</th><th>before</th><th>after</th><th>won</th><th>lost</th></tr>'
        f"</thead><tbody>{rows}</tbody></table></div></section>"
    )
