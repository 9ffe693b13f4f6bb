"""The comparison as one web page without scripts or other files; names given by users are escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from maskmatch.evaluation.display import counted, shorten
from maskmatch.evaluation.html import whole_page
from maskmatch_lab.comparison.pictures import score_dots, seconds_and_scores
from maskmatch_lab.comparison.provenance import machine, versions
from maskmatch_lab.comparison.text import cost_table, quality_table, significance_table
from maskmatch_lab.drawing import embedded, styles_of

if TYPE_CHECKING:
    from maskmatch_lab.comparison.results import Comparison
    from maskmatch_lab.comparison.text import Table

STYLE = """
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
"""


def comparison_page(comparison: Comparison) -> str:
    """The whole page."""
    heading = [
        "<header><h1>Comparison of methods</h1>",
        f'<div class="quiet">{escape(headline(comparison))}</div>',
        "</header>",
    ]
    return whole_page("Comparison of methods", [*heading, *comparison_sections(comparison)], STYLE)


def comparison_sections(comparison: Comparison) -> list[str]:
    """The sections of a comparison, to follow the heading of a page."""
    rows = comparison.table
    methods = [str(method["name"]) for method in comparison.about.get("methods", [])]
    styles = styles_of([*methods, *(row.method for row in rows)])
    colours = {method: style["color"] for method, style in styles.items()}
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    return [
        _keys(colours, comparison.reference),
        _notes(comparison),
        *(_dataset(comparison, dataset, colours) for dataset in datasets),
        _results(comparison),
        _significance(comparison),
        _tuning(comparison.about.get("tuning")),
        _origin(comparison),
        "<footer>Made by maskmatch. ± is the standard deviation over seeds. Parameters are trained parameters. "
        "Peak memory is the peak resident memory of the process during training, including libraries, weights and "
        "data; it is empty if unknown.</footer>",
    ]


def headline(comparison: Comparison) -> str:
    """The size of the comparison, and its encoder."""
    datasets = {cell.dataset for cell in comparison.cells}
    seeds = len({cell.seed for cell in comparison.cells})
    regimes = len({cell.regime for cell in comparison.cells})
    parts = (counted(len(datasets), "dataset"), counted(regimes, "regime"), counted(seeds, "seed"))
    return f"{', '.join(parts)}; encoder: {comparison.about.get('model') or 'the default'}"


def _keys(colours: dict[str, str], reference: str) -> str:
    items = "".join(
        f'<li><b style="background: {colour}"></b>{escape(method)}{" (reference)" if method == reference else ""}</li>'
        for method, colour in colours.items()
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
        f"{facts['task']}, {counted(facts['labels'], 'label')}, evaluated on {counted(facts['measured'], 'test row')}. "
        if facts
        else ""
    )
    pictures = (score_dots(rows, cells, colours), seconds_and_scores(rows, colours))
    shown = "".join(f"<div>{embedded(picture)}</div>" for picture in pictures if picture)
    return (
        f"<section><h2>{escape(dataset)}</h2>"
        f'<p class="quiet">{escape(about)}Dots are means over seeds, horizontal lines one standard deviation to both '
        f'sides, vertical ticks single seeds.</p><div class="beside">{shown}</div></section>'
    )


def _results(comparison: Comparison) -> str:
    quality = _table(quality_table(comparison), texts=3, bold=comparison.reference)
    cost = _table(cost_table(comparison), texts=3, bold=comparison.reference)
    return f"<section><h2>Quality</h2>{quality}</section><section><h2>Cost</h2>{cost}</section>"


def _significance(comparison: Comparison) -> str:
    table = significance_table(comparison)
    if not table[1]:
        return ""
    return (
        f"<section><h2>Is {escape(comparison.reference)} better?</h2>"
        '<p class="quiet">Difference in accuracy, mean over seeds, on the same test rows, with its 95 % interval and '
        f"the two-sided p-value of a paired bootstrap with {comparison.resamples:,} samples of test rows. The test "
        "covers other test rows, not other training rows: for those, see the difference with each seed. p-values are "
        f"not corrected; of {len(table[1])} tests, some may have a small p by chance.</p>"
        f"{_table(table, texts=3)}</section>"
    )


def _table(table: Table, texts: int, bold: str = "") -> str:
    """A table whose first columns are text; a line separates datasets and regimes."""
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
        f"{budget.get('runs_a_method', '?')} runs per method, the same for all."
    )
    rows: list[tuple[str, ...]] = []
    for name, setting in tuning["settings"].items():
        score = max((row["score"] for row in tuning["tried"].get(name, [])), default=None)
        shown = "-" if score is None else f"{score:.3f}"
        rows.append((name, f"{setting['learning_rate']:g}", f"{setting['epoch_factor']:g}", shown))
    header = ("method", "learning rate", "epoch factor", "score on dev")
    table: Table = (header, rows)
    return f'<section><h2>Tuning</h2><p class="quiet">{escape(tried)}</p>{_table(table, texts=1)}</section>'


def _origin(comparison: Comparison) -> str:
    hardware = machine()
    facts = [
        ("Command", f"<code>{escape(shorten(comparison.command or 'maskmatch.compare, from Python', 2000))}</code>"),
        ("Versions", escape(", ".join(f"{name} {number}" for name, number in versions().items()))),
        ("Machine", escape(", ".join(f"{name}: {value}" for name, value in hardware.items()))),
        ("Checkpoint", "the best on dev rows" if comparison.about.get("best_weights_by_dev") else "the last one"),
    ]
    items = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts)
    return f'<section><h2>Provenance</h2><dl class="facts">{items}</dl></section>'
