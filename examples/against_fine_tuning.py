"""Second experiment: Mask Matching against fine-tuning, with few examples.

Fine-tuning learns a vector for each label, from nothing. Mask Matching has one for each label before it begins: the
state at the mask of the label's prompt. So it can answer without any example, and has less to learn from a few.
"""

from maskmatch.comparison import Comparison, Regime, Splits, Variant, compare
from maskmatch.demo import demo_rows


def main(shots: int = 2, seeds: int = 3, epochs: int = 10) -> Comparison:
    """Compare the two on the same rows with the same seeds, and print a table; returns the comparison."""
    train, test = demo_rows("train"), demo_rows("test")  # questions to a bicycle shop, written for this project
    data = Splits.of("bicycle shop", "intent", (train.texts, train.labels or []), (test.texts, test.labels or []))

    # A seed draws the training rows, so many shots a label, and decides on the training; both methods get the same.
    # Fine-tuning has more to learn, so it trains three times as long.
    passes = {"mask-matching": epochs, "fine-tuning": 3 * epochs}
    methods = [Variant(name, name, training={"epochs": number}) for name, number in passes.items()]
    regimes = [Regime("zero-shot"), Regime("shots", shots)]
    found = compare(data, methods, regimes, seeds=seeds)

    print(f"Accuracy on {len(data.test)} questions of {len(data.labels)} intents, mean ± sd over {seeds} seeds:\n")
    print(f"{'':12}{'mask-matching':>16}{'fine-tuning':>16}")
    told = {(row.regime, row.method): str(row.figures["accuracy"]) for row in found.table}
    for regime in regimes:
        print(f"{regime.name:12}" + "".join(f"{told.get((regime.name, method.name), '-'):>16}" for method in methods))

    # Would other questions show the same? The test questions are drawn again and again, with replacement; 95 % of the
    # draws give a difference in this interval. An interval that holds 0 means that the difference may be chance.
    for row in found.significance:
        print(f"\n{row.reference} less {row.method}, {row.regime}: {row.result.difference:+.3f}")
        print(f"95 % interval over draws of test questions: {row.result.low:+.3f} to {row.result.high:+.3f}\n")
    print(
        "Zero-shot, fine-tuning has no label vectors yet, so it cannot answer. With examples, it trained three times as"
    )
    print("long as mask-matching. Neither was tuned; docs/comparison.md tells how to tune both alike.")
    return found


if __name__ == "__main__":
    main()
