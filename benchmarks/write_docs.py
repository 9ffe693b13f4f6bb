"""Write the figures of the README and of docs/benchmarks.md from the committed results files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from benchmarks.common import read_results

ROOT = Path(__file__).parent.parent
BEGIN = "<!-- figures: written by `make docs` from benchmarks/results -->"
END = "<!-- end of figures -->"


def readme_figures() -> str:
    few, overhead = read_results("few_shot"), read_results("overhead")
    return (
        f"On banking77 (77 intents, {few['shots']} examples each, the whole test set of {few['rows']:,} texts), the "
        f"embedded encoder with the library's defaults reaches an accuracy of **{few['accuracy']['mean']:.3f}** ± "
        f"{few['accuracy']['sd']:.3f} over {len(few['runs'])} seeds, in {few['runs'][0]['steps']} training "
        f"steps. {overhead['share_in_forward_backward_step']:.0%} of a training run is "
        "spent in forward, backward and optimizer step; its peak memory is "
        f"{overhead['memory_ratio']:.2f} times that of a bare PyTorch loop over the same batches."
    )


def benchmarks_page() -> str:
    few, overhead, similarity = (read_results(name) for name in ("few_shot", "overhead", "similarity"))
    return (
        "\n\n".join(
            [
                "# Benchmarks",
                "Every figure here comes from a file in `benchmarks/results/`, which names its command, versions and "
                "machine. This page is written by `make docs`.",
                "## Few shots, the library's defaults",
                f"banking77, {few['shots']} shots a label, encoder {few['encoder']}, accuracy on the whole test set "
                f"({few['rows']:,} texts): **{few['accuracy']['mean']:.4f} ± {few['accuracy']['sd']:.4f}**. Settings: "
                f"{_settings(few['training'])}.",
                _table(
                    ("seed", "accuracy", "macro-F1", "calibration error", "steps", "seconds"),
                    [
                        (
                            run["seed"],
                            f"{run['accuracy']:.4f}",
                            f"{run['macro_f1']:.4f}",
                            f"{run['expected_calibration_error']:.4f}",
                            run["steps"],
                            f"{run['training_seconds']:.0f}",
                        )
                        for run in few["runs"]
                    ],
                ),
                "The seconds were taken on a machine that did other work at the same time: they tell the order of "
                "magnitude. How other methods and libraries do on the same task is not measured here yet.",
                _origin(few),
                "## Which similarity",
                f"{similarity['shots']} shots a label, learning rate {similarity['learning_rate']}, accuracy on dev, "
                "mean ± sd over the seeds. The default is the cosine with a fixed temperature of 0.05: "
                + _similarity_reason(similarity["table"]),
                _table(
                    ("dataset", "similarity", "seeds", "accuracy", "calibration error"),
                    [
                        (
                            row["dataset"],
                            row["similarity"],
                            row["seeds"],
                            _with_spread(row["accuracy"], row["seeds"]),
                            f"{row['expected_calibration_error']['mean']:.4f}",
                        )
                        for row in similarity["table"]
                    ],
                ),
                _origin(similarity),
                "## What the library costs beside the arithmetic",
                f"{overhead['steps']} training steps on banking77 in a process of its own, against a bare PyTorch loop "
                f"over batches made beforehand in the same way; alternating, medians of {overhead['repeats']}.",
                _table(
                    ("figure", "value"),
                    [
                        (
                            "share of wall time in forward, backward and optimizer step",
                            f"{overhead['share_in_forward_backward_step']:.1%}",
                        ),
                        (
                            "whole run, tokenising and set-up included, against the bare loop",
                            f"{overhead['time_ratio']:.2f} times",
                        ),
                        ("peak memory against the bare loop", f"{overhead['memory_ratio']:.2f} times"),
                    ],
                ),
                _origin(overhead),
            ]
        )
        + "\n"
    )


def _similarity_reason(table: list[dict[str, Any]]) -> str:
    means: dict[str, list[float]] = {}
    for row in table:
        if row["seeds"] < 3:  # not a figure yet
            continue
        means.setdefault(row["similarity"], []).append(row["accuracy"]["mean"])
    averages = {name: sum(values) / len(values) for name, values in means.items()}
    return (
        "the means over the datasets with three seeds are "
        + ", ".join(f"{name} {value:.4f}" for name, value in averages.items())
        + ". The fixed and the learned temperature lie within each other's spread, so the simpler one is the default; "
        'the raw dot product is the paper\'s, and stays a choice (`similarity="dot"`).'
    )


def _with_spread(figure: dict[str, float], seeds: int) -> str:
    return f"{figure['mean']:.4f} ± {figure['sd']:.4f}" if seeds > 1 else f"{figure['mean']:.4f}"


def _settings(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items() if name != "seed")


def _origin(result: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {value}" for name, value in result["versions"].items())
    machine = result["machine"]
    return f"`{result['command']}`, {result['date']}; {versions}; {machine['cpu']}, {machine['cores']} cores."


def _table(header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def pages() -> dict[Path, str]:
    """The pages as they should be."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    before, rest = readme.split(BEGIN)
    after = rest.split(END)[1]
    return {
        ROOT / "README.md": f"{before}{BEGIN}\n{readme_figures()}\n{END}{after}",
        ROOT / "docs" / "benchmarks.md": benchmarks_page(),
    }


def main() -> None:
    stale = [path for path, text in pages().items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv:
        sys.exit(f"not up to date, run make docs: {', '.join(path.name for path in stale)}" if stale else 0)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
