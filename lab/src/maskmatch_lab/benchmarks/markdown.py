"""Building blocks of the pages of figures: tables, figures with their spread, the origin of results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskmatch_lab.benchmarks.common import read_results

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BEGIN = "<!-- figures: written by `make docs` from lab/results -->"
END = "<!-- end of figures -->"


def table(header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    """A table in Markdown."""
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def bullets(sentences: list[str]) -> str:
    """A list in Markdown."""
    return "\n".join(f"- {sentence}" for sentence in sentences)


def details(summary: str, content: str) -> str:
    """A part of a page that is closed until a reader opens it."""
    return f"<details><summary>{summary}</summary>\n\n{content}\n\n</details>"


def with_spread(figure: Mapping[str, float | None], digits: int = 4) -> str:
    """A mean with its standard deviation, if there is one.

    Example:
        >>> with_spread({"mean": 0.79, "sd": 0.0046}), with_spread({"mean": 0.625, "sd": None}, 3)
        ('0.7900 ± 0.0046', '0.625')
    """
    mean, sd = figure["mean"], figure["sd"]
    return f"{mean:.{digits}f}" if sd is None else f"{mean:.{digits}f} ± {sd:.{digits}f}"


def points(difference: float) -> str:
    """A difference of two accuracies in points, with its sign.

    Example:
        >>> points(0.0314), points(-0.005)
        ('+3.1', '-0.5')
    """
    return f"{100 * difference:+.1f}"


def results_of(name: str) -> dict[str, Any] | None:
    """The committed results of a benchmark; None if it was not run."""
    try:
        return read_results(name)
    except FileNotFoundError:
        return None


def origin(result: Mapping[str, Any]) -> str:
    """Where results come from: command, date, versions, machine."""
    versions = ", ".join(f"{name} {value}" for name, value in result["versions"].items())
    machine = f"{result['machine']['cpu']}, {result['machine']['cores']} cores"
    return f"Measured by `{result['command']}` on {result['date']}; {versions}; {machine}."


def with_figures(page: Path, figures: str) -> str:
    """The text of a page with its block of figures replaced.

    Args:
        page: A page that holds the two marker comments.
        figures: What to put between them.
    """
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n{figures}\n{END}{rest.split(END)[1]}"
