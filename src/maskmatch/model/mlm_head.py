"""The head of a masked language model: from the state at a mask to scores of words.

    state → dense → activation → norm → vector · word vector + word bias = the score of a word at the mask

A word's vector is its row of the encoder's embeddings, as in pretraining, and the bias is one more coordinate of both
vectors, so that a score stays one dot product. Encoders whose checkpoint has such a head bring it along; for the
others a new one is trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from maskmatch.errors import MaskMatchError
from maskmatch.model.encoder import adapter_chain, quiet_transformers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

CLOSE = 1e-3
"""The largest difference between two ways of computing the same scores, relative to the largest score."""


@dataclass(frozen=True)
class HeadConfig:
    """The form of a head. The defaults are those of a new head.

    Attributes:
        pretrained: Whether the head was pretrained with the encoder.
        activation: The activation's name in transformers.
        epsilon: What the norm adds to the variance.
        dense_bias: Whether the dense layer has a bias.
        norm_bias: Whether the norm has a bias.
        word_bias: Whether every word has a bias of its own.
        tied: Whether word vectors are the encoder's embeddings, rather than a table of the head's own.
    """

    pretrained: bool = False
    activation: str = "gelu"
    epsilon: float = 1e-5
    dense_bias: bool = True
    norm_bias: bool = True
    word_bias: bool = False
    tied: bool = True

    @property
    def note(self) -> str:
        """What a reader of metrics should know about the head, in a sentence."""
        if self.pretrained:
            return "The head over the mask is the one that the encoder was pretrained with."
        return (
            "The encoder has no pretrained head for words at a mask, so a new head on its word embeddings is trained."
        )


@dataclass(frozen=True)
class Head:
    """A head before training: its form, and its weights if it was pretrained."""

    config: HeadConfig
    weights: Mapping[str, torch.Tensor]

    @classmethod
    def of_saved(cls, config: HeadConfig, tensors: Mapping[str, torch.Tensor]) -> Head:
        """The head of a saved classifier; a head that was not pretrained is drawn again before training."""
        prefix = "transform."
        own = {name.removeprefix(prefix): part for name, part in tensors.items() if name.startswith(prefix)}
        return cls(config, own if config.pretrained else {})


class Transform(nn.Module):
    """The head: a dense layer and norm for states, and biases or vectors of words.

    Args:
        dimension: The size of a state.
        words: The encoder's word embeddings.
        config: The form of the head.
    """

    def __init__(self, dimension: int, words: nn.Embedding, config: HeadConfig) -> None:
        super().__init__()
        out = words.embedding_dim
        self.config = config
        self.dense = nn.Linear(dimension, out, bias=config.dense_bias)
        self.activation = _activation(config.activation)
        self.norm = nn.LayerNorm(out, eps=config.epsilon, bias=config.norm_bias)
        self.word_bias = nn.Parameter(torch.zeros(words.num_embeddings)) if config.word_bias else None
        self.word_vectors = None if config.tied else nn.Parameter(torch.zeros(words.num_embeddings, out))
        if dimension == out and not config.pretrained:  # near the identity: little data trains the head
            nn.init.eye_(self.dense.weight)
            nn.init.zeros_(self.dense.bias)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """States (n, masks, dim) → vectors (n, masks, out), or (n, masks, out + 1) with a coordinate for the bias."""
        vectors: torch.Tensor = self.norm(self.activation(self.dense(states)))
        if self.word_bias is None:
            return vectors
        return torch.cat([vectors, vectors.new_ones(*vectors.shape[:-1], 1)], dim=-1)

    def take(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Load the weights of a head of this form."""
        try:
            self.load_state_dict(dict(weights))
        except RuntimeError as error:
            raise MaskMatchError("it does not hold the weights of the head over the mask.") from error

    def words(self, ids: torch.Tensor, embeddings: torch.Tensor) -> torch.Tensor:
        """The vectors of words by their token ids; a score is the product with the vector of a state.

        Args:
            ids: (tokens,)
            embeddings: (vocabulary, out), the encoder's

        Returns:
            (tokens, out), or (tokens, out + 1) with their bias.
        """
        vectors = (embeddings if self.word_vectors is None else self.word_vectors)[ids]
        return vectors if self.word_bias is None else torch.cat([vectors, self.word_bias[ids, None]], dim=-1)


def _activation(name: str) -> Any:
    from transformers.activations import ACT2FN

    if name not in ACT2FN:
        raise MaskMatchError(f"transformers has no activation {name!r}, which the head over the mask is said to use.")
    return ACT2FN[name]


def pretrained_head(folder: Path, source: str) -> Head | None:
    """The head in the checkpoint of an encoder; None if it has none, or one of an unknown form.

    It loads the whole checkpoint, so only methods that use the head call it.

    Args:
        folder: The folder of the encoder, or of an adapter over it.
        source: How it is called.
    """
    _, folder, _ = adapter_chain(folder, source)
    with quiet_transformers():
        model, is_whole = _with_head(folder)
        if getattr(model, "legacy", False) and not is_whole:  # DeBERTa has two forms; its config may not say which
            model, is_whole = _with_head(folder, legacy=False)
        if model is None or not is_whole:
            return None
        return next((head for head in _readings(model) if _agrees(head, model)), None)


def _with_head(folder: Path, **options: Any) -> tuple[Any, bool]:
    """The whole model of a checkpoint, or None; and whether the checkpoint has the weights of its head."""
    from transformers import AutoModelForMaskedLM

    try:
        model, loading = AutoModelForMaskedLM.from_pretrained(
            folder,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
            **options,
        )
    except ValueError:  # a family without such a head
        return None, False
    except AttributeError as error:  # the newer form of DeBERTa, before transformers 5.20
        raise MaskMatchError(
            f"This version of transformers cannot load the word head of {folder.name} ({error}); upgrade it with "
            'pip install -U "transformers>=5.20,<6".'
        ) from error
    # Transformers initialises missing weights at random.
    return model.eval(), all(_inside(model, name) for name in loading["missing_keys"])


def _readings(model: Any) -> Iterator[Head]:
    """Candidates for the head of a model: families differ in names, and in where the activation is named."""
    outside = [module for name, module in model.named_modules() if not _inside(model, name)]
    embeddings = model.get_input_embeddings().weight  # (vocabulary, out)
    linear = [module for module in outside if isinstance(module, nn.Linear)]
    decoder = next((module for module in linear if module.weight.shape == embeddings.shape), None)
    dense = next((module for module in linear if module is not decoder), None)
    norm = next((module for module in outside if isinstance(module, nn.LayerNorm)), None)
    if dense is None or norm is None:
        return
    bias = None if decoder is None else decoder.bias  # (vocabulary,)
    if decoder is None:
        parameters = (part for name, part in model.named_parameters() if not _inside(model, name))
        bias = next((part for part in parameters if part.shape == embeddings.shape[:1]), None)
    tied = decoder is None or torch.equal(decoder.weight, embeddings)
    weights = {
        "dense.weight": dense.weight,
        "dense.bias": dense.bias,
        "norm.weight": norm.weight,
        "norm.bias": norm.bias,
        "word_bias": bias,
        "word_vectors": None if tied or decoder is None else decoder.weight,
    }
    present = {name: part.detach().clone() for name, part in weights.items() if part is not None}
    named = (getattr(model.config, name, None) for name in ("classifier_activation", "hidden_act", "activation"))
    for activation in dict.fromkeys([*(name for name in named if isinstance(name, str)), "gelu"]):
        config = HeadConfig(
            pretrained=True,
            activation=activation,
            epsilon=float(norm.eps),
            dense_bias=dense.bias is not None,
            norm_bias=norm.bias is not None,
            word_bias=bias is not None,
            tied=tied,
        )
        yield Head(config, present)


def _inside(model: Any, name: str) -> bool:
    """Whether a module or parameter belongs to the encoder itself."""
    return name.startswith(f"{model.base_model_prefix}.") or name == model.base_model_prefix


@torch.no_grad()
def _agrees(head: Head, model: Any) -> bool:
    """Whether a candidate gives the scores that the model itself gives."""
    embeddings = model.get_input_embeddings()
    some = torch.arange(min(8, embeddings.num_embeddings))  # (tokens,), whichever they are
    batch = {"input_ids": some[None], "attention_mask": torch.ones_like(some)[None]}
    theirs = model(**batch).logits  # (1, tokens, vocabulary)
    states = model.base_model(**batch).last_hidden_state  # (1, tokens, dim)
    transform = Transform(states.shape[-1], embeddings, head.config)
    try:
        transform.take(head.weights)
    except MaskMatchError:  # not of these sizes
        return False
    words = transform.words(torch.arange(embeddings.num_embeddings), embeddings.weight)
    apart = (transform(states) @ words.T - theirs).abs().max()
    return bool(apart <= CLOSE * theirs.abs().max())
