"""A bare PyTorch loop: only the encoder, AdamW and a loss. Also the speed of the machine's matrix products.

With a head, it is fine-tuning: the minimal cost of training this encoder on these texts. With names, it is a plain
implementation of mask matching: prompts of texts and label names, the states at their masks, a cosine with a
temperature.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import cross_entropy, normalize
from transformers import AutoModel, AutoTokenizer, get_linear_schedule_with_warmup

from maskmatch_lab.benchmarks.material import make_names
from maskmatch_lab.benchmarks.peers.table import PEERS
from maskmatch_lab.benchmarks.peers.worker import serve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BATCH = 32
MOST_TOKENS = 256
STEPS = {"head": 100, "names": 40}
RATE = 2e-4
TEMPERATURE = 0.05
PREDICT_BATCH = 64


class Encoder:
    """An encoder with a head or with names, in as few lines as possible."""

    def __init__(self, folder: str, names: Sequence[str], way: str) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder)
        self.names = list(names)
        self.head = torch.nn.Linear(self.model.config.hidden_size, len(self.names)) if way == "head" else None

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        """All trained parameters."""
        return [*self.model.parameters(), *(self.head.parameters() if self.head is not None else ())]

    def scores(self, texts: Sequence[str]) -> torch.Tensor:
        """The scores of all labels for each text: (texts, labels)."""
        if self.head is not None:
            return self.head(self.states(texts)[0][:, 0])  # type: ignore[no-any-return]
        inputs = self._at_mask([f"{text} It is about {self.tokenizer.mask_token}." for text in texts])
        labels = self._at_mask([f"{name} is {self.tokenizer.mask_token}." for name in self.names])
        return inputs @ labels.T / TEMPERATURE

    def states(self, texts: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        tokens = self.tokenizer(list(texts), padding=True, truncation=True, max_length=MOST_TOKENS, return_tensors="pt")
        return self.model(**tokens).last_hidden_state, tokens["input_ids"]

    def _at_mask(self, texts: Sequence[str]) -> torch.Tensor:
        states, ids = self.states(texts)
        places = (
            (ids == self.tokenizer.mask_token_id).int().argmax(dim=1)
        )  # a truncated text may have no mask: its first token
        return normalize(states[torch.arange(len(states)), places], dim=-1)


class Step:
    """A training step with a given number of labels."""

    def __init__(
        self, *, texts: Sequence[str], words: Sequence[str], labels: int, model: str, way: str = "names"
    ) -> None:
        torch.manual_seed(0)
        self._texts = list(texts)
        self._encoder = Encoder(model, make_names(words, labels), way)
        self._encoder.model.train()
        self._targets = torch.arange(len(self._texts)) % labels
        self._optimizer = torch.optim.AdamW(self._encoder.parameters, lr=RATE, fused=True)

    def run(self) -> None:
        loss: Any = cross_entropy(self._encoder.scores(self._texts), self._targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._encoder.parameters, 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad()


class Training:
    """A complete training run with the steps and the schedule of maskmatch's defaults for up to ten texts per label."""

    def __init__(
        self,
        *,
        texts: Sequence[str],
        labels: Sequence[str],
        names: Sequence[str],
        model: str,
        way: str = "names",
        seed: int = 0,
    ) -> None:
        torch.manual_seed(seed)
        self._texts, self._seed, self._way = list(texts), seed, way
        self._targets = torch.tensor([list(names).index(label) for label in labels])
        self._encoder = Encoder(model, names, way)

    def run(self) -> Mapping[str, Any]:
        order = random.Random(self._seed)
        rows = list(range(len(self._texts)))
        epochs = max(3, math.ceil(STEPS[self._way] / math.ceil(len(rows) / BATCH)))
        steps = epochs * math.ceil(len(rows) / BATCH)
        optimizer = torch.optim.AdamW(self._encoder.parameters, lr=RATE, fused=True)
        schedule = get_linear_schedule_with_warmup(optimizer, steps // 10, steps)  # type: ignore[no-untyped-call]
        self._encoder.model.train()
        for _ in range(epochs):
            order.shuffle(rows)
            for start in range(0, len(rows), BATCH):
                batch = rows[start : start + BATCH]
                scores = self._encoder.scores([self._texts[row] for row in batch])
                loss: Any = cross_entropy(scores, self._targets[batch])
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self._encoder.parameters, 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
        self._encoder.model.eval()
        return {"steps": steps}

    @torch.inference_mode()
    def predict(self, texts: Sequence[str]) -> list[str]:
        labels: list[str] = []
        for start in range(0, len(texts), PREDICT_BATCH):
            best = self._encoder.scores(texts[start : start + PREDICT_BATCH]).argmax(dim=1).tolist()
            labels += [self._encoder.names[place] for place in best]
        return labels


class Prediction:
    """The encoder alone on texts sorted by length, without prompt or labels."""

    def __init__(self, *, texts: Sequence[str], model: str, **_: Any) -> None:
        self._texts = sorted(texts, key=len)
        self._encoder = Encoder(model, (), "names")
        self._encoder.model.eval()

    @torch.inference_mode()
    def run(self) -> None:
        for start in range(0, len(self._texts), PREDICT_BATCH):
            self._encoder.states(self._texts[start : start + PREDICT_BATCH])


class MatrixProducts:
    """Large matrix products, for the peak performance of the machine in operations per second."""

    def __init__(self, size: int = 2048, times: int = 4) -> None:
        self._factors = torch.randn(size, size), torch.randn(size, size)
        self._out = torch.empty(size, size)
        self._times = times

    def run(self) -> Mapping[str, Any]:
        for _ in range(self._times):
            torch.mm(*self._factors, out=self._out)
        return {"operations": 2 * len(self._out) ** 3 * self._times}


if __name__ == "__main__":
    serve(
        {"training": Training, "step": Step, "prediction": Prediction, "matrix products": MatrixProducts},
        PEERS["bare loop"].packages,
    )
