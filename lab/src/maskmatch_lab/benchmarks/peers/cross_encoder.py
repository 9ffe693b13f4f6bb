"""The cross-encoder of sentence-transformers: it encodes every pair of a text and a label name.

Its encoder is the same as that of the others; its head is untrained, so its predictions mean nothing and only its cost
counts.
"""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

from sentence_transformers import CrossEncoder
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from maskmatch_lab.benchmarks.material import make_names
from maskmatch_lab.benchmarks.peers.table import PEERS
from maskmatch_lab.benchmarks.peers.worker import serve

if TYPE_CHECKING:
    from collections.abc import Sequence


class Prediction:
    """The scores of all pairs of texts and labels."""

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
        self._names = list(names) or make_names(words, labels)
        with tempfile.TemporaryDirectory() as folder:  # the encoder's own folder is a sentence-transformers model
            AutoModelForSequenceClassification.from_pretrained(model, num_labels=1).save_pretrained(folder)
            AutoTokenizer.from_pretrained(model).save_pretrained(folder)
            self._model = CrossEncoder(folder, device="cpu")

    def run(self) -> None:
        self._model.predict([(text, name) for text in self._texts for name in self._names], show_progress_bar=False)


if __name__ == "__main__":
    serve({"prediction": Prediction}, PEERS["cross-encoder"].packages)
