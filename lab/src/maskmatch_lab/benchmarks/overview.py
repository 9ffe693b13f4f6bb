"""The main figures: for the README, and for docs/results/README.md."""

from __future__ import annotations

from typing import Any

from maskmatch_lab.benchmarks import calibration_page, experiment_page, studies_page, unlabelled_page
from maskmatch_lab.benchmarks.benchmarks_page import ADAPTED, BARE, POOLED, few_shot_row, zero_datasets
from maskmatch_lab.benchmarks.common import read_results
from maskmatch_lab.benchmarks.markdown import results_of, table, with_spread
from maskmatch_lab.benchmarks.speed import page as speed_page


def readme_figures() -> str:
    """The figures that a reader of the README should know, in one table."""
    zero, few = read_results("zero_shot"), read_results("few_shot")
    rows = [
        (
            f"zero-shot accuracy, mean of {len(zero_datasets(zero))} datasets",
            f"**{zero['means'][ADAPTED]:.1%}** (mean pooling of the same encoder: {zero['means'][POOLED]:.1%})",
        ),
        (
            f"accuracy on {few['dataset']} with {few['shots']} texts per label, 3 seeds",
            f"**{with_spread(few_shot_row('default')['accuracy'])}**",
        ),
        *calibration_page.readme_rows(),
        *speed_page.summary_rows(),
    ]
    measured = table(("measured with all-MiniLM-L6-v2 on two cores", ""), rows)
    return "\n\n".join(filter(None, (unlabelled_page.readme_table(), measured)))


def zero_shot_summary() -> str:
    """Mean zero-shot accuracy, in a table."""
    zero = read_results("zero_shot")
    rows = [
        ("the default: all-MiniLM-L6-v2 with our adapter, read at the mask", f"**{zero['means'][ADAPTED]:.1%}**"),
        ("the same encoder without the adapter, mean over its tokens", f"{zero['means'][POOLED]:.1%}"),
        ("the same encoder without the adapter, read at the mask", f"{zero['means'][BARE]:.1%}"),
    ]
    count = len(zero_datasets(zero))
    return (
        f"Without any training, mean accuracy over {count} datasets that the adapter has not been trained on:\n\n"
        + table(("zero-shot", "accuracy"), rows)
    )


def few_shot_summary() -> str:
    """Few-shot accuracy with default settings, in a table."""
    few, overhead = read_results("few_shot"), read_results("overhead")
    rows = [
        (f"accuracy of {name}, {row['seeds']} seeds, {row['steps']} steps", with_spread(row["accuracy"]))
        for name, row in (
            ("the default", few_shot_row("default")),
            ("the encoder without the adapter", few_shot_row("without the adapter")),
        )
    ]
    rows += [
        (
            "share of training time in forward, backward and optimizer step",
            f"{overhead['share_in_forward_backward_step']:.0%}",
        ),
        ("peak memory relative to a bare PyTorch loop", f"{overhead['memory_ratio']:.2f} times"),
    ]
    texts = f"{few['shots']} texts per label on {few['dataset']} ({few['rows']:,} test texts)"
    about = f"With {texts} and default settings:"
    return f"{about}\n\n{table(('few-shot', 'measured'), rows)}"


def overview_figures() -> str:
    """The main figures of every page of results, with links."""
    blocks = [
        "## Zero-shot",
        zero_shot_summary(),
        "Per dataset, and with other prompts: [zero-shot](zero-shot.md). With unlabelled texts: "
        "[learning from unlabelled texts](unlabelled.md).",
        "## Few-shot",
        few_shot_summary(),
        "Other settings and similarities: [benchmarks](benchmarks.md).",
    ]
    experiment = results_of("experiment")
    if experiment is not None:
        tests = experiment_page.five_shot_tests(experiment["parts"])
        blocks += [
            "## Against other methods",
            "On how many datasets is mask-matching better or worse than another method? Same encoder, same training "
            "loop, "
            "5 texts per label.",
            table(
                ("against", *experiment_page.VERDICTS),
                [
                    (method, *(len(names) for names in _verdicts(tests, method).values()))
                    for method in dict.fromkeys(row["method"] for row in tests)
                ],
            ),
            "Scores, other training sizes and a larger encoder: [the experiment](experiment.md).",
        ]
    blocks += [
        "## Speed",
        table(("speed", "measured"), speed_page.summary_rows()),
        "Curves, memory and other libraries: [speed](speed.md).",
        "## Studies",
        studies_page.index(),
    ]
    return "\n\n".join(blocks)


def _verdicts(tests: list[dict[str, Any]], method: str) -> dict[str, list[str]]:
    return experiment_page.verdicts([row for row in tests if row["method"] == method])
