"""The pictures of a comparison: scores with their spread over seeds, and scores over training time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskmatch.evaluation.display import shorten_name
from maskmatch_lab import drawing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from maskmatch_lab.comparison.cells import Cell
    from maskmatch_lab.comparison.results import TableRow

NAME_COLUMNS = 40


def score_dots(rows: Sequence[TableRow], cells: Mapping[str, Sequence[Cell]], colours: Mapping[str, str]) -> str:
    """One row per regime and method: the mean score, a line of one standard deviation to both sides, every seed.

    Args:
        rows: The rows of a dataset.
        cells: The cells of each row, by regime and method with a line break between them.
        colours: The colour of each method.
    """
    with drawing.style():
        figure = drawing.new_figure(7, drawing.row_height(len(rows) + len({row.regime for row in rows})))
        axes = figure.add_subplot()
        names: list[str] = []
        regime = None
        for row in rows:
            if row.regime != regime:
                regime = row.regime
                names.append(regime)
            score, colour, place = row.figures["score"], colours[row.method], len(names)
            assert score is not None
            axes.errorbar(score.mean, place, xerr=score.sd, color=colour, marker="o", elinewidth=2.5, alpha=0.9)
            singles = [cell.figures.score for cell in cells[f"{row.regime}\n{row.method}"]]
            axes.plot(singles, [place] * len(singles), "|", color=colour, markersize=9, alpha=0.6)
            drawing.value_column(axes, place, f"{score.mean:.3f}")
            names.append(shorten_name(row.method, NAME_COLUMNS))
        drawing.name_rows(axes, names)
        regimes = {row.regime for row in rows}
        for label, name in zip(axes.get_yticklabels(), names, strict=True):
            label.set_fontweight("bold" if name in regimes else "normal")
        axes.set_xlabel(rows[0].metric)
        return drawing.as_svg(figure, f"Scores on {rows[0].dataset}")


def seconds_and_scores(rows: Sequence[TableRow], colours: Mapping[str, str]) -> str:
    """The mean score of each method over the seconds of its training; empty if nothing was trained."""
    trained = [row for row in rows if _mean(row, "training_seconds") > 0]
    if not trained:
        return ""
    markers = dict(zip(dict.fromkeys(row.regime for row in trained), drawing.MARKERS * len(trained), strict=False))
    with drawing.style():
        figure = drawing.new_figure(5.4, 4)
        axes = figure.add_subplot(xlabel="seconds of training", ylabel=trained[0].metric)
        for row in trained:
            seconds, score = max(_mean(row, "training_seconds"), 0.01), _mean(row, "score")
            axes.plot(seconds, score, markers[row.regime], color=colours[row.method], markersize=8)
        drawing.use_logarithm(axes, "x")
        if len(markers) > 1:
            for regime, marker in markers.items():
                axes.plot([], [], marker, color=drawing.QUIET, label=drawing.readable(regime))
            figure.legend(loc="outside lower center", ncols=3)
        return drawing.as_svg(figure, f"Training time and scores on {rows[0].dataset}")


def _mean(row: TableRow, name: str) -> float:
    figure = row.figures[name]
    return 0.0 if figure is None else figure.mean
