"""Baselines beside the methods of the product: what a sceptic would try first, on the same rows and seeds.

They take the encoder as it is (a probe, nearest neighbours), or another library's training (SetFit). They learn from
training rows alone, so they cannot answer zero-shot, and they give one label per text.
"""

from __future__ import annotations

import time
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from maskmatch import MaskMatcher, TrainingConfig
from maskmatch.config.training import TrainingSummary
from maskmatch.errors import MaskMatchError
from maskmatch.evaluation import evaluate_predictions
from maskmatch.model.encoder import EMBEDDED_MODEL, find_model

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from maskmatch.evaluation import EvaluationReport
    from maskmatch_lab.comparison.runner import Plan

FROZEN = "semantic-matching"
"""The method whose vectors of texts the frozen baselines take: the mean over all tokens, without a prompt."""

PENALTY = 10.0
"""The inverse of the probe's penalty, for vectors of length 1. The library's own 1 fits few rows too weakly."""

MOST_NEIGHBOURS = 10


class Baseline(Protocol):
    """A classifier that is not a row of the product's table of methods."""

    def fit(self, texts: Sequence[Any], labels: Sequence[Any]) -> int:
        """Train; returns the number of steps."""

    def predict(self, texts: Sequence[Any]) -> tuple[list[Any], NDArray[np.float64] | None]:
        """The label of each text, and its probability if there is one."""


class Frozen:
    """A scikit-learn classifier on the vectors of an encoder that is not trained.

    Args:
        plan: The cell.
        estimator: Makes the classifier for training rows with these labels.
    """

    def __init__(self, plan: Plan, estimator: Callable[[Sequence[Any]], Any]) -> None:
        options = {**plan.options, "method": FROZEN}
        self._matcher = MaskMatcher.from_pretrained(plan.model, plan.labels, verbose=False, **options)
        self._labels = list(plan.labels)
        self._places = {label: place for place, label in enumerate(self._labels)}
        self._make = estimator
        self._estimator: Any = None

    def fit(self, texts: Sequence[Any], labels: Sequence[Any]) -> int:
        """Encode the texts, and fit the classifier to their vectors."""
        self._estimator = self._make(labels).fit(self._vectors(texts), [self._places[label] for label in labels])
        return 0

    def predict(self, texts: Sequence[Any]) -> tuple[list[Any], NDArray[np.float64]]:
        """The most probable label of each text."""
        probabilities = self._estimator.predict_proba(self._vectors(texts))  # (n, K)
        best = probabilities.argmax(axis=1)
        places = self._estimator.classes_[best]
        return [self._labels[place] for place in places.tolist()], probabilities[np.arange(len(best)), best]

    def _vectors(self, texts: Sequence[Any]) -> NDArray[np.float32]:
        states = self._matcher.text_states(list(texts))
        flat = states.reshape(len(states), -1)
        return np.asarray(flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-12))


def _probe(_: Sequence[Any]) -> Any:
    """Logistic regression, the same for all rows."""
    return LogisticRegression(C=PENALTY, max_iter=1000)


def _neighbours(labels: Sequence[Any]) -> Any:
    """The nearest training texts, weighted by their distance: as many as the median label has rows, but at most ten."""
    rows = int(np.median(list(Counter(labels).values())))
    return KNeighborsClassifier(max(1, min(MOST_NEIGHBOURS, rows)), weights="distance", metric="cosine")


class SetFit:
    """SetFit with its defaults, in an environment of its own; it has the bare encoder, without the adapter."""

    def __init__(self, plan: Plan) -> None:
        self._labels, self._seed = plan.labels, plan.seed
        self._model = str(find_model(plan.model or EMBEDDED_MODEL)[0])

    def fit(self, texts: Sequence[Any], labels: Sequence[Any]) -> int:
        """Train it in its own process."""
        from maskmatch_lab.benchmarks.peers.environments import DEFAULT_FOLDER
        from maskmatch_lab.benchmarks.peers.process import Crew, PeerError

        self._crew = Crew(DEFAULT_FOLDER, DEFAULT_FOLDER / "logs")
        names = self._labels.names_by_id
        settings = {
            "texts": _plain(texts),
            "labels": [names[label] for label in labels],
            "names": list(names.values()),
            "model": self._model,
            "seed": self._seed,
        }
        try:
            self._crew.ask("SetFit", "prepare", name="training", kind="training", settings=settings)
            return int(self._crew.ask("SetFit", "run", name="training")["steps"])
        except PeerError as error:
            self._crew.close()
            raise MaskMatchError(f"SetFit could not be trained: {error}") from error

    def predict(self, texts: Sequence[Any]) -> tuple[list[Any], None]:
        """Its predictions; it ends afterwards."""
        try:
            found = self._crew.ask("SetFit", "predict", name="training", texts=_plain(texts))["labels"]
        finally:
            self._crew.close()
        ids = {name: label for label, name in self._labels.names_by_id.items()}
        return [ids[name] for name in found], None


BASELINES: dict[str, Callable[[Plan], Baseline]] = {
    "probe": partial(Frozen, estimator=_probe),
    "nearest-neighbours": partial(Frozen, estimator=_neighbours),
    "setfit": SetFit,
}


class BaselineClassifier:
    """A baseline, with what the runner needs of a classifier."""

    adaptation_ = None

    def __init__(self, plan: Plan) -> None:
        assert plan.variant.baseline is not None
        if plan.data.multi_label:
            raise MaskMatchError(f"{plan.variant.name} gives one label per text; these rows have several.")
        self._baseline = BASELINES[plan.variant.baseline](plan)
        self._plan = plan
        self.labels = plan.labels
        self.training_: TrainingSummary | None = None
        self.predicted_: list[Any] = []

    @property
    def pipeline(self) -> Baseline:
        """Nothing is encoded before the first prediction."""
        return self._baseline

    def fit(self, texts: Sequence[Any], labels: Sequence[Any]) -> None:
        """Train, and take the time."""
        started = time.perf_counter()
        steps = self._baseline.fit(texts, labels)
        seconds = time.perf_counter() - started
        config = TrainingConfig(seed=self._plan.seed).to_json()
        self.training_ = TrainingSummary(
            len(texts), len(set(labels)), steps, 1.0, round(seconds, 2), 0.0, cut=0, dev=None, config=config
        )

    def evaluate(self, texts: Sequence[Any], labels: Sequence[Any], data: str) -> EvaluationReport:
        """Predict, and compare with the truth."""
        started = time.perf_counter()
        self.predicted_, confidence = self._baseline.predict(texts)
        return evaluate_predictions(
            texts,
            labels,
            self.predicted_,
            labels=list(self.labels),
            confidence=confidence,
            seconds=time.perf_counter() - started,
            model=self._plan.variant.name,
            data=data,
            names=self.labels.names_by_id,
            usual_metric=self._plan.data.task.metric,
        )


def _plain(texts: Sequence[Any]) -> list[str]:
    return [text if isinstance(text, str) else " ".join(map(str, text.values())) for text in texts]
