"""Tiny encoders of every tokenizer family, built on the spot: no network, a few milliseconds each."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from pathlib import Path

library: Any = transformers  # its annotations do not allow all that it accepts

FAMILIES = ("bert", "roberta", "modernbert", "albert", "xlm-roberta", "deberta-v3", "mpnet")

CORPUS = [
    "Where is my refund? I sent the parcel back two weeks ago and it is still pending.",
    "My card was lost at the station yesterday, please block it at once!",
    "It is about the exchange rate; this is a question of money.",
    "The clay model was in a jar wrapped in a newspaper from 1947.",
    "refund card lost exchange rate topic label means is about it",
    "Übermäßig café naïve 東京 emoji 🙂 words are here, too.",
    "[MASK] <mask> [CLS] </s> are only words when a user writes them.",
    " ".join("abcdefghijklmnopqrstuvwxyz0123456789.,!?:;'\"@#*()[]<>/-"),
]
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


@cache
def _wordpiece(special: tuple[str, ...]) -> dict[str, int]:
    """A vocabulary of the corpus' words and characters. Trainers break ties at random; this is always the same."""
    normalizer, splitter = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    words = {word for text in CORPUS for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text))}
    letters = {letter for word in words for letter in word}
    pieces = [*special, *sorted(letters | words), *sorted(f"##{letter}" for letter in letters)]
    return {piece: number for number, piece in enumerate(pieces)}


@cache
def _byte_level(special: tuple[str, ...]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


@cache
def _unigram(special: tuple[str, ...]) -> tuple[tuple[str, float], ...]:
    """SentencePiece-like pieces with scores: whole words before syllables before letters; always the same."""
    words = {word for text in CORPUS for word in [*text.split(), *text.lower().split()]}
    letters = {letter for word in words for letter in word}
    scores = {f"\u2581{word}": -4.0 for word in words if word.isalpha()}
    scores |= {word[-3:]: -7.0 for word in words if word.isalpha() and len(word) > 4}
    scores |= dict.fromkeys(letters, -9.0) | {"\u2581": -5.0}
    return (*((piece, 0.0) for piece in special), *sorted(scores.items()))


def tiny_tokenizer(family: str) -> Any:  # noqa: PLR0911 - one a family
    """A tokenizer of the family, as its own class builds it."""
    if family not in FAMILIES:
        raise MaskMatchError(f"There is no family {family!r}; choose one of {', '.join(FAMILIES)}.")
    if family == "bert":
        special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
        return library.BertTokenizer(vocab=_wordpiece(special))
    if family == "mpnet":
        return library.MPNetTokenizer(vocab=_wordpiece(("<s>", "<pad>", "</s>", "[UNK]", "<mask>")))
    if family == "roberta":
        model = json.loads(_byte_level(("<s>", "<pad>", "</s>", "<unk>", "<mask>")).to_str())["model"]
        merges = [tuple(merge) for merge in model["merges"]]
        mask = library.AddedToken("<mask>", lstrip=True, special=True)
        return library.RobertaTokenizer(vocab=model["vocab"], merges=merges, mask_token=mask)
    if family == "modernbert":
        special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
        state = json.loads(_byte_level(special).to_str())
        state["added_tokens"][4]["lstrip"] = True  # its mask swallows the blank before it
        backend = Tokenizer.from_str(json.dumps(state))
        backend.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
        names = dict(zip(("pad", "unk", "cls", "sep"), special[:4], strict=True))
        return library.PreTrainedTokenizerFast(
            tokenizer_object=backend,
            mask_token=library.AddedToken("[MASK]", lstrip=True, special=True),
            **{f"{name}_token": token for name, token in names.items()},
        )
    if family == "albert":
        special = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
        mask = library.AddedToken("[MASK]", lstrip=True, special=True)
        return library.AlbertTokenizer(vocab=list(_unigram(special)), mask_token=mask)
    if family == "xlm-roberta":
        special = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
        mask = library.AddedToken("<mask>", lstrip=True, special=True)
        return library.XLMRobertaTokenizer(vocab=list(_unigram(special)), mask_token=mask)
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    return library.DebertaV2Tokenizer(vocab=list(_unigram(special)))


def tiny_model(family: str, vocabulary: int, pad: int) -> Any:
    """A randomly initialised encoder of the family; the same weights every time."""
    sizes: dict[str, Any] = {
        **SIZES,
        "vocab_size": vocabulary,
        "pad_token_id": pad,
        "max_position_embeddings": 80,
    }
    classes: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "bert": (library.BertConfig, library.BertModel, {}),
        "mpnet": (library.MPNetConfig, library.MPNetModel, {}),
        "roberta": (library.RobertaConfig, library.RobertaModel, {}),
        "xlm-roberta": (library.XLMRobertaConfig, library.XLMRobertaModel, {}),
        "albert": (library.AlbertConfig, library.AlbertModel, {"embedding_size": 8}),
        "modernbert": (library.ModernBertConfig, library.ModernBertModel, {"cls_token_id": 2}),
        "deberta-v3": (
            library.DebertaV2Config,
            library.DebertaV2Model,
            {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False},
        ),
    }
    config_class, model_class, extra = classes[family]
    torch.manual_seed(0)
    return model_class(config_class(**sizes, **extra))


def write_tiny_mlm(family: str, folder: Path, **changes: Any) -> Path:
    """A tiny masked language model of the family, its head included, with weights that all differ.

    Args:
        family: The family.
        folder: Where to write it.
        **changes: Other settings of its config.
    """
    tokenizer = tiny_tokenizer(family)
    tokenizer.model_max_length = 64
    config = tiny_model(family, len(tokenizer), tokenizer.pad_token_id).config
    config.update(changes)
    torch.manual_seed(1)
    model = library.AutoModelForMaskedLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():  # fresh models have zeros for biases and ones in norms
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_tiny_encoder(family: str, folder: Path) -> Path:
    """A tiny encoder of the family in Hugging Face layout."""
    tokenizer = tiny_tokenizer(family)
    tokenizer.model_max_length = 64
    tiny_model(family, len(tokenizer), tokenizer.pad_token_id).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
