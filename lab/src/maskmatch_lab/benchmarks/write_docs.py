"""Write the pages and blocks of figures from the committed results files, and reference pages from the code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from maskmatch_lab.benchmarks import (
    benchmarks_page,
    calibration_page,
    experiment_page,
    integrations_page,
    overview,
    promises_page,
    real_world_page,
    reference_pages,
    serving_page,
    studies_page,
    unlabelled_page,
)
from maskmatch_lab.benchmarks.markdown import results_of, with_figures
from maskmatch_lab.benchmarks.speed import page as speed_page
from maskmatch_lab.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

DOCS = ROOT / "docs" / "results"
REFERENCE = ROOT / "docs" / "reference"


def pages() -> dict[Path, str]:
    """The pages and pictures as they should be, by their files."""
    found: dict[Path, str] = {
        page: with_figures(page, figures)
        for page, figures in (
            (ROOT / "README.md", overview.readme_figures()),
            (DOCS / "README.md", overview.overview_figures()),
            (DOCS / "zero-shot.md", benchmarks_page.zero_shot_page()),
            (DOCS / "benchmarks.md", benchmarks_page.benchmarks_page()),
            (DOCS / "speed.md", speed_page.figures()),
            (DOCS / "calibration.md", calibration_page.figures()),
            (DOCS / "serving.md", serving_page.figures()),
            (DOCS / "integrations.md", integrations_page.figures()),
            (DOCS / "real-world.md", real_world_page.figures()),
            (DOCS / "unlabelled.md", unlabelled_page.figures()),
            (ROOT / "docs" / "explanation" / "promises.md", promises_page.figures()),
        )
    }
    found |= speed_page.pictures(DOCS)
    found[REFERENCE / "settings.md"] = reference_pages.settings_page()
    found[REFERENCE / "commands.md"] = reference_pages.commands_page()
    if results_of("experiment") is not None:
        page = DOCS / "experiment.md"
        found[page] = with_figures(page, experiment_page.figures())
        found[DOCS / experiment_page.PICTURE] = experiment_page.scores_picture()
    return found | studies_page.pages(DOCS / "studies")


def main() -> None:
    """Write what is not up to date; with ``--check``, only name it."""
    stale = {
        path: text for path, text in pages().items() if not path.is_file() or path.read_text(encoding="utf-8") != text
    }
    if "--check" in sys.argv:
        sys.exit(f"not up to date, run make docs: {', '.join(path.name for path in stale)}" if stale else 0)
    for path, text in stale.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
