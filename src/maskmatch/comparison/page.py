"""The comparison as one web page: no script, no other file; whatever users named is escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from maskmatch.comparison.pictures import COLOURS, colours_of, score_dots, seconds_and_scores
from maskmatch.comparison.provenance import machine, versions
from maskmatch.comparison.text import cost_table, quality_table, significance_table
from maskmatch.evaluation.display import counted, shorten
from maskmatch.evaluation.html import whole_page

if TYPE_CHECKING:
    from maskmatch.comparison.results import Comparison
    from maskmatch.comparison.text import Table

STYLE = """
:root { --m0: #2166ac; --m1: #c4561b; --m2: #2e8b57; --m3: #8e44ad; --m4: #b8860b; --m5: #c0396b; --m6: #4b6b7a;
  --m7: #6b8e23; --m8: #1a9aa8; --m9: #7a4a2b; }
@media (prefers-color-scheme: dark) {
  :root { --m0: #6cb0f0; --m1: #f2965c; --m2: #6fce9b; --m3: #c79be0; --m4: #e3c05c; --m5: #f08db2; --m6: #9fbccb;
    --m7: #b5d16b; --m8: #62d3de; --m9: #d3a27c; }
}
svg .plain { fill: var(--quiet); }
svg .group { font-weight: 600; }
.keys { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; margin: .9rem 0 0; padding: 0; list-style: none; }
.keys b { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem; border-radius: 50%; }
.notes.plain { border-left-color: var(--missed); }
tr.first td { border-top: 2px solid var(--line); }
table { font-size: .85rem; }
th, td { padding: .3rem .5rem; }
td.text, th.text { text-align: left; }
tr.reference td { font-weight: 600; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: 0; }
dl.facts dt { color: var(--quiet); }
dl.facts dd { margin: 0; overflow-wrap: anywhere; }
.beside { align-items: flex-start; }
code { font-size: .85rem; }
""" + "".join(
    f"svg .m{place} {{ fill: var(--m{place}); stroke: var(--m{place}); }}\n"
    f".keys .m{place} {{ background: var(--m{place}); }}\n"
    for place in range(COLOURS)
)
STYLE += """svg .seed { stroke-opacity: .5; stroke-width: 1.5; fill: none; }
svg .spread { stroke-width: 3; stroke-opacity: .55; stroke-linecap: round; fill: none; }
"""  # behind the colours, which fill


def comparison_page(comparison: Comparison) -> str:
    """The whole page."""
    heading = [
        "<header><h1>Comparison of methods</h1>",
        f'<div class="quiet">{escape(headline(comparison))}</div>',
        "</header>",
    ]
    return whole_page("Comparison of methods", [*heading, *comparison_sections(comparison)], STYLE)


def comparison_sections(comparison: Comparison) -> list[str]:
    """What a page tells of a comparison, behind its heading."""
    rows = comparison.table
    methods = [str(method["name"]) for method in comparison.about.get("methods", [])]
    colours = colours_of([*methods, *(row.method for row in rows)])
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    return [
        _keys(colours, comparison.reference),
        _notes(comparison),
        *(_dataset(comparison, dataset, colours) for dataset in datasets),
        _results(comparison),
        _significance(comparison),
        _tuning(comparison.about.get("tuning")),
        _origin(comparison),
        "<footer>Made by maskmatch. ± is the standard deviation over seeds. Parameters are those that were trained. "
        "Peak memory is the largest resident memory of the whole process during training, with all that it holds "
        "anyway; it is empty where the system does not tell.</footer>",
    ]


def headline(comparison: Comparison) -> str:
    """How much was run, and with which encoder."""
    datasets = {cell.dataset for cell in comparison.cells}
    seeds = len({cell.seed for cell in comparison.cells})
    regimes = len({cell.regime for cell in comparison.cells})
    parts = (counted(len(datasets), "dataset"), counted(regimes, "regime"), counted(seeds, "seed"))
    return f"{', '.join(parts)}; the encoder {comparison.about.get('model') or 'is the default'}"


def _keys(colours: dict[str, str], reference: str) -> str:
    items = "".join(
        f'<li><b class="{style}"></b>{escape(method)}{" (reference)" if method == reference else ""}</li>'
        for method, style in colours.items()
    )
    return f'<ul class="keys">{items}</ul>'


def _notes(comparison: Comparison) -> str:
    if not comparison.notes:
        return ""
    items = "".join(f"<li>{escape(note)}</li>" for note in comparison.notes)
    return f'<ul class="notes plain">{items}</ul>'


def _dataset(comparison: Comparison, dataset: str, colours: dict[str, str]) -> str:
    rows = [row for row in comparison.table if row.dataset == dataset]
    groups = comparison.groups()
    cells = {f"{row.regime}\n{row.method}": groups[dataset, row.regime, row.method] for row in rows}
    facts = next((each for each in comparison.about.get("datasets", []) if each["name"] == dataset), None)
    about = (
        f"{facts['task']}, {counted(facts['labels'], 'label')}, measured on {counted(facts['measured'], 'test row')}. "
        if facts
        else ""
    )
    pictures = (score_dots(rows, cells, colours), seconds_and_scores(rows, colours))
    shown = "".join(f'<div class="scroll">{picture}</div>' for picture in pictures if picture)
    return (
        f"<section><h2>{escape(dataset)}</h2>"
        f'<p class="quiet">{escape(about)}Dots are means over seeds, thick lines a standard deviation to both sides, '
        f'thin ticks single seeds.</p><div class="beside">{shown}</div></section>'
    )


def _results(comparison: Comparison) -> str:
    quality = _table(quality_table(comparison), texts=3, bold=comparison.reference)
    cost = _table(cost_table(comparison), texts=3, bold=comparison.reference)
    return f"<section><h2>How good</h2>{quality}</section><section><h2>At what cost</h2>{cost}</section>"


def _significance(comparison: Comparison) -> str:
    table = significance_table(comparison)
    if not table[1]:
        return ""
    return (
        f"<section><h2>Is {escape(comparison.reference)} better?</h2>"
        '<p class="quiet">Difference in accuracy, mean over seeds, on the same test rows, with its 95 % interval and '
        f"the two-sided p of a paired bootstrap of {comparison.resamples:,} draws of test rows. It tells "
        "whether other test rows would show the same, not whether other training rows would: see the difference with "
        f"each seed. p-values are of single tests; with {len(table[1])} of them, some may be small by chance.</p>"
        f"{_table(table, texts=3)}</section>"
    )


def _table(table: Table, texts: int, bold: str = "") -> str:
    """A table whose first columns are texts; a line is drawn where the dataset or the regime changes."""
    header, rows = table
    head = "".join(f"<th{_text(place, texts)}>{escape(name)}</th>" for place, name in enumerate(header))
    lines = []
    before: tuple[str, ...] = ()
    for row in rows:
        styles = ["first"] if texts > 1 and before and row[:2] != before[:2] else []
        styles += ["reference"] if row[2] == bold else []
        cells = "".join(f"<td{_text(place, texts)}>{escape(cell)}</td>" for place, cell in enumerate(row))
        lines.append(f'<tr class="{" ".join(styles)}">{cells}</tr>' if styles else f"<tr>{cells}</tr>")
        before = row
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _text(place: int, texts: int) -> str:
    return ' class="text"' if place < texts else ""


def _tuning(tuning: dict[str, Any] | None) -> str:
    if not tuning:
        return ""
    budget = tuning["budget"]
    tried = (
        f"Learning rates {', '.join(f'{rate:g}' for rate in budget.get('learning_rates', []))}, "
        f"{', '.join(f'{factor:g}' for factor in budget.get('epoch_factors', []))} times the usual epochs, on dev rows "
        f"of {', '.join(budget.get('datasets', []))} ({', '.join(budget.get('regimes', []))}): "
        f"{budget.get('runs_a_method', '?')} runs a method, the same for all."
    )
    rows: list[tuple[str, ...]] = []
    for name, setting in tuning["settings"].items():
        score = max((row["score"] for row in tuning["tried"].get(name, [])), default=None)
        told = "-" if score is None else f"{score:.3f}"
        rows.append((name, f"{setting['learning_rate']:g}", f"{setting['epoch_factor']:g}", told))
    header = ("method", "learning rate", "times the usual epochs", "score on dev")
    table: Table = (header, rows)
    return f'<section><h2>Tuning</h2><p class="quiet">{escape(tried)}</p>{_table(table, texts=1)}</section>'


def _origin(comparison: Comparison) -> str:
    hardware = machine()
    facts = [
        ("Command", f"<code>{escape(shorten(comparison.command or 'maskmatch.compare, from Python', 2000))}</code>"),
        ("Versions", escape(", ".join(f"{name} {number}" for name, number in versions().items()))),
        ("Machine", escape(", ".join(f"{name}: {value}" for name, value in hardware.items()))),
        ("Best weights", "chosen by dev rows" if comparison.about.get("best_weights_by_dev") else "the last ones"),
    ]
    items = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts)
    return f'<section><h2>Where this comes from</h2><dl class="facts">{items}</dl></section>'
