"""The short answer at the top of each study's page: two or three sentences, with figures from its results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LEAD_PICTURES = {"masks": 2}
"""Which picture of a study answers its question best, counted from 1; the first unless named here."""


@dataclass(frozen=True)
class Accuracies:
    """Looks up accuracies of a study's cells.

    Attributes:
        cells: Accuracy per training size, variant, dataset and seed.
    """

    cells: Mapping[tuple[str, str, str, int], float]

    @classmethod
    def of(cls, results: Mapping[str, Any]) -> Accuracies:
        """The accuracies of a study's ``results.json``."""
        return cls(
            {
                (cell["regime"], cell["method"], cell["dataset"], cell["seed"]): cell["figures"]["accuracy"]
                for cell in results["cells"]
            }
        )

    def on(self, dataset: str) -> Accuracies:
        """The same on one dataset."""
        return Accuracies({key: value for key, value in self.cells.items() if key[2] == dataset})

    def mean(self, regime: str, variant: str) -> float:
        """Mean over datasets of the mean over seeds."""
        return _mean_over_datasets(self._of(regime, variant))

    def means(self, regime: str) -> dict[str, float]:
        """The mean of every variant that was run on all datasets of a regime."""
        variants = dict.fromkeys(method for own, method, *_ in self.cells if own == regime)
        datasets = {variant: {place[0] for place in self._of(regime, variant)} for variant in variants}
        most = max(map(len, datasets.values()))
        return {variant: self.mean(regime, variant) for variant in variants if len(datasets[variant]) == most}

    def gain(self, regime: str, variant: str, reference: str) -> float:
        """Mean difference of two variants over the datasets and seeds that both were run with, in points."""
        one, other = self._of(regime, variant), self._of(regime, reference)
        seeds = {dataset: [seed for own, seed in other if own == dataset] for dataset, _ in other}
        differences = {
            (dataset, seed): value - other[dataset, seed if (dataset, seed) in other else seeds[dataset][0]]
            for (dataset, seed), value in one.items()
            if dataset in seeds
        }
        return 100 * _mean_over_datasets(differences)

    def _of(self, regime: str, variant: str) -> dict[tuple[str, int], float]:
        found = {key[2:]: value for key, value in self.cells.items() if key[:2] == (regime, variant)}
        if not found:
            raise KeyError(f"no cells of {variant!r}, {regime!r}")
        return found


def _mean_over_datasets(values: Mapping[tuple[str, int], float]) -> float:
    datasets: dict[str, list[float]] = {}
    for (dataset, _), value in values.items():
        datasets.setdefault(dataset, []).append(value)
    means = [sum(each) / len(each) for each in datasets.values()]
    return sum(means) / len(means)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _label_readout(results: Mapping[str, Any], found: Accuracies) -> list[str]:
    masks, means = "text mask, label mask", "text mean, label mean"
    half = "text mean, label mask"
    return [
        f"No. Without training, the mean over all tokens on both sides reaches "
        f"{_percent(found.mean('zero-shot', means))} "
        f"and the mask on both sides {_percent(found.mean('zero-shot', masks))}.",
        f"With 5 texts per label, the mean on the text side with the mask on the label side reaches "
        f"{_percent(found.mean('5 shots', half))} and the mask on both sides {_percent(found.mean('5 shots', masks))}.",
        "The default encoder was pretrained to be read by its mean, so another encoder may give another answer.",
    ]


def _prompts(results: Mapping[str, Any], found: Accuracies) -> list[str]:
    spread = results["findings"]["spread"]
    ranges = {
        name: f"{_percent(spread[name]['low'])} to {_percent(spread[name]['high'])}"
        for name in ("input prompts, zero-shot", "label prompts, zero-shot", "input prompts, 5 shots")
    }
    own, labels, inputs = "the task's prompts", "labels less the empty prompt", "inputs less the empty prompt"
    return [
        f"Without training, the wording matters little: sensible input prompts reach "
        f"{ranges['input prompts, zero-shot']} "
        f"on average, sensible label prompts {ranges['label prompts, zero-shot']}. With 5 texts per label on trec50, "
        f"input prompts reach {ranges['input prompts, 5 shots']}.",
        "A pool of three prompts is not better than the task's own prompt with certainty.",
        f"Without training, subtracting the state of the empty prompt changes accuracy by "
        f"{found.gain('zero-shot', labels, own):+.1f} points for label vectors and by "
        f"{found.gain('zero-shot', inputs, own):+.1f} points for input vectors.",
    ]


def _names(results: Mapping[str, Any], found: Accuracies) -> list[str]:
    gains = {regime: found.gain(regime, "as they are", "numbered") for regime in ("5 shots", "full data")}
    zero = 100 * results["findings"]["worth of names, zero-shot"]["trec50"]
    wrong = found.gain("5 shots", "shuffled", "numbered")
    rank = results["findings"]["rank correlation"]["informativeness with texts"]
    return [
        f"On trec50, names beat numbers by {zero:.1f} points without training, by {gains['5 shots']:.1f} points with 5 "
        f"texts per label and by {gains['full data']:.1f} points with all data.",
        f"Names that stand at the wrong labels are worse than numbers: {wrong:+.1f} points with 5 texts per label.",
        "Unlabelled texts show before training how much names will help: the score *informativeness with texts* and "
        "the "
        f"gain have a rank correlation of {rank['value']:.2f} over {rank['pairs']} label sets.",
    ]


def _expansion(results: Mapping[str, Any], found: Accuracies) -> list[str]:
    names, examples, words = "names", "names and examples", "names and words of the vocabulary"
    return [
        f"Yes, by examples. Texts found in unlabelled data raise zero-shot accuracy from "
        f"{_percent(found.mean('zero-shot', names))} to {_percent(found.mean('zero-shot', examples))} on average.",
        f"Words of the encoder's vocabulary do not help: {found.gain('zero-shot', words, names):+.1f} points.",
        f"After training with 5 texts per label on trec50, such words change accuracy by "
        f"{found.gain('5 shots', words, names):+.1f} points.",
    ]


def _label_count(results: Mapping[str, Any], found: Accuracies) -> list[str]:
    own, near, far = "its own labels", "100,000 with near ones", "100,000 with far ones"
    found = found.on("banking77")
    costs = results["findings"]["costs"]["zero-shot"]
    speeds = [costs[name]["prediction_speed"] for name in (own, near)]
    return [
        "It depends on how similar the labels are. On banking77 without training, going from 77 to 100,000 labels "
        "costs "
        f"{-found.gain('zero-shot', far, own):.1f} points if the added labels are unrelated, and "
        f"{-found.gain('zero-shot', near, own):.1f} points if they resemble the real ones.",
        f"After training with 5 texts per label, similar labels cost {-found.gain('5 shots', near, own):.1f} points "
        "(one seed).",
        f"Prediction goes from {speeds[0]:.0f} to {speeds[1]:.0f} texts per second once all labels are encoded, which "
        f"takes {costs[near]['label_seconds']:.0f} seconds for 100,000 labels.",
    ]


def _masks(results: Mapping[str, Any], found: Accuracies) -> list[str]:
    sentences = []
    for regime, many in (("zero-shot", "2, 4 or 8 masks"), ("5 shots", "4 masks")):
        means = found.means(regime)
        one = means.pop("one mask")
        when = "Without training" if regime == "zero-shot" else "With 5 texts per label"
        sentences.append(
            f"{when}, one mask reaches {_percent(one)} on average, and {many} reach {_percent(min(means.values()))} to "
            f"{_percent(max(means.values()))}."
        )
    better = [name for each in results["findings"]["worth it"].values() for name in each.values() if name]
    return ["No. Use one mask." if not better else "On some datasets.", *sentences]


def _pairs(results: Mapping[str, Any], found: Accuracies) -> list[str]:
    regime, apart = "100 shots", "sides read apart"
    design = results["findings"]["designs"][regime][apart]
    return [
        "Read each side of the pair in its own prompt, and let the model learn from the difference of the two vectors. "
        "This is the method `pair-matching`.",
        f"With 100 pairs per label it reaches {_percent(found.mean(regime, apart))} on average. One prompt for both "
        "sides "
        f"reaches {_percent(found.mean(regime, 'plain prompt'))}, fine-tuning "
        f"{_percent(found.mean(regime, 'fine-tuning'))}.",
        f"It is at or above fine-tuning on {len(design['at or above fine-tuning'])} of {design['datasets']} datasets.",
    ]


LEADS: dict[str, Callable[[Mapping[str, Any], Accuracies], list[str]]] = {
    "label-readout": _label_readout,
    "prompts": _prompts,
    "names": _names,
    "expansion": _expansion,
    "label-count": _label_count,
    "masks": _masks,
    "pairs": _pairs,
}


def lead(results: Mapping[str, Any]) -> list[str]:
    """The short answer of a study; for a study without one, the first sentences of its conclusion."""
    write = LEADS.get(results["study"])
    if write is None:
        return [str(sentence) for sentence in results.get("answer", ())[:3]]
    return write(results, Accuracies.of(results))
