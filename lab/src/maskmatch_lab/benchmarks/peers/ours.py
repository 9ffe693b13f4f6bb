"""maskmatch: training, a step and its arithmetic operations, prediction with torch or an export, the search alone."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any, Literal

import torch

from maskmatch import ExportedMatcher, LabelSet, MaskMatcher, export
from maskmatch.config.methods import DEFAULT_RATE
from maskmatch.prompts import tokenize_texts
from maskmatch.training.data import training_data
from maskmatch_lab.benchmarks.common import usual_epochs
from maskmatch_lab.benchmarks.material import make_names, mix_vectors
from maskmatch_lab.benchmarks.peers.table import OURS, PEERS
from maskmatch_lab.benchmarks.peers.worker import serve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from maskmatch.prediction.search import SearchReport

READ_NAMES = 1000
"""The number of names to encode; synthetic vectors of more labels are mixtures of theirs."""


class Training:
    """A complete training run, for a share of the usual epochs or a number of epochs."""

    def __init__(
        self,
        *,
        texts: Sequence[str],
        labels: Sequence[str],
        names: Sequence[str],
        model: str | None = None,
        task: str = "intent",
        seed: int = 0,
        share: float = 1.0,
        rate: float = 1.0,
        epochs: float | None = None,
        batch_size: int = 32,
        dropout: bool | None = None,
    ) -> None:
        import maskmatch.training.loop  # noqa: F401 - the import of transformers' Trainer should not be timed

        self._texts, self._labels = list(texts), list(labels)
        usual = share * usual_epochs(len(texts), len(names))
        self._options: dict[str, Any] = {
            "epochs": usual if epochs is None else epochs,
            "learning_rate": rate * DEFAULT_RATE,
            "batch_size": batch_size,
            "dropout": dropout,
            "seed": seed,
        }
        self._matcher = MaskMatcher.from_pretrained(model, labels=list(names), task=task, device="cpu")

    def run(self) -> Mapping[str, Any]:
        self._matcher.fit(self._texts, self._labels, **self._options, calibrate=False)
        assert self._matcher.training_ is not None
        return {"steps": self._matcher.training_.steps}

    def predict(self, texts: Sequence[str]) -> list[Any]:
        return list(self._matcher.predict(list(texts)))


class Step:
    """A training step with a given number of labels."""

    def __init__(
        self,
        *,
        texts: Sequence[str],
        words: Sequence[str],
        labels: int,
        model: str | None = None,
        label_encoding: Literal["auto", "full", "sampled"] = "auto",
        mixed: bool = False,
    ) -> None:
        names = make_names(words, labels)
        matcher = _matcher(names, model, mixed)
        assert matcher.labels is not None
        rows = [names[row % labels] for row in range(len(texts))]
        data = training_data(matcher.bank, list(texts), rows, label_encoding=label_encoding)
        self._data, self._rows = data, range(len(texts))
        self._model = matcher.model.train()
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=2e-4, fused=True)

    def run(self) -> Mapping[str, Any] | None:
        self._model(**self._data.batch(self._rows))["loss"].backward()
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad()
        return None


class Operations(Step):
    """The number of arithmetic operations in the matrix products and attentions of a training step."""

    def run(self) -> Mapping[str, Any]:
        from torch.utils.flop_counter import FlopCounterMode

        with FlopCounterMode(display=False, custom_mapping=_cpu_attention()) as counted:
            super().run()
        return {"operations": counted.get_total_flops()}


class Prediction:
    """The top label of each text, with torch or an export.

    Args:
        texts: The texts.
        names: The labels; or give words and a number.
        words: The words that names are made of.
        labels: The number of names to make.
        model: The encoder.
        task: The task preset.
        prompt: The input prompt; None: that of the task.
        runtime: "torch", "onnx" or "int8".
        search: The kind of search.
        mixed: Use synthetic label vectors, mixed from those of a thousand names.
        folder: The folder of an export; None: a new export.
    """

    def __init__(
        self,
        *,
        texts: Sequence[str],
        names: Sequence[str] | None = None,
        words: Sequence[str] = (),
        labels: int = 0,
        model: str | None = None,
        task: str | None = None,
        prompt: str | None = None,
        runtime: str = "torch",
        search: str = "auto",
        mixed: bool = False,
        folder: str | None = None,
    ) -> None:
        self._texts = list(texts)
        if folder is not None and runtime != "torch":
            self._matcher: Any = ExportedMatcher.from_pretrained(folder)
            return
        own = {"search": search, "task": task, "prompt": prompt}
        matcher = _matcher(list(names or make_names(words, labels)), model, mixed, **own)
        self._matcher = matcher
        if runtime != "torch":
            with tempfile.TemporaryDirectory() as scratch:
                export(matcher, scratch, int8=runtime == "int8")
                self._matcher = ExportedMatcher.from_pretrained(scratch)
        _ = self._matcher.search_  # builds an index before the clock starts

    def run(self) -> Mapping[str, Any] | None:
        self._matcher.top_k(self._texts, 1)
        return _index_facts(self._matcher.search_)

    def predict(self, texts: Sequence[str]) -> list[Any]:
        return list(self._matcher.predict(list(texts)))


class Search:
    """The search over labels alone: the top label of encoded texts.

    Args:
        texts: The texts.
        words: The words that names are made of.
        labels: The number of names to make; the vectors of more than a thousand are synthetic.
        search: The kind of search.
    """

    def __init__(self, texts: Sequence[str], words: Sequence[str], labels: int, search: str) -> None:
        matcher = _matcher(make_names(words, labels), None, mixed=True, search=search)
        prediction = matcher.pipeline
        prompts = tokenize_texts(prediction.tokenizer, prediction.config, list(texts), None)
        self._vectors, self._search = prediction.all_vectors(prompts), prediction.search

    def run(self) -> Mapping[str, Any] | None:
        self._search(self._vectors, 1)
        return _index_facts(self._search.report)


class Export:
    """The export of a classifier to a folder."""

    def __init__(self, folder: str, names: Sequence[str], model: str | None = None, int8: bool = False) -> None:
        self._folder, self._int8 = folder, int8
        self._matcher = MaskMatcher.from_pretrained(model, labels=list(names), task="intent", device="cpu")

    def run(self) -> Mapping[str, Any] | None:
        return {"parity": export(self._matcher, self._folder, int8=self._int8).to_dict()}


def _index_facts(search: SearchReport) -> dict[str, Any] | None:
    """The time to build an index, and its recall@1."""
    if search.kind == "exact":
        return None
    return {"index": {"seconds": round(search.seconds, 1), "recall": round(search.recall, 4)}}


def _matcher(names: list[str], model: str | None, mixed: bool, **options: Any) -> MaskMatcher:
    """A classifier with these labels."""
    matcher = MaskMatcher.from_pretrained(model, labels=LabelSet.of(names), device="cpu", **options)
    if not mixed or len(names) <= READ_NAMES:
        return matcher
    few = MaskMatcher.from_pretrained(model, labels=LabelSet.of(names[:READ_NAMES]), device="cpu")
    real = few.bank.vectors().mean(axis=1)  # (READ_NAMES, dim)
    matcher.bank.fill_vectors(mix_vectors(real, len(names))[:, None])
    return matcher


def _cpu_attention() -> dict[Any, Any]:
    """Operation counts of attention on the CPU, which torch's counter lacks."""
    from torch.utils import flop_counter

    counter: Any = flop_counter

    def forward(query: Any, key: Any, value: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
        return int(counter.sdpa_flop_count(query, key, value))

    def backward(gradient: Any, query: Any, key: Any, value: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
        return int(counter.sdpa_backward_flop_count(gradient, query, key, value))

    operations = torch.ops.aten
    return {
        operations._scaled_dot_product_flash_attention_for_cpu: forward,
        operations._scaled_dot_product_flash_attention_for_cpu_backward: backward,
    }


if __name__ == "__main__":
    serve(
        {
            "training": Training,
            "step": Step,
            "operations": Operations,
            "prediction": Prediction,
            "search": Search,
            "export": Export,
        },
        PEERS[OURS].packages,
    )
