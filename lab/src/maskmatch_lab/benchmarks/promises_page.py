"""The figures on the page of promises: what the torture campaign tried, and what the check of files costs."""

from __future__ import annotations

from typing import Any

from maskmatch_lab.benchmarks.markdown import origin, results_of, table


def figures() -> str:
    """The campaign in a table, and the cost of the check."""
    blocks = []
    torture, loading = results_of("torture"), results_of("loading")
    if torture is not None:
        rows = [(name, part["promise"], *_counts(part)) for name, part in torture["parts"].items()]
        tries = sum(part["tries"] for part in torture["parts"].values())
        failures = sum(part["failures"] for part in torture["parts"].values())
        blocks += [
            f"{tries:,} tries, {failures:,} failures:",
            table(("part", "what must hold in every try", "tries", "failures"), rows),
            origin(torture),
        ]
    if loading is not None:
        costs = [
            (
                name,
                f"{kind['megabytes']:.0f} MB",
                f"{kind['seconds_without']:.2f} s",
                f"{kind['seconds_with_check']:.2f} s",
                f"**{max(0.0, kind['seconds_of_check']):.2f} s**",
            )
            for name, kind in loading["kinds"].items()
        ]
        blocks += [
            "What it costs to check every file when a classifier of the default encoder is loaded:",
            table(("", "size", "without the check", "with it", "difference"), costs),
            f"Medians of {loading['repeats']} loads, in turns. Without the check, a classifier's weights are hashed, "
            f"too: label vectors must belong to them. {origin(loading)}",
        ]
    return "\n\n".join(blocks)


def _counts(part: dict[str, Any]) -> tuple[str, str]:
    if "skipped" in part:
        return "skipped", part["skipped"]
    return f"{part['tries']:,}", f"{part['failures']:,}"
