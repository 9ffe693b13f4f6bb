"""scikit-learn: tf-idf of words and word pairs, with a logistic regression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from maskmatch_lab.benchmarks.material import make_names
from maskmatch_lab.benchmarks.peers.table import PEERS
from maskmatch_lab.benchmarks.peers.worker import serve

if TYPE_CHECKING:
    from collections.abc import Sequence


def _classifier() -> Any:
    return make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LogisticRegression(C=10.0, max_iter=1000)
    )


class Training:
    """A complete training run."""

    def __init__(self, *, texts: Sequence[str], labels: Sequence[str], **_: Any) -> None:
        self._texts, self._labels = list(texts), list(labels)
        self._classifier = _classifier()

    def run(self) -> None:
        self._classifier.fit(self._texts, self._labels)

    def predict(self, texts: Sequence[str]) -> list[str]:
        return list(self._classifier.predict(list(texts)))


class Prediction:
    """Prediction with a model that was fitted to the label names, one row per label."""

    def __init__(
        self,
        *,
        texts: Sequence[str],
        names: Sequence[str] = (),
        words: Sequence[str] = (),
        labels: int = 0,
        **_: Any,
    ) -> None:
        self._texts = list(texts)
        rows = list(names) or make_names(words, labels)
        self._classifier = _classifier().fit(rows, rows)

    def run(self) -> None:
        self._classifier.predict(self._texts)


if __name__ == "__main__":
    serve({"training": Training, "prediction": Prediction}, PEERS["tf-idf"].packages)
