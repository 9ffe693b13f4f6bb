"""The paper's experiment on the embedded encoder: eight tasks and more, five methods, few training rows and many.

    python -m maskmatch_lab.benchmarks.experiment --data FOLDER [--larger FOLDER] [--only PART …]

Learning rate and number of epochs are tuned first, on dev rows, with the same budget for every method. Then the parts
of the experiment run, each a comparison of its own. Every finished cell is saved, so a command that was stopped
resumes. Tables are written whenever a part has finished another dataset with all its seeds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch import MaskMatchError
from maskmatch.config.methods import ANY_TEXT_METHODS
from maskmatch.model.encoder import DEFAULT_MODEL, EMBEDDED_MODEL
from maskmatch_lab.benchmarks.common import parser, write_results
from maskmatch_lab.comparison import Splits, Tuning, compare, tune
from maskmatch_lab.paths import RESULTS

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from maskmatch_lab.comparison import Comparison

FOLDER = RESULTS / "experiment"
TEST_ROWS = 1000
TASKS = {
    "banking77": "intent",
    "clinc150": "intent",
    "trec50": "question",
    "agnews": "topic",
    "sst5": "sentiment",
    "rte": "nli",
    "mrpc": "paraphrase",
    "wic_trainonly": "word-in-context",
    "semeval2010_re": "relation",
    "crossner_typing": "entity-typing",
    "semeval16_stance": "stance",
}
SEEN_BY_THE_ADAPTER = ("clinc150",)
"""Here every method starts from the bare encoder, because the default's adapter was trained on their train rows."""

ELSEWHERE = ("cells", "tuning", "methods")
"""Left out of the file of all parts: it is in the files of the parts, or is written only once."""

TUNED_ON = ("trec50", "banking77")
TUNED_IN = ("5 shots", "10%")

LEARNING_RATES = (2e-4, 5e-4)
EPOCH_FACTORS = (0.5, 1.0)


@dataclass(frozen=True)
class Part:
    """A part of the experiment."""

    name: str
    datasets: tuple[str, ...]
    regime: str
    seeds: int
    model: str | None = DEFAULT_MODEL
    """The encoder of all methods; None for the larger one that the command line names."""

    @property
    def folder(self) -> Path:
        """The folder of its cells."""
        return FOLDER / self.name


def _unseen(*names: str) -> tuple[str, ...]:
    return tuple(name for name in names if name not in SEEN_BY_THE_ADAPTER)


MANY_LABELS = ("banking77", "clinc150", "trec50", "semeval2010_re")
PARTS = (
    Part("5-shots", _unseen(*TASKS), "5 shots", seeds=3),
    Part("5-shots-bare", SEEN_BY_THE_ADAPTER, "5 shots", seeds=3, model=EMBEDDED_MODEL),
    Part("10-percent", _unseen(*MANY_LABELS), "10%", seeds=3),
    Part("10-percent-bare", SEEN_BY_THE_ADAPTER, "10%", seeds=3, model=EMBEDDED_MODEL),
    Part("full", ("trec50", "banking77"), "full", seeds=1),
    Part("5-shots-larger", ("trec50", "banking77"), "5 shots", seeds=1, model=None),
)


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--larger", type=Path, help="folder of a larger encoder, such as all-mpnet-base-v2")
    arguments.add_argument(
        "--only", nargs="+", choices=["tuning", *(part.name for part in PARTS)], help="the parts to run"
    )
    options = arguments.parse_args()
    if options.data is None:
        raise MaskMatchError("Give the folder of the datasets with --data or MASKMATCH_DATA.")
    tuning = tuned(options)
    if options.only == ["tuning"]:
        return
    wanted = [part for part in PARTS if options.only is None or part.name in options.only]
    rounds = [(count, part) for part in wanted for count in range(1, len(part.datasets) + 1)]
    # All parts get their first dataset, then their second one and so on; the long parts with one seed come last.
    for count, part in sorted(rounds, key=lambda round_: (round_[1].seeds == 1, round_[0])):
        model = part.model or options.larger
        if model is not None:
            run(part, model, part.datasets[:count], tuning, options)
            write(tuning)


def tuned(options: Namespace) -> Tuning:
    """The setting of each method, tuned on dev rows unless that is finished."""
    tuning = tune(
        [_load(options, name) for name in TUNED_ON],
        list(ANY_TEXT_METHODS),
        TUNED_IN,
        seeds=1,
        learning_rates=LEARNING_RATES,
        epoch_factors=EPOCH_FACTORS,
        model=DEFAULT_MODEL,
        folder=FOLDER / "tuning",
        dev_rows=TEST_ROWS,
        log=_log,
    )
    tuning.save(FOLDER / "settings.json")
    print(tuning, flush=True)
    return tuning


def run(part: Part, model: str | Path, datasets: Sequence[str], tuning: Tuning, options: Namespace) -> Comparison:
    """Run the unfinished cells of a part on some of its datasets, with all its seeds."""
    comparison = compare(
        [_load(options, name) for name in datasets],
        list(ANY_TEXT_METHODS),
        [part.regime],
        seeds=part.seeds,
        model=model,
        folder=part.folder,
        settings=tuning,
        test_rows=TEST_ROWS,
        log=_log,
        command=f"python -m maskmatch_lab.benchmarks.experiment --only {part.name}",
    )
    print(comparison, flush=True)
    return comparison


def write(tuning: Tuning) -> None:
    """Write the tables and tests of all finished parts into one file."""
    parts: dict[str, Any] = {}
    for part in PARTS:
        file = part.folder / "results.json"
        if file.is_file():
            data = json.loads(file.read_text(encoding="utf-8"))
            parts[part.name] = {name: value for name, value in data.items() if name not in ELSEWHERE}
    write_results("experiment", {"tuning": tuning.to_json(), "parts": parts})


def _load(options: Namespace, name: str) -> Splits:
    return Splits.from_folder(options.data, name, TASKS[name])


def _log(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
