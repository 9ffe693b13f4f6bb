"""Second experiment: Mask Matching against fine-tuning, with few training texts.

Fine-tuning learns a vector per label from scratch. Mask Matching starts with one per label: the state at the mask of
the label prompt. So it can answer without any training text, and has less to learn from a few.
"""

from maskmatch.demo import demo_rows
from maskmatch_lab.comparison import Comparison, Regime, Splits, Variant, compare


def main(shots: int = 2, seeds: int = 3, epochs: int = 10) -> Comparison:
    """Compare the two on the same rows with the same seeds and print a table; returns the comparison."""
    train, test = demo_rows("train"), demo_rows("test")  # questions to a bicycle shop, written for this project
    data = Splits.of("bicycle shop", "intent", (train.texts, train.labels or []), (test.texts, test.labels or []))

    # Each seed draws its own training rows, the same for both methods. Fine-tuning has more to learn, so it trains for
    # three times as many epochs.
    passes = {"mask-matching": epochs, "fine-tuning": 3 * epochs}
    methods = [Variant(name, name, training={"epochs": number}) for name, number in passes.items()]
    regimes = [Regime("zero-shot"), Regime("shots", shots)]
    comparison = compare(data, methods, regimes, seeds=seeds)

    print(f"Accuracy on {len(data.test)} questions of {len(data.labels)} intents, mean ± sd over {seeds} seeds:\n")
    print(f"{'':12}{'mask-matching':>16}{'fine-tuning':>16}")
    accuracies = {(row.regime, row.method): str(row.figures["accuracy"]) for row in comparison.table}
    for regime in regimes:
        cells = (accuracies.get((regime.name, method.name), "-") for method in methods)
        print(f"{regime.name:12}" + "".join(f"{cell:>16}" for cell in cells))

    # Would other questions show the same? The bootstrap draws the test questions again, with replacement. 95 % of the
    # draws give a difference in this interval. If the interval contains 0, the difference may be chance.
    for row in comparison.significance:
        print(f"\n{row.reference} minus {row.method}, {row.regime}: {row.result.difference:+.3f}")
        print(f"95 % interval over draws of test questions: {row.result.low:+.3f} to {row.result.high:+.3f}\n")
    print("Without training, fine-tuning has no label vectors and cannot answer. With training, it trained three times")
    print("as long as mask-matching. Neither was tuned: docs/how-to/compare-methods.md shows how to tune both alike.")
    return comparison


if __name__ == "__main__":
    main()
