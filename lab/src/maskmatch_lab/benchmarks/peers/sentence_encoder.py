"""sentence-transformers: embeddings of texts, compared with the embeddings of label names if there are labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer, util

from maskmatch_lab.benchmarks.material import make_names, mix_vectors
from maskmatch_lab.benchmarks.peers.table import PEERS
from maskmatch_lab.benchmarks.peers.worker import serve

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_AT_ONCE = 10_000
"""With more labels than this, the library's own search in chunks is used."""

READ_NAMES = 1000
"""The number of names to encode; synthetic vectors of more labels are mixtures of theirs."""


class Prediction:
    """The embeddings of texts; with labels, the label of the largest cosine for each.

    Args:
        texts: The texts.
        model: The folder of the encoder.
        names: The labels; or give words and a number. Without labels, texts are only embedded.
        words: The words that names are made of.
        labels: The number of names to make.
        mixed: Use synthetic label vectors, mixed from those of a thousand names.
    """

    def __init__(
        self,
        *,
        texts: Sequence[str],
        model: str,
        names: Sequence[str] = (),
        words: Sequence[str] = (),
        labels: int = 0,
        mixed: bool = False,
        **_: Any,
    ) -> None:
        self._texts = list(texts)
        self._encoder = SentenceTransformer(model, device="cpu")
        self._names = list(names) or (make_names(words, labels) if labels else [])
        self._vectors = None
        if self._names:
            read = self._names[:READ_NAMES] if mixed else self._names
            vectors = self._embed(read)
            if len(read) < len(self._names):
                vectors = mix_vectors(vectors, len(self._names))
            self._vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def _embed(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        return np.asarray(self._encoder.encode(list(texts), normalize_embeddings=True, show_progress_bar=False))

    def run(self) -> None:
        self.predict(self._texts)

    def predict(self, texts: Sequence[str]) -> list[str]:
        embedded = self._embed(texts)
        if self._vectors is None:
            return []
        if len(self._names) > MOST_AT_ONCE:
            queries, labels = torch.from_numpy(embedded), torch.from_numpy(self._vectors)
            best = util.semantic_search(queries, labels, top_k=1, score_function=util.dot_score)
            return [self._names[int(found[0]["corpus_id"])] for found in best]
        return [self._names[place] for place in (embedded @ self._vectors.T).argmax(axis=1)]


if __name__ == "__main__":
    serve({"prediction": Prediction}, PEERS["sentence-transformers"].packages)
