"""SetFit: the encoder is trained on sentence pairs, and a logistic regression is fitted to its embeddings.

Its own ``evaluate`` downloads a metric from the hub, so the parent process evaluates its predictions, like those of all
other peers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datasets import Dataset
from setfit import SetFitModel, Trainer, TrainingArguments

from maskmatch_lab.benchmarks.material import make_names
from maskmatch_lab.benchmarks.peers.table import PEERS
from maskmatch_lab.benchmarks.peers.worker import serve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def _arguments(**options: Any) -> TrainingArguments:
    return TrainingArguments(
        output_dir="setfit", report_to="none", save_strategy="no", show_progress_bar=False, **options
    )


class Training:
    """A complete training run with SetFit's defaults, except for the number of iterations."""

    def __init__(
        self,
        *,
        texts: Sequence[str],
        labels: Sequence[str],
        names: Sequence[str],
        model: str,
        num_iterations: int = 20,
        seed: int = 0,
    ) -> None:
        self._names = list(names)
        rows = Dataset.from_dict({"text": list(texts), "label": [self._names.index(label) for label in labels]})
        self._model = SetFitModel.from_pretrained(model, labels=self._names, device="cpu")
        arguments = _arguments(num_iterations=num_iterations, seed=seed)
        self._trainer = Trainer(model=self._model, args=arguments, train_dataset=rows)

    def run(self) -> Mapping[str, Any]:
        self._trainer.train()
        return {"steps": self._trainer.st_trainer.state.global_step}

    def predict(self, texts: Sequence[str]) -> list[str]:
        return list(map(str, self._model.predict(list(texts), show_progress_bar=False)))


class Step:
    """Some training steps of the encoder, each on a batch of 16 pairs; two texts per label."""

    def __init__(self, *, texts: Sequence[str], labels: int, model: str, steps: int, **_: Any) -> None:
        targets = [place % labels for place in range(max(2 * labels, len(texts)))]
        rows = [texts[place % len(texts)] for place in range(len(targets))]
        arguments = _arguments(num_iterations=1, max_steps=steps)
        trainer = Trainer(
            model=SetFitModel.from_pretrained(model, device="cpu"),
            args=arguments,
            train_dataset=Dataset.from_dict({"text": rows, "label": targets}),
        )
        pairs, loss = trainer.get_dataset(rows, targets, args=arguments, max_pairs=16 * steps)[:2]
        self._trainer = trainer.st_trainer
        self._trainer.train_dataset, self._trainer.loss = pairs, loss

    def run(self) -> None:
        self._trainer.train()


class Prediction:
    """Prediction with a head on the untrained encoder; the cost is the same as that of a trained model.

    Args:
        texts: The texts.
        model: The folder of the encoder.
        names: The labels; or give words and a number.
        words: The words that names are made of.
        labels: The number of names to make.
    """

    def __init__(
        self,
        *,
        texts: Sequence[str],
        model: str,
        names: Sequence[str] = (),
        words: Sequence[str] = (),
        labels: int = 0,
        **_: Any,
    ) -> None:
        self._texts = list(texts)
        names = list(names) or make_names(words, labels)
        self._model = SetFitModel.from_pretrained(model, labels=list(names), device="cpu")
        self._model.fit(list(names), list(range(len(names))), num_epochs=1, show_progress_bar=False)

    def run(self) -> None:
        self._model.predict(self._texts, show_progress_bar=False)


if __name__ == "__main__":
    serve({"training": Training, "step": Step, "prediction": Prediction}, PEERS["SetFit"].packages)
