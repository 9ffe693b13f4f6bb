"""Few-shot accuracy of the library's own defaults: banking77, 5 shots a label, three seeds, the whole test set."""

from __future__ import annotations

from benchmarks.common import label_names, load_split, mean_and_sd, parser, shots, write_results
from maskmatch import MaskMatcher

DATASET = "banking77"
SHOTS = 5
SEEDS = (0, 1, 2)


def main() -> None:
    arguments = parser(__doc__ or "").parse_args()
    train, test = (load_split(arguments.data, DATASET, split) for split in ("train", "test"))
    runs = []
    for seed in SEEDS:
        few = shots(train, SHOTS, seed)
        matcher = MaskMatcher.from_pretrained(labels=label_names(train), task="intent")
        matcher.fit(few.texts, few.labels, seed=seed)
        report = matcher.evaluate(test.texts, test.labels)
        assert matcher.training_ is not None
        runs.append(
            {
                "seed": seed,
                "accuracy": round(report.accuracy, 4),
                "macro_f1": round(report.macro_f1, 4),
                "expected_calibration_error": round(report.expected_calibration_error or 0.0, 4),
                "steps": matcher.training_.steps,
                "training_seconds": matcher.training_.seconds,
            }
        )
        print(runs[-1], flush=True)
        write_results(
            "few_shot",
            {
                "dataset": DATASET,
                "shots": SHOTS,
                "split": "test",
                "rows": len(test),
                "encoder": matcher.encoder.source,
                "training": matcher.training_.config,
                "accuracy": mean_and_sd([float(run["accuracy"]) for run in runs]),
                "runs": runs,
            },
        )


if __name__ == "__main__":
    main()
