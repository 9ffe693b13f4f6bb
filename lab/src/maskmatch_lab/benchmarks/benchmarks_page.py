"""The figures of docs/results/zero-shot.md, few-shot.md and benchmarks.md, from lab/results."""

from __future__ import annotations

from typing import Any

from maskmatch_lab.benchmarks import expansion
from maskmatch_lab.benchmarks.common import read_results
from maskmatch_lab.benchmarks.markdown import origin, points, results_of, table, with_spread
from maskmatch_lab.benchmarks.zero_shot import WAYS

POOLED, BARE, ADAPTED = WAYS
LEAST_SEEDS = 3
"""Means over fewer seeds are not reported as figures."""


# -- zero-shot -----------------------------------------------------------------------------------------------


def zero_shot_page() -> str:
    """All blocks of the page of zero-shot accuracy."""
    blocks = ["## Names alone", zero_shot_figures()]
    if results_of("expansion") is not None:
        blocks += ["## Names with examples from unlabelled texts", expansion_figures()]
    return "\n\n".join(blocks)


def zero_shot_figures() -> str:
    """Zero-shot accuracy per dataset and way, and per prompt."""
    zero = read_results("zero_shot")
    spread = " and ".join(f"{100 * value:.1f} points on {dataset}" for dataset, value in zero["spread"].items())
    prompts = [
        (cell["dataset"], f"`{cell['prompt']}`", f"{cell['accuracy']:.4f}")
        for cell in zero["cells"]
        if cell["prompt"] is not None
    ]
    return "\n\n".join(
        [
            zero_shot_table(zero),
            "### Other prompts",
            "The same measurement with five prompts that were not used in alignment. "
            f"The best and the worst prompt differ by {spread}.",
            table(("dataset", "prompt", "accuracy"), prompts),
            origin(zero),
        ]
    )


def zero_shot_table(zero: dict[str, Any]) -> str:
    """Zero-shot accuracy per dataset, with the mean."""
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
    return table(("dataset", "labels", "test texts", POOLED, BARE, ADAPTED), rows)


def zero_datasets(zero: dict[str, Any]) -> list[str]:
    """The datasets of the zero-shot figures, in their order."""
    return list(dict.fromkeys(cell["dataset"] for cell in zero["cells"]))


def expansion_figures() -> str:
    """Zero-shot accuracy with names alone and with the examples and words that expansion finds."""
    result = read_results("expansion")
    summary = result["summary"]
    names, examples, words = (summary[way] for way in (expansion.NAMES, expansion.EXAMPLES, expansion.WORDS))
    rows = [
        (
            dataset,
            f"{names['accuracy'][dataset]['mean']:.4f}",
            with_spread(examples["accuracy"][dataset]),
            points(examples["gain"][dataset]),
            f"{words['accuracy'][dataset]['mean']:.4f}",
            points(words["gain"][dataset]),
        )
        for dataset in names["accuracy"]
        if dataset in examples["accuracy"] and dataset in words["accuracy"]
    ]
    means = [points(way["mean gain"]) if "mean gain" in way else "" for way in (examples, words)]
    rows.append(("**mean gain**", "", "", f"**{means[0]}**", "", f"**{means[1]}**"))
    header = ("dataset", "names", "names and examples", "points", "names and words of the vocabulary", "points")
    about = f"Zero-shot accuracy with the default encoder. {result['protocol']}"
    return "\n\n".join([about, table(header, rows), origin(result)])


# -- few-shot and the rest -----------------------------------------------------------------------------------


def benchmarks_page() -> str:
    """All blocks of the page of benchmarks."""
    blocks = ["## Few shots with default settings", few_shot_figures()]
    blocks += ["## Which similarity", similarity_figures()]
    blocks += ["## Overhead of the library", overhead_figures()]
    if results_of("many_labels") is not None:
        blocks += ["## Sampled labels", many_labels_figures()]
    return "\n\n".join(blocks)


def few_shot_figures() -> str:
    """Few-shot accuracy of the default, with half the steps, and without the adapter."""
    few = read_results("few_shot")
    rows = [
        (
            row["way"],
            row["encoder"],
            row["seeds"],
            row["steps"],
            *(with_spread(row[name]) for name in ("accuracy", "macro_f1")),
            f"{row['expected_calibration_error']['mean']:.4f}",
            f"{row['training_seconds']['mean']:.0f}",
        )
        for row in few["table"]
    ]
    by_seed = "; ".join(
        f"{row['way']} " + ", ".join(f"{cell['accuracy']:.4f}" for cell in few["cells"] if cell["way"] == row["way"])
        for row in few["table"]
    )
    return "\n\n".join(
        [
            f"{few['dataset']}, {few['shots']} texts per label. Accuracy on the whole test set ({few['rows']:,} "
            "texts), "
            f"mean ± sd over the seeds. Settings: {_settings(few['training'])}.",
            table(
                ("run", "encoder", "seeds", "steps", "accuracy", "macro-F1", "calibration error", "seconds"),
                rows,
            ),
            f"Accuracy per seed: {by_seed}. The machine did other work at the same time, so the seconds only show the "
            "order of magnitude.",
            origin(few),
        ]
    )


def few_shot_row(way: str) -> dict[str, Any]:
    """One row of the few-shot table."""
    return next(dict(row) for row in read_results("few_shot")["table"] if row["way"] == way)


def similarity_figures() -> str:
    """Accuracy per similarity, and why the default is what it is."""
    result = read_results("similarity")
    rows = [
        (
            row["dataset"],
            row["similarity"],
            row["seeds"],
            with_spread(row["accuracy"]),
            f"{row['expected_calibration_error']['mean']:.4f}",
        )
        for row in result["table"]
    ]
    means = [(name, f"{value:.4f}") for name, value in similarity_means(result["table"]).items()]
    return "\n\n".join(
        [
            f"{result['shots']} texts per label, the encoder without the adapter, learning rate "
            f"{result['learning_rate']}. Accuracy on dev, mean ± sd over the seeds. Mean over the datasets:",
            table(("similarity", "accuracy"), means),
            "The three are close on average. The dot product is worse with many labels (trec50), in accuracy and in "
            "calibration, so the default is a cosine. The fixed and the learned temperature are within each other's "
            "spread, so the default is the simpler one: temperature 0.05. The paper uses the raw dot product; "
            '`similarity="dot"` selects it.',
            table(("dataset", "similarity", "seeds", "accuracy", "calibration error"), rows),
            origin(result),
        ]
    )


def similarity_means(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The mean accuracy per similarity over the datasets that have enough seeds."""
    means: dict[str, list[float]] = {}
    for row in rows:
        if row["seeds"] >= LEAST_SEEDS:
            means.setdefault(row["similarity"], []).append(row["accuracy"]["mean"])
    return {name: sum(values) / len(values) for name, values in means.items()}


def overhead_figures() -> str:
    """What the library costs beside the arithmetic."""
    overhead = read_results("overhead")
    rows = [
        (
            "share of wall time in forward, backward and optimizer step",
            f"{overhead['share_in_forward_backward_step']:.1%}",
        ),
        ("time of a whole run, with tokenising and set-up, relative to the bare loop", f"{overhead['time_ratio']:.2f}"),
        ("peak memory relative to the bare loop", f"{overhead['memory_ratio']:.2f}"),
    ]
    return "\n\n".join(
        [
            f"{overhead['steps']:.0f} training steps on banking77 in a process of its own, against a bare PyTorch loop "
            f"over batches prepared in the same way. The two alternate; figures are medians of {overhead['repeats']}.",
            table(("figure", "value"), rows),
            origin(overhead),
        ]
    )


def many_labels_figures() -> str:
    """Accuracy with full and with sampled label encoding."""
    many = read_results("many_labels")
    means = [(way, f"{figure['mean']:.4f} ± {figure['sd']:.4f}") for way, figure in many["accuracy"].items()]
    cells = [(cell["way"], cell["seed"], f"{cell['accuracy']:.4f}", cell["steps"]) for cell in many["cells"]]
    return "\n\n".join(
        [
            f"Accuracy on the dev split of {many['dataset']}, one text per label, the encoder without the adapter. "
            "With full encoding, a training step encodes all labels. With sampled encoding, it encodes the labels of "
            "its texts, the strongest wrong labels and a random sample. [Speed](speed.md#cost-curves) shows what a "
            "step "
            "costs.",
            table(("label encoding", "accuracy"), means),
            table(("label encoding", "seed", "accuracy", "steps"), cells),
            origin(many),
        ]
    )


def _settings(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items() if name != "seed")
