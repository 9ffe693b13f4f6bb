"""The figures on the page about unlabelled texts, from the results of the study ``unlabelled``."""

from __future__ import annotations

from typing import Any

from maskmatch_lab.benchmarks import studies_page
from maskmatch_lab.benchmarks.markdown import origin, points, results_of, table
from maskmatch_lab.benchmarks.study_leads import Accuracies
from maskmatch_lab.studies.label_readout import BARE_ENCODER
from maskmatch_lab.studies.unlabelled import (
    COUNTS,
    EIGHT,
    FOREIGN,
    HARD,
    MAIN,
    METHODS,
    TRAINED,
    UNLABELLED,
    USUAL,
    ZERO_SHOT,
    adapted,
    alone,
    forced,
    self_trained,
)

SHOTS = ("1 shot", "5 shots", "10 shots")
NONE = ""


def figures() -> str:
    """All tables of the page."""
    results = studies_page.read(UNLABELLED)
    if results is None:
        return studies_page.NOT_RUN
    found = Accuracies.of(results)
    blocks = [
        "## Without examples",
        _about_zero_shot(),
        zero_shot_table(found),
        "## How many texts it takes",
        f"{MAIN}, adapted in any case, one draw. At most 20,000 texts are used.",
        counts_table(found),
        "## Beside a few examples",
        f"Accuracy with examples alone, and with {USUAL:,} unlabelled texts beside them.",
        shots_table(found),
        "## Texts of another dataset",
        "Labels of one dataset, unlabelled texts of another. It does harm, and the classifier does not always notice.",
        foreign_table(found),
        "## Self-training",
        "After adapting, train on the most confident texts. It helps or does harm, so it is off unless "
        "you ask for it. Times are those of one thread beside other work.",
        self_training_table(found, results),
        *_cost(),
        origin(results),
    ]
    return "\n\n".join(blocks)


def readme_table() -> str:
    """Names alone and adapted on eight datasets, for the first screen of the README."""
    results = studies_page.read(UNLABELLED)
    if results is None:
        return ""
    found = Accuracies.of(results)
    rows = []
    datasets = [*EIGHT, *HARD]
    texts = f"and {USUAL:,} texts without labels"
    for title, name in (
        ("label names alone", alone()),
        (texts, adapted()),
        (f"{texts}, `mean-matching`", adapted("mean-matching")),
    ):
        values = [_accuracy(found, ZERO_SHOT, name, dataset) for dataset in datasets]
        known = [value for value in values if value is not None]
        rows.append((title, *(_shown(value) for value in values), f"**{sum(known) / len(known):.3f}**"))
    return table(("accuracy without any example", *datasets, "mean"), rows)


def zero_shot_table(found: Accuracies) -> str:
    """Per dataset and method: names alone, and as the classifier decides; the worst first."""
    header = ["dataset"]
    for method in METHODS:
        header += [f"{method}: names", "adapted"]
    header += [f"{MAIN}, in any case"]
    rows = []
    for dataset in _datasets(found, ZERO_SHOT, alone()):
        row: list[Any] = [dataset]
        for method in METHODS:
            before, after = (_accuracy(found, ZERO_SHOT, name(method), dataset) for name in (alone, adapted))
            row += [_shown(before), _change(before, after)]
        row.append(
            _change(_accuracy(found, ZERO_SHOT, alone(), dataset), _accuracy(found, ZERO_SHOT, forced(), dataset))
        )
        rows.append((_gain(found, dataset), tuple(row)))
    rows.sort(key=lambda row: row[0])
    bare = _bare_rows(found)
    return table(tuple(header), [row for _, row in rows]) + (f"\n\n{bare}" if bare else "")


def counts_table(found: Accuracies) -> str:
    """Per dataset: the accuracy by the number of unlabelled texts."""
    rows = []
    for dataset in _datasets(found, ZERO_SHOT, alone()):
        values = [_accuracy(found, ZERO_SHOT, forced(count), dataset) for count in COUNTS]
        rows.append((dataset, _shown(_accuracy(found, ZERO_SHOT, alone(), dataset)), *map(_shown, values)))
    return table(("dataset", "names alone", *(f"{count:,} texts" for count in COUNTS)), rows)


def shots_table(found: Accuracies) -> str:
    """Per dataset and method: with examples alone, and with unlabelled texts."""
    rows = []
    for method in METHODS:
        for regime in SHOTS:
            pairs = [
                tuple(_accuracy(found, regime, name(method), dataset) for name in (alone, adapted))
                for dataset in TRAINED
            ]
            known = [after - before for before, after in pairs if before is not None and after is not None]
            cells = [
                f"{_shown(before)} → {_change(before, after)}" if after else _shown(before) for before, after in pairs
            ]
            if any(cells):
                rows.append((method, regime, *cells, f"**{points(sum(known) / len(known))}**" if known else NONE))
    return table(("method", "examples per label", *TRAINED, "mean gain"), rows)


def foreign_table(found: Accuracies) -> str:
    """What texts of another dataset do."""
    rows = []
    for pair in FOREIGN:
        before, decided, any_case = (_accuracy(found, ZERO_SHOT, name, pair) for name in (alone(), adapted(), forced()))
        labels, texts = pair.split("+")
        rows.append((labels, texts, _shown(before), _change(before, any_case), _change(before, decided)))
    return table(("labels of", "texts of", "names alone", "in any case", "as decided"), rows)


def self_training_table(found: Accuracies, results: dict[str, Any]) -> str:
    """Adapted, and self-trained after that."""
    seconds = {
        (cell["dataset"], cell["regime"]): cell["figures"]["adaptation"]["self_training"]
        for cell in results["cells"]
        if cell["method"] == self_trained() and cell["figures"].get("adaptation")
    }
    rows = []
    for (dataset, regime), how in seconds.items():
        before = _accuracy(found, regime, adapted(), dataset, like=self_trained())
        after = _accuracy(found, regime, self_trained(), dataset)
        took = NONE if how is None else f"{how['seconds']:.0f} s"
        rows.append((dataset, regime, _shown(before), _change(before, after), took))
    return table(("dataset", "examples", "adapted", "self-trained", "time"), rows)


def _cost() -> list[str]:
    """Time and memory, if they were measured."""
    result = results_of("adapting_cost")
    if result is None:
        return []
    rows = [
        (f"adapting to {result['texts']:,} texts, relative to encoding them", f"{result['ratio']['median']:.2f} times"),
        (
            f"memory for a stream of {result['streamed']:,} texts, beside the encoder",
            f"{result['stream_megabytes']:.0f} MB",
        ),
        ("the same for a stream of 20,000 texts", f"{result['short_stream_megabytes']:.0f} MB"),
        ("size of what is kept", f"{result['kept_megabytes']:.1f} MB"),
    ]
    return ["## Time and memory", table(("measured", ""), rows), origin(result)]


def _about_zero_shot() -> str:
    return (
        f"Accuracy on at most 1,000 test texts, with label names alone and adapted to at most {USUAL:,} unlabelled "
        "train texts. “Adapted” is what a user gets: the classifier decides. “In any case” is what it would be "
        "if it were forced. Sets are in the order of their gain, the worst first."
    )


def _bare_rows(found: Accuracies) -> str:
    """The encoder without the project's adapter, which has seen no text of these datasets."""
    rows = []
    for method in ("mask-matching", "semantic-matching"):
        names = [f"{name(method)}{BARE_ENCODER}" for name in (alone, adapted)]
        for dataset in _datasets(found, ZERO_SHOT, names[0]):
            before, after = (_accuracy(found, ZERO_SHOT, name, dataset) for name in names)
            rows.append((dataset, method, _shown(before), _change(before, after)))
    if not rows:
        return ""
    about = "The default's adapter was trained on texts of goemotions. With the bare encoder instead:"
    return f"{about}\n\n{table(('dataset', 'method', 'names', 'adapted'), rows)}"


def _datasets(found: Accuracies, regime: str, name: str) -> list[str]:
    return list(
        dict.fromkeys(
            data for own, method, data, _ in found.cells if (own, method) == (regime, name) and "+" not in data
        )
    )


def _gain(found: Accuracies, dataset: str) -> float:
    before, decided, in_any_case = (
        _accuracy(found, ZERO_SHOT, name, dataset) for name in (alone(), adapted(), forced())
    )
    after = decided if in_any_case is None else in_any_case
    return 0.0 if before is None or after is None else after - before


def _accuracy(found: Accuracies, regime: str, name: str, dataset: str, like: str | None = None) -> float | None:
    """The mean accuracy over seeds; over those that another variant has, too, if that is named."""
    values, others = (
        {seed: value for (own, method, data, seed), value in found.cells.items() if (own, method, data) == key}
        for key in ((regime, name, dataset), (regime, like, dataset))
    )
    shared = [value for seed, value in values.items() if like is None or seed in others]
    return sum(shared) / len(shared) if shared else None


def _shown(value: float | None) -> str:
    return NONE if value is None else f"{value:.3f}"


def _change(before: float | None, after: float | None) -> str:
    return NONE if before is None or after is None else f"{after:.3f} ({points(after - before)})"
