"""The tables of a comparison as rows of cells, for a terminal, a pipe or a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskmatch.evaluation.display import pad, text_width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch_lab.comparison.results import Comparison, TableRow
    from maskmatch_lab.comparison.statistics import Spread

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]


NAMES = ("dataset", "regime", "method", "seeds")


def results_table(comparison: Comparison) -> Table:
    """A header, and a row for each dataset, regime and method: quality and cost."""
    quality, cost = quality_table(comparison), cost_table(comparison)
    rows = [(*one, *other[len(NAMES) :]) for one, other in zip(quality[1], cost[1], strict=True)]
    return (*quality[0], *cost[0][len(NAMES) :]), rows


def quality_table(comparison: Comparison) -> Table:
    """The quality of each method; the task's own metric is shown unless it is accuracy."""
    rows = comparison.table
    own = any(row.metric != "accuracy" for row in rows)
    header = (*NAMES, *(("metric", "score") if own else ()), "accuracy", "macro-F1", "calibration error")
    return header, [
        (
            *_names(row),
            *((row.metric, _shown(row.figures["score"])) if own else ()),
            *(_shown(row.figures[name]) for name in ("accuracy", "macro_f1", "expected_calibration_error")),
        )
        for row in rows
    ]


def cost_table(comparison: Comparison) -> Table:
    """The cost of each method."""
    header = (*NAMES, "training texts", "training s", "texts/s", "parameters", "peak MB")
    names = ("texts_per_second", "trained_parameters", "peak_megabytes")
    return header, [
        (
            *_names(row),
            f"{row.training_texts:,}",
            _mean(row.figures["training_seconds"], digits=1),
            *(_mean(row.figures[name]) for name in names),
        )
        for row in comparison.table
    ]


def _names(row: TableRow) -> tuple[str, ...]:
    return row.dataset, row.regime, row.method, str(len(row.seeds))


def significance_table(comparison: Comparison) -> Table:
    """A header, and a row for each method that is compared with the reference."""
    header = ("dataset", "regime", f"{comparison.reference} minus", "accuracy", "95 % interval", "p", "by seed")
    rows: list[tuple[str, ...]] = [
        (
            row.dataset,
            row.regime,
            row.method,
            f"{row.result.difference:+.3f}",
            f"{row.result.low:+.3f} to {row.result.high:+.3f}",
            p_value(row.result.p),
            " ".join(f"{each:+.3f}" for each in row.by_seed),
        )
        for row in comparison.significance
    ]
    return header, rows


def p_value(p: float) -> str:
    """A p-value in at most four places.

    Example:
        >>> p_value(1.0), p_value(0.0312), p_value(0.0001)
        ('1.000', '0.031', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def comparison_text(comparison: Comparison) -> str:
    """Both tables and the notes as plain text."""
    parts = [_aligned(results_table(comparison))]
    differences = significance_table(comparison)
    if differences[1]:
        parts.append(_aligned(differences))
    parts += [f"* {note}" for note in comparison.notes]
    return "\n\n".join(parts)


def _aligned(table: Table) -> str:
    header, rows = table
    lines: Sequence[tuple[str, ...]] = [header, *rows]
    widths = [max(text_width(line[place]) for line in lines) for place in range(len(header))]
    return "\n".join(
        "  ".join(pad(cell, width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _shown(value: Spread | None) -> str:
    return "-" if value is None else str(value)


def _mean(value: Spread | None, digits: int = 0) -> str:
    return "-" if value is None else f"{value.mean:,.{digits}f}"
