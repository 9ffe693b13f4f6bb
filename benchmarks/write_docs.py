"""Write the pages of figures, and the figures in the README and docs, from the committed results files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from benchmarks import expansion, experiment_page, studies_page
from benchmarks.common import RESULTS, read_results
from benchmarks.markdown import origin, table
from benchmarks.speed import page as speed_page
from benchmarks.zero_shot import WAYS

ROOT = Path(__file__).parent.parent
BEGIN = "<!-- figures: written by `make docs` from benchmarks/results -->"
END = "<!-- end of figures -->"
POOLED, BARE, ADAPTED = WAYS


def readme_figures() -> str:
    few, overhead, zero = (read_results(name) for name in ("few_shot", "overhead", "zero_shot"))
    default, bare = _way(few, "default"), _way(few, "without the adapter")
    means = zero["means"]
    return (
        f"With names alone, over {len(zero_datasets(zero))} datasets that the default has not learned from, it is "
        f"right in **{means[ADAPTED]:.1%}** of the test texts on average; the same encoder read by the mean of its "
        f"tokens in {means[POOLED]:.1%}, and read at its mask without the adapter in {means[BARE]:.1%}.\n\n"
        f"On banking77 (77 intents, {few['shots']} examples each, the whole test set of {few['rows']:,} texts), the "
        f"library's defaults reach an accuracy of **{_seeds(default)}** in {default['steps']} training steps, and "
        f"{_seeds(bare)} from the encoder without the adapter. "
        f"{overhead['share_in_forward_backward_step']:.0%} of a training run is "
        "spent in forward, backward and optimizer step; its peak memory is "
        f"{overhead['memory_ratio']:.2f} times that of a bare PyTorch loop over batches made in the same way."
        f"\n\n{speed_page.summary()}"
    ).rstrip()


def zero_datasets(zero: dict[str, Any]) -> list[str]:
    """The datasets of the zero-shot figures, in their order."""
    return list(dict.fromkeys(cell["dataset"] for cell in zero["cells"]))


def zero_shot_figures() -> str:
    """Zero-shot accuracy by dataset and way, and by prompt."""
    zero = read_results("zero_shot")
    plain = {(cell["dataset"], cell["way"]): cell for cell in zero["cells"] if cell["prompt"] is None}
    rows = [
        (
            dataset,
            plain[dataset, POOLED]["labels"],
            f"{plain[dataset, POOLED]['rows']:,}",
            *(f"{plain[dataset, way]['accuracy']:.4f}" for way in (POOLED, BARE, ADAPTED)),
        )
        for dataset in zero_datasets(zero)
    ]
    rows.append(("**mean**", "", "", *(f"**{zero['means'][way]:.4f}**" for way in (POOLED, BARE, ADAPTED))))
    prompts = [
        (cell["dataset"], f"`{cell['prompt']}`", f"{cell['accuracy']:.4f}")
        for cell in zero["cells"]
        if cell["prompt"] is not None
    ]
    spread = ", ".join(f"{100 * value:.1f} points on {dataset}" for dataset, value in zero["spread"].items())
    return "\n\n".join(
        [
            table(("dataset", "labels", "texts", POOLED, BARE, ADAPTED), rows),
            "Five other prompts, none of them among those it was aligned with. Between the best and the worst lie "
            f"{spread}.",
            table(("dataset", "prompt", "accuracy"), prompts),
            origin(zero),
        ]
    )


def few_shot_figures() -> str:
    """Few-shot accuracy of the default, with half the steps, and without the adapter."""
    few = read_results("few_shot")
    return "\n\n".join(
        [
            f"{few['dataset']}, {few['shots']} shots a label, accuracy on the whole test set ({few['rows']:,} texts), "
            f"mean ± sd over the seeds. Settings: {_settings(few['training'])}.",
            table(
                ("way", "encoder", "seeds", "steps", "accuracy", "macro-F1", "calibration error", "seconds"),
                [
                    (
                        row["way"],
                        row["encoder"],
                        row["seeds"],
                        row["steps"],
                        *(_with_spread(row[name], row["seeds"]) for name in ("accuracy", "macro_f1")),
                        f"{row['expected_calibration_error']['mean']:.4f}",
                        f"{row['training_seconds']['mean']:.0f}",
                    )
                    for row in few["table"]
                ],
            ),
            "By seed: "
            + "; ".join(
                f"{row['way']} "
                + ", ".join(f"{cell['accuracy']:.4f}" for cell in few["cells"] if cell["way"] == row["way"])
                for row in few["table"]
            )
            + ". The seconds were taken on a machine that did other work at the same time: they tell the order of "
            "magnitude.",
            origin(few),
        ]
    )


def expansion_figures() -> str:
    """Zero-shot accuracy with names alone and with what expansion finds for them."""
    result = read_results("expansion")
    summary = result["summary"]
    names, examples, words = (summary[way] for way in (expansion.NAMES, expansion.EXAMPLES, expansion.WORDS))
    seeds = len(expansion.SEEDS)
    rows = [
        (
            dataset,
            f"{names['accuracy'][dataset]['mean']:.4f}",
            _with_spread(examples["accuracy"][dataset], seeds),
            f"{100 * examples['gain'][dataset]:+.1f}",
            f"{words['accuracy'][dataset]['mean']:.4f}",
            f"{100 * words['gain'][dataset]:+.1f}",
        )
        for dataset in names["accuracy"]
        if dataset in examples["accuracy"] and dataset in words["accuracy"]
    ]
    means = [f"{100 * way['mean gain']:+.1f}" if "mean gain" in way else "" for way in (examples, words)]
    rows.append(("**mean gain**", "", "", f"**{means[0]}**", "", f"**{means[1]}**"))
    header = ("dataset", "names", "names and examples", "points", "names and words of the vocabulary", "points")
    about = f"Zero-shot accuracy with the default encoder. {result['protocol']}"
    return "\n\n".join([about, table(header, rows), origin(result)])


def _way(few: dict[str, Any], way: str) -> dict[str, Any]:
    return next(dict(row) for row in few["table"] if row["way"] == way)


def benchmarks_page() -> str:
    overhead, similarity = (read_results(name) for name in ("overhead", "similarity"))
    return (
        "\n\n".join(
            [
                "# Benchmarks",
                "Every figure here comes from a file in `benchmarks/results/`, which names its command, versions and "
                "machine. This page is written by `make docs`.",
                "## Names alone",
                "Accuracy on whole test sets of datasets that the default's adapter has not learned from; one fixed "
                "prompt a task. `docs/alignment.md` tells how the adapter came about.",
                zero_shot_figures(),
                "## Few shots, the library's defaults",
                few_shot_figures(),
                "## Which similarity",
                f"{similarity['shots']} shots a label, the bare encoder, learning rate {similarity['learning_rate']}, "
                "accuracy on dev, mean ± sd over the seeds. The default is the cosine with a temperature of 0.05: "
                + _similarity_reason(similarity["table"]),
                table(
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
                origin(similarity),
                "## What the library costs beside the arithmetic",
                f"{overhead['steps']:.0f} training steps on banking77 in a process of its own, against a bare PyTorch "
                f"loop over batches made beforehand in the same way; alternating, medians of {overhead['repeats']}.",
                table(
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
                origin(overhead),
                *many_labels_section(),
            ]
        )
        + "\n"
    )


def many_labels_section() -> list[str]:
    """What many labels cost, if it has been measured."""
    if not (RESULTS / "many_labels.json").is_file():
        return []
    many = read_results("many_labels")
    rows = [(cell["way"], cell["seed"], f"{cell['accuracy']:.4f}", cell["steps"]) for cell in many["cells"]]
    means = ", ".join(f"{way} {figure['mean']:.4f} ± {figure['sd']:.4f}" for way, figure in many["accuracy"].items())
    return [
        "## Many labels",
        f"Accuracy on the dev split of {many['dataset']}, one shot a label, the bare encoder, when a training step "
        f"reads all labels (full) or those that matter to it and some that are drawn (sampled): {means}. What a step "
        "costs is on [the page of speed](speed.md).",
        table(("label encoding", "seed", "accuracy", "steps"), rows),
        origin(many),
    ]


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
        + ". All three lie close together on average. The dot product falls behind where there are many labels "
        "(trec50), in accuracy and in calibration, so a cosine is the default; the fixed and the learned temperature "
        "lie within each other's spread, so it is the simpler one. The raw dot product is the paper's, and stays a "
        'choice (`similarity="dot"`).'
    )


def _seeds(row: dict[str, Any]) -> str:
    """An accuracy that says of how many seeds it is."""
    return f"{_with_spread(row['accuracy'], row['seeds'])} ({row['seeds']} seed{'s' * (row['seeds'] > 1)})"


def _with_spread(figure: dict[str, float], seeds: int) -> str:
    return f"{figure['mean']:.4f} ± {figure['sd']:.4f}" if seeds > 1 else f"{figure['mean']:.4f}"


def _settings(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items() if name != "seed")


def pages() -> dict[Path, str]:
    """The pages as they should be."""
    found = {
        ROOT / "README.md": _with_figures(ROOT / "README.md", readme_figures()),
        ROOT / "docs" / "alignment.md": _with_figures(
            ROOT / "docs" / "alignment.md", f"{zero_shot_figures()}\n\n{few_shot_figures()}"
        ),
        ROOT / "docs" / "benchmarks.md": benchmarks_page(),
        ROOT / "docs" / "studies.md": _with_figures(ROOT / "docs" / "studies.md", studies_page.figures()),
    }
    if (RESULTS / "expansion.json").is_file():
        found[ROOT / "docs" / "labels.md"] = _with_figures(ROOT / "docs" / "labels.md", expansion_figures())
    speed = ROOT / "docs" / "speed.md"
    found[speed] = _with_figures(speed, speed_page.figures())
    found |= speed_page.pictures(ROOT / "docs")
    if (RESULTS / "experiment.json").is_file():
        page = ROOT / "docs" / "experiment.md"
        found[page] = _with_figures(page, experiment_page.figures())
        found[page.with_suffix(".svg")] = experiment_page.scores_picture()
    return found


def _with_figures(page: Path, figures: str) -> str:
    """A page with its block of figures written anew."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n{figures}\n{END}{rest.split(END)[1]}"


def main() -> None:
    stale = [path for path, text in pages().items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv:
        sys.exit(f"not up to date, run make docs: {', '.join(path.name for path in stale)}" if stale else 0)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
