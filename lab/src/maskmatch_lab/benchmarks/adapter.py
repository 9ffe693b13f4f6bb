"""Train the adapter of the default encoder that is part of the package.

It is trained on the project's corpus of label sets, and on the train splits of datasets whose licence allows it.

    python -m maskmatch_lab.benchmarks.adapter --data FOLDER [-o FOLDER]
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from maskmatch import AlignmentConfig, align
from maskmatch.config.tasks import TASKS
from maskmatch.data import LabelledTexts, load_label_sets
from maskmatch.model.encoder import DEFAULT_ADAPTER, EMBEDDED_NAMES
from maskmatch_lab.benchmarks.common import load_split, parser
from maskmatch_lab.paths import CORPUS

DATASETS = {
    "clinc150": ("intent", "clinc150, train split (CC BY 3.0)"),
    "snips": ("intent", "snips, train split (CC0 1.0)"),
    "goemotions": ("emotion", "GoEmotions, train split, rows with one label (CC BY 4.0; repository Apache-2.0)"),
    "goemotions_multi": ("emotion", "GoEmotions, train split, rows with several labels (as before)"),
    "naics1065": ("topic", "NAICS 2012 index entries, train split (US Census Bureau, public domain)"),
    "fewrel_nyt25": ("relation", "FewRel, 25 relations, train split (MIT)"),
}
TEXTS_PER_LABEL = 40
SEED = 0
RECIPE = AlignmentConfig(
    steps=100, matching_steps=350, texts_a_draw=12, names_a_draw=20, anchor=3.0, learning_rate=1e-3, rank=16, seed=SEED
)


def main() -> None:
    """Align the embedded encoder and save the adapter."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("-o", "--output", type=Path, default=DEFAULT_ADAPTER, help="where to save the adapter")
    arguments.add_argument("--checkpoints", type=Path, help="folder for checkpoints")
    arguments.add_argument("--resume", action="store_true", help="resume from the last checkpoint")
    options = arguments.parse_args()
    sets = [*load_label_sets(CORPUS), *(_dataset(options.data, name) for name in DATASETS)]
    alignment = align(
        [],
        model=EMBEDDED_NAMES[-1],
        label_sets=sets,
        config=replace(RECIPE, checkpoints=options.checkpoints, resume=options.resume),
        sources=[
            "the corpus of label sets of the maskmatch project (Apache-2.0)",
            *(source for _, source in DATASETS.values()),
        ],
    )
    alignment.save(options.output)
    print(f"{alignment.training.steps} steps in {alignment.training.seconds:.0f} s, saved in {options.output}")


def _dataset(data: Path, name: str) -> LabelledTexts:
    """The train split of a dataset, with at most ``TEXTS_PER_LABEL`` texts per label."""
    task, _ = DATASETS[name]
    rows = load_split(data, name, "train", TASKS[task].fields)
    assert rows.labels is not None
    labelled = LabelledTexts.of_rows(name, task, rows.texts, rows.labels)
    rng = random.Random(SEED)
    few = tuple(tuple(rng.sample(texts, min(len(texts), TEXTS_PER_LABEL))) for texts in labelled.texts)
    return LabelledTexts(labelled.name, labelled.task, labelled.names, few)


if __name__ == "__main__":
    main()
