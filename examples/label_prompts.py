"""Third experiment: "{label} is {mask}." against "{label} means {mask}." and other label prompts.

A label is only a name. The prompt around it decides what the encoder says at the mask. How much does the wording matter
before training, and how much after training on a few texts?
"""

from maskmatch.demo import demo_rows
from maskmatch_lab.comparison import Comparison, Regime, Splits, Variant, compare

PROMPTS = (
    "{label} is {mask}.",  # the default
    "{label} means {mask}.",
    "The label {label} stands for {mask}.",
    "{mask}: {label}",  # the mask first: the encoder reads in both directions
    "{label} {mask}",  # no words at all
)


def main(shots: int = 2, seeds: int = 3, epochs: int = 5) -> Comparison:
    """Compare label prompts without training and with a few texts, and print a table; returns the comparison."""
    train, test = demo_rows("train"), demo_rows("test")  # questions to a bicycle shop, written for this project
    data = Splits.of("bicycle shop", "intent", (train.texts, train.labels or []), (test.texts, test.labels or []))

    # Each variant is mask-matching with another label prompt. The input prompt is the same for all. Each seed draws its
    # own training rows, the same for all prompts.
    variants = [Variant(prompt, matcher={"label_prompt": prompt}, training={"epochs": epochs}) for prompt in PROMPTS]
    regimes = [Regime("zero-shot"), Regime("shots", shots)]
    comparison = compare(data, variants, regimes, seeds=seeds)

    print(f"Accuracy on {len(data.test)} questions of {len(data.labels)} intents, mean ± sd over {seeds} seeds:\n")
    print(f"{'':40}" + "".join(f"{regime.name:>16}" for regime in regimes))
    accuracies = {(row.regime, row.method): str(row.figures["accuracy"]) for row in comparison.table}
    for prompt in PROMPTS:
        print(f"{prompt:40}" + "".join(f"{accuracies[regime.name, prompt]:>16}" for regime in regimes))

    # The first prompt against each other prompt on the same questions. If the 95 % interval over draws of the questions
    # contains 0, the difference may be chance.
    print(f"\n{'the first prompt minus':40}{'':>12}{'difference':>12}{'95 % interval':>20}")
    for row in comparison.significance:
        interval = f"{row.result.low:+.3f} to {row.result.high:+.3f}"
        print(f"{row.method:40}{row.regime:>12}{row.result.difference:+12.3f}{interval:>20}")
    return comparison


if __name__ == "__main__":
    main()
