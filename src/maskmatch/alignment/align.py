"""An alignment from beginning to end: the frozen encoder's vectors, the training of an adapter, its folder."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from torch.nn.functional import normalize

from maskmatch.adapter import CONFIG_FILE, WEIGHTS_FILE, Adapter, attach, detach, is_adapter, matrices_digest
from maskmatch.alignment.batches import SINGLE_FIELD, AlignmentData
from maskmatch.alignment.card import alignment_card
from maskmatch.alignment.config import AlignmentConfig
from maskmatch.encoder import Encoder, adapter_chain, encode_prompts, find_model, move_encoder
from maskmatch.errors import MaskMatchError, TrainingDivergedError
from maskmatch.inputs import take_texts
from maskmatch.labels import LabelSet, readable
from maskmatch.methods import METHODS
from maskmatch.model import MatchingModel
from maskmatch.prompts import Prompt, PromptTokenizer, field_texts
from maskmatch.saving import check_target, is_saved
from maskmatch.tasks import find_task
from maskmatch.training import train
from maskmatch.whole_folder import recover, whole_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from maskmatch.data.label_sets import LabelledTexts
    from maskmatch.labels import LabelsLike
    from maskmatch.training_config import TrainingSummary

MAX_LENGTH = 128
"""Alignment reads at most this many tokens of a text: what it teaches does not hang on length."""
LONGEST_PHRASE = 4
CARD_FILE = "README.md"
FILES = (CONFIG_FILE, WEIGHTS_FILE, CARD_FILE)
"""What an aligned encoder's folder holds."""


@dataclass(frozen=True)
class Alignment:
    """What an alignment has learned.

    Attributes:
        adapter: The change of the encoder.
        encoder: The encoder with that change in its weights.
        config: How it was made.
        training: What the training run did.
        sources: What it learned from, in words.
    """

    adapter: Adapter
    encoder: Encoder
    config: AlignmentConfig
    training: TrainingSummary
    sources: tuple[str, ...] = ()

    def card(self) -> str:
        """The model card."""
        return alignment_card(self.adapter, self.config, self.training, self.sources)

    def save(self, folder: str | Path) -> None:
        """Write the adapter with its model card, whole or not at all; ``from_pretrained`` takes the folder."""
        folder = Path(folder).expanduser()
        check_output(folder, self.adapter.base)
        try:
            with whole_folder(folder, ours=FILES) as scratch:
                self.adapter.save(scratch)
                (scratch / CARD_FILE).write_text(self.card(), encoding="utf-8")
        except SafetensorError as error:  # a full disk, for instance
            raise MaskMatchError(f"{folder} could not be written: {error}.") from error


def check_output(folder: Path, model: str | Path | None) -> None:
    """Refuse a folder that cannot be made, or holds anything but an adapter that the model does not rest on."""
    check_target(folder, ours=lambda folder: is_adapter(folder) and not is_saved(folder), kind="adapter")
    if is_adapter(folder) and folder.resolve() in adapter_chain(*find_model(model))[0]:
        raise MaskMatchError(f"{folder} is what the encoder itself rests on; choose another folder.")


def align(
    texts: Any,
    labels: LabelsLike | None = None,
    *,
    model: str | Path | None = None,
    label_sets: Sequence[LabelledTexts] = (),
    config: AlignmentConfig | None = None,
    sources: Sequence[str] = (),
    **options: Any,
) -> Alignment:
    """Teach an encoder to answer through its mask.

    Args:
        texts: Texts without labels, of the kind that will be classified; blank ones are passed over. There may be none
            if there are label sets.
        labels: Label names of the kind that they will be classified by. None: phrases cut from the texts.
        model: The encoder; None for the default, which is aligned in general already.
        label_sets: Label sets with texts to learn from as well what label names mean.
        config: How to align; single settings can be given as keywords instead.
        sources: What it learns from, in words, for the model card.
        **options: Settings of :class:`AlignmentConfig`.
    """
    config = (config or AlignmentConfig()).changed(options)
    sets = [_checked(each) for each in label_sets]
    texts, names = _material(_plain(texts), labels, sets, config)
    encoder, base = _load(model)
    tokenizer = PromptTokenizer(encoder.tokenizer, min(MAX_LENGTH, encoder.max_length(None)))
    torch.manual_seed(config.seed)
    method = METHODS["mask-matching"]
    data = AlignmentData(
        tokenizer,
        texts=texts,
        names=names,
        sets=sets,
        vectors=_frozen_vectors(encoder, tokenizer, [*texts, *names, *_single_texts(sets), *_all_names(sets)]),
        encoder_digest=matrices_digest(encoder.model),
        config=config,
        pad_id=encoder.pad_id,
    )
    attach(encoder.model, config.rank)
    matching = MatchingModel(encoder.model, method, method.similarity, labels=1, multi_label=False)
    try:
        summary = train(matching, data, config.training())
    finally:
        adapter = detach(encoder.model, base).halved()  # what is used is what a folder would hold
    if not adapter.is_finite:
        raise TrainingDivergedError(
            f"Training diverged: the adapter is too large for 16 bits; choose a learning rate below "
            f"{config.learning_rate:g}."
        )
    adapter.merge_into(encoder.model)
    return Alignment(adapter, encoder, config, summary, tuple(sources))


def _load(model: str | Path | None) -> tuple[Encoder, str]:
    """The encoder, and by which name it is found again from anywhere."""
    if model is not None:
        recover(Path(model).expanduser())
    folder, source = find_model(model)
    if is_saved(folder):
        raise MaskMatchError(f"{source} is a trained classifier; align an encoder, and train it afterwards.")
    is_folder = model is not None and folder == Path(model).expanduser()
    encoder = Encoder.load(folder, source)
    move_encoder(encoder, None)
    return encoder, str(folder.resolve() if is_folder else model or source)


def _plain(texts: Any) -> list[str]:
    """Texts as strings, from whatever form they come in."""
    if isinstance(texts, (list, tuple)) and not texts:
        return []
    rows = enumerate(take_texts(texts, SINGLE_FIELD))
    return [field_texts(text, SINGLE_FIELD, row)["text"].text for row, text in rows]


def _material(
    texts: Sequence[str], labels: LabelsLike | None, sets: Sequence[LabelledTexts], config: AlignmentConfig
) -> tuple[list[str], list[str]]:
    """The texts and the names to learn from, without repetitions; no more texts than there are draws for."""
    rng = random.Random(config.seed)
    unique = list(dict.fromkeys(text for text in [*texts, *_single_texts(sets)] if text.strip()))
    if len(unique) < 2:
        raise MaskMatchError("There are fewer than two different texts to learn from.")
    names = [] if labels is None else [text for label in LabelSet.of(labels).labels for text in label.texts]
    names = list(dict.fromkeys([*names, *_all_names(sets)])) or _phrases(unique, rng)
    most = config.steps * config.draws * config.texts_a_draw
    return rng.sample(unique, min(len(unique), most)), names


def _phrases(texts: Sequence[str], rng: random.Random) -> list[str]:
    """Phrases of a few words cut from texts, where there are no label names to learn from."""
    phrases = []
    for text in rng.sample(texts, min(len(texts), 2000)):
        words = text.split()
        count = rng.randint(1, LONGEST_PHRASE)
        start = rng.randrange(max(1, len(words) - count + 1))
        phrase = " ".join(words[start : start + count])
        phrases.append(phrase.strip(" .,;:!?\"'()") or phrase)
    return list(dict.fromkeys(phrases))


def _frozen_vectors(encoder: Encoder, tokenizer: PromptTokenizer, texts: Sequence[str]) -> dict[str, torch.Tensor]:
    """The encoder's own mean-pooled vectors of bare texts and names, of length 1."""
    texts = list(dict.fromkeys(texts))
    method = METHODS["semantic-matching"]
    model = MatchingModel(encoder.model, method, method.similarity, labels=1, multi_label=False).eval()
    prompts = tokenizer(Prompt("{text}", masked=False), [field_texts(text, SINGLE_FIELD) for text in texts])
    read: Callable[[Any], torch.Tensor] = model.input_vectors
    device = encoder.model.device
    vectors = encode_prompts(prompts, read, pad_id=encoder.pad_id, device=device, doing="reading texts")
    return dict(zip(texts, normalize(vectors.mean(dim=1), dim=-1).cpu(), strict=True))


def _checked(labelled: LabelledTexts) -> LabelledTexts:
    """A label set with readable names, if its texts are those of its task."""
    try:
        fields = find_task(labelled.task).fields
        for row, text in enumerate(text for texts in labelled.texts for text in texts):
            field_texts(text, fields, row)
    except MaskMatchError as error:
        raise MaskMatchError(f"The label set {labelled.name} cannot be used: {error}") from error
    return replace(labelled, names=tuple(tuple(map(readable, names)) for names in labelled.names))


def _single_texts(sets: Sequence[LabelledTexts]) -> list[str]:
    return [text for each in sets for texts in each.texts for text in texts if isinstance(text, str)]


def _all_names(sets: Sequence[LabelledTexts]) -> list[str]:
    return [name for each in sets for names in each.names for name in names]
