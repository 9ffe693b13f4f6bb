"""GLiClass: it encodes each text together with all label names in one pass. Untrained, so only its cost counts.

Two architectures: that of its small published model (with the encoder of DeBERTa-v3-small), and that of the encoder
that all other peers use. Its maximum length is as long as text and labels need, so that no label is truncated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from gliclass import GLiClassModel, GLiClassModelConfig, ZeroShotClassificationPipeline
from transformers import AutoConfig, AutoTokenizer, DebertaV2Config

from maskmatch_lab.benchmarks.material import make_names
from maskmatch_lab.benchmarks.peers.table import PEERS
from maskmatch_lab.benchmarks.peers.worker import serve

if TYPE_CHECKING:
    from collections.abc import Sequence

MARKS = ("<<LABEL>>", "<<SEP>>", "<<EXAMPLE>>")
LONGEST = 1_000_000
SMALL_ENCODER: dict[str, Any] = {
    "vocab_size": 128_100,
    "hidden_size": 768,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "type_vocab_size": 0,
    "relative_attention": True,
    "position_buckets": 256,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": "p2c|c2p",
    "max_relative_positions": -1,
    "position_biased_input": False,
}
"""The architecture of microsoft/deberta-v3-small, which gliclass-small is built on."""

PAIRS_AT_ONCE = 2**22
"""The largest number of token pairs in a batch: memory grows with the square of the length."""


def _build(model: str, shape: str) -> tuple[Any, Any]:
    """The model and its tokenizer, which is that of the given encoder for both architectures."""
    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.add_special_tokens({"additional_special_tokens": list(MARKS)})
    encoder = AutoConfig.from_pretrained(model) if shape == "same encoder" else DebertaV2Config(**SMALL_ENCODER)
    encoder.vocab_size = max(encoder.vocab_size, len(tokenizer))
    marks: Any = tokenizer.convert_tokens_to_ids(list(MARKS))
    config = GLiClassModelConfig(
        encoder_config=encoder,
        encoder_model=model,
        class_token_index=marks[0],
        text_token_index=marks[1],
        example_token_index=marks[2],
        vocab_size=encoder.vocab_size,
        prompt_first=True,
    )
    return GLiClassModel(config), tokenizer


class _Reader:
    """A pipeline over texts and labels, with batches that fit into memory."""

    def __init__(self, texts: Sequence[str], names: Sequence[str], model: str, shape: str) -> None:
        self.texts, self.names = list(texts), list(names)
        self.model, self.tokenizer = _build(model, shape)
        self.pipeline = ZeroShotClassificationPipeline(
            self.model,
            self.tokenizer,
            max_classes=len(self.names),
            max_length=LONGEST,
            classification_type="single-label",
            device="cpu",
            progress_bar=False,
        )
        tokens = self.tokens(self.texts[:1])["input_ids"].shape[1]
        self.at_once = max(1, min(8, PAIRS_AT_ONCE // tokens**2))

    def tokens(self, texts: Sequence[str]) -> Any:
        marked = "".join(f"{MARKS[0]}{name}" for name in self.names) + MARKS[1]
        return self.tokenizer([marked + text for text in texts], padding="longest", return_tensors="pt")


class Prediction:
    """The top label of each text."""

    def __init__(
        self,
        *,
        texts: Sequence[str],
        model: str,
        names: Sequence[str] = (),
        words: Sequence[str] = (),
        labels: int = 0,
        shape: str = "its own",
        **_: Any,
    ) -> None:
        self._reader = _Reader(texts, list(names) or make_names(words, labels), model, shape)

    def run(self) -> None:
        reader = self._reader
        with torch.inference_mode():
            reader.pipeline(reader.texts, reader.names, batch_size=reader.at_once)


class Step:
    """A training step on a batch of texts, with gradient accumulation if the batch does not fit into memory."""

    def __init__(
        self, texts: Sequence[str], words: Sequence[str], labels: int, model: str, shape: str = "its own", **_: Any
    ) -> None:
        self._reader = _Reader(texts, make_names(words, labels), model, shape)
        self._targets = torch.arange(len(texts)) % labels
        self._reader.model.train()
        self._optimizer = torch.optim.AdamW(self._reader.model.parameters(), lr=1e-5, fused=True)

    def run(self) -> None:
        reader = self._reader
        for start in range(0, len(reader.texts), reader.at_once):
            rows = slice(start, start + reader.at_once)
            tokens = reader.tokens(reader.texts[rows])
            scores = reader.model(**tokens, max_num_classes=len(reader.names)).logits
            loss: Any = torch.nn.functional.cross_entropy(scores, self._targets[rows])
            loss.backward()
        self._optimizer.step()
        self._optimizer.zero_grad()


if __name__ == "__main__":
    serve({"step": Step, "prediction": Prediction}, PEERS["GLiClass"].packages)
