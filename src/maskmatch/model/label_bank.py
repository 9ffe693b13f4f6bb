"""LabelBank: the one owner of everything that is known of labels."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from maskmatch.errors import MaskMatchError, TrainingDivergedError
from maskmatch.files import Lock, exclusive
from maskmatch.labels import LabelSet, label_to_json
from maskmatch.labels.layout import LabelLayout
from maskmatch.model.centroids import NO_CENTROIDS, Centroids, split_examples
from maskmatch.model.label_reader import LabelReader, read_origins
from maskmatch.model.learned import NOTHING, Learned
from maskmatch.model.matching import MatchingModel, reads_alike
from maskmatch.model.vector_cache import VectorCache
from maskmatch.prompts import PromptTokenizer, TokenizedPrompts, tokenize_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import torch
    from numpy.typing import NDArray

    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.labels import LabelsLike, LabelText
    from maskmatch.labels.adaptation import Adaptation
    from maskmatch.labels.calibration import Calibration
    from maskmatch.model.encoder import Encoder
    from maskmatch.model.mlm_head import Head

logger = logging.getLogger("maskmatch")

Derived = TypeVar("Derived")


class LabelBank:
    """The label set, the vectors of label texts, the centroids of training texts, and learned rows.

    Labels are edited here and nowhere else. Everything that is derived from labels or weights holds as long as
    ``version`` stays the same: get it through :meth:`derive`, and it is never stale. One thread at a time edits or
    derives; what was derived does not change any more, so predictions need no lock.

    Args:
        model: The model.
        tokenizer: Turns prompts into tokens.
        labels: The labels; None before they are known.
    """

    def __init__(self, model: MatchingModel, tokenizer: PromptTokenizer, labels: LabelSet | None = None) -> None:
        self.lock = Lock()
        self._model, self._tokenizer = model, tokenizer
        self._labels: LabelSet | None = None
        self._learned = NOTHING
        self._cache = VectorCache()
        self.background_cache = VectorCache()  # of names that are no labels, see Pipeline.background
        self._version = 0
        self._weights: tuple[int, int, int] | None = None
        self._derived: dict[Any, tuple[int, Any]] = {}
        if labels is not None:
            self._set(labels)

    @classmethod
    def of(
        cls, encoder: Encoder, config: MatcherConfig, head: Head | None = None, labels: LabelSet | None = None
    ) -> LabelBank:
        """The bank of a new classifier."""
        bank = cls(MatchingModel(encoder, config, head), PromptTokenizer(encoder.tokenizer, config.max_length), labels)
        read_origins(bank._model, bank._tokenizer)
        return bank

    # -- what is known ---------------------------------------------------------------------------------------

    @property
    def model(self) -> MatchingModel:
        """The model; TrainingDivergedError if its training left no usable weights."""
        if self._model.diverged:
            raise TrainingDivergedError("The training of this classifier diverged, so it cannot be used; load it anew.")
        return self._model

    @property
    def config(self) -> MatcherConfig:
        """Task, prompts, method, similarity."""
        return self._model.settings

    @property
    def tokenizer(self) -> PromptTokenizer:
        """Turns prompts into tokens."""
        return self._tokenizer

    @property
    def reader(self) -> LabelReader:
        """Tokenizes and encodes label texts."""
        return LabelReader(self.model, self._tokenizer)

    @property
    def labels(self) -> LabelSet | None:
        """The labels; None before they are known."""
        return self._labels

    @property
    def known_labels(self) -> LabelSet:
        """The labels; MaskMatchError before they are known."""
        if self._labels is None:
            raise MaskMatchError("There are no labels yet: give them to from_pretrained, or call fit first.")
        return self._labels

    @property
    def notes(self) -> list[str]:
        """What a reader of metrics should know, in sentences."""
        head = self._model.head_config
        return [] if head is None else [head.note]

    @property
    def learned(self) -> Learned:
        """What texts have taught about labels: centroids, adaptation, calibration and others."""
        return self._learned

    @property
    def centroids(self) -> Centroids:
        """The centroids of the labels' training texts."""
        return self._learned.centroids

    @property
    def adaptation(self) -> Adaptation | None:
        """What unlabelled texts say about labels; None if there were none."""
        return self._learned.adaptation

    @property
    def calibration(self) -> Calibration | None:
        """How scores become probabilities; None: by the softmax alone."""
        return self._learned.calibration

    @property
    def added(self) -> NDArray[np.bool_]:
        """(K,), which labels were added after training: others have centroids of training texts, they have none."""
        known = set(self.centroids.ids)
        return np.array([bool(known) and label.id not in known for label in self.known_labels.labels], dtype=np.bool_)

    @property
    def version(self) -> int:
        """Changes with the labels, with what is known of them, and with the weights."""
        weights = self._model.weights_version
        if weights != self._weights:
            self._weights = weights
            self._version += 1
        return self._version

    @exclusive
    def derive(self, make: Callable[[LabelBank], Derived]) -> Derived:
        """What a function makes of the bank, computed again only if the version has changed."""
        version = self.version
        made = self._derived.get(make)
        if made is None or made[0] != version:
            made = version, make(self)
            self._derived[make] = made
        result: Derived = made[1]
        return result

    # -- editing ---------------------------------------------------------------------------------------------

    @exclusive
    def add(self, labels: LabelsLike) -> None:
        """Add labels; they need no training."""
        self.check_editable("a label cannot be added without training; mask-matching can")
        self._set(LabelSet.of(labels) if self._labels is None else self._labels.added(labels))

    @exclusive
    def rename(self, old: Hashable, new: Hashable) -> None:
        """Rename a label; its training texts still count."""
        before = self.known_labels
        after = before.renamed(old, new)
        self._set(after, self._learned.renamed(dict(zip(before, after, strict=True))))

    @exclusive
    def remove(self, ids: Sequence[Hashable]) -> None:
        """Remove labels."""
        before = self.known_labels
        after = before.removed(ids)
        self._model.labels.select([before.position(id_) for id_ in after])
        self._set(after, self._learned.renamed({id_: id_ for id_ in after}))

    def edit(
        self, *, add: LabelsLike | None, rename: Mapping[Hashable, Hashable], remove: Sequence[Hashable]
    ) -> dict[Hashable, Hashable]:
        """Remove labels, rename others at once, then add some; returns the new id of each label that stays."""
        if isinstance(remove, (str, bytes)):
            raise MaskMatchError(f"remove is {remove!r}; give a list of labels.")
        if remove:
            self.remove(list(remove))
        before = list(self.known_labels)
        places = {old: self.known_labels.position(old) for old in rename}
        if any(new in self.known_labels for new in rename.values()):  # names change places
            for number, place in enumerate(places.values()):
                self.rename(self.known_labels[place], f"(renamed {number})")
        for old, place in places.items():
            self.rename(self.known_labels[place], rename[old])
        ids = dict(zip(before, self.known_labels, strict=True))
        if add is not None:
            known = set(self.known_labels)
            self.add(add)
            ids |= {
                id_: id_ for id_ in remove if id_ in self.known_labels and id_ not in known
            }  # removed and added again
        return ids

    @exclusive
    def replace(self, labels: LabelsLike) -> None:
        """Take other labels; the training texts of a label still count if it has the same id and name."""
        self.check_editable("its labels cannot be replaced")
        labels = LabelSet.of(labels)
        self._set(labels, self._learned_of(labels))

    @exclusive
    def start_with(self, labels: LabelSet) -> None:
        """Take the first labels of a classifier; a method that learns them must then be trained."""
        self._set(labels)

    @exclusive
    def start_training(self, labels: LabelSet, *, trained: bool) -> None:
        """Take the labels to train with. Centroids of other weights no longer hold.

        Args:
            labels: The labels.
            trained: Whether the model was trained before; otherwise what is random in it is drawn again.
        """
        if not trained:
            self._model = self._model.fresh()
            read_origins(self._model, self._tokenizer)
        self._set(labels, NOTHING)

    @exclusive
    def learn(self, /, **parts: Any) -> None:
        """Take what texts have taught: parts of :class:`Learned`. It holds only for these weights."""
        self._learned = replace(self._learned, **parts).to(self._model.device)
        self._version += 1

    def forget(self) -> None:
        """Drop all that texts have taught, because the weights have changed."""
        self.learn(**vars(NOTHING))

    def centroids_of(self, labels: LabelSet) -> Centroids:
        """The centroids of those labels that are the bank's own, by id and name."""
        return self._learned_of(labels).centroids

    def _learned_of(self, labels: LabelSet) -> Learned:
        """What was learned of those labels that are the bank's own, by id and name."""
        own = self._labels
        if own is None:
            return NOTHING
        same = [id_ for id_ in labels if id_ in own and labels.label(id_).name == own.label(id_).name]
        return self._learned.renamed({id_: id_ for id_ in same})

    @exclusive
    def copy(self) -> LabelBank:
        """A bank that can be edited by itself; it shares the model."""
        bank = LabelBank(self._model, self._tokenizer)
        bank._labels, bank._learned, bank._cache = self._labels, self._learned, self._cache
        bank.background_cache = self.background_cache
        return bank

    @exclusive
    def mark_trained(self) -> None:
        """The offset of the logits is learned from now on."""
        self._model.similarity.untrained = False
        self._version += 1

    @exclusive
    def mark_diverged(self) -> None:
        """Training left weights that are NaN or inf: the classifier raises from now on."""
        self._model.diverged = True
        self.forget()

    @exclusive
    def with_config(self, config: MatcherConfig) -> LabelBank:
        """A bank with another config on the same encoder; it keeps what still holds."""
        model = self._model.with_config(config)
        tokenizer = self._tokenizer
        if config.max_length != tokenizer.max_length:
            tokenizer = PromptTokenizer(tokenizer.vocabulary, config.max_length)
        bank = LabelBank(model, tokenizer, self._labels)
        if reads_alike(config, self.config):
            bank._cache = self._cache  # its key says whether the vectors still hold
        else:
            read_origins(model, tokenizer)
        bank._learned = self._learned_with(config)
        return bank

    def _learned_with(self, config: MatcherConfig) -> Learned:
        """What still holds with another config; warns about what is dropped."""
        before, learned = self.config, self._learned
        same_states = reads_alike(config, before)
        same_vectors = same_states and config.similarity.masks == before.similarity.masks
        same_scores = same_vectors and config.similarity == before.similarity and config.task == before.task
        holds = {
            "centroids": not len(learned.centroids) or (same_states and config.uses_centroids),
            "adaptation": learned.adaptation is None or (same_vectors and config.adapts),
            "scope": learned.scope is None or same_vectors,
            "texts": learned.texts is None or same_vectors,
            "calibration": learned.calibration is None or (same_scores and config.multi_label == before.multi_label),
        }
        meaning = {"centroids": "centroids of training texts", "adaptation": "what was learned from unlabelled texts"}
        for name, what in meaning.items():
            if not holds[name]:
                logger.warning("With these settings %s cannot be used; it is dropped.", what)
        dropped = [name for name, still in holds.items() if not still]
        left = replace(learned, **{name: getattr(NOTHING, name) for name in dropped})
        if left.calibration is None or config.threshold == before.threshold:
            return left
        return replace(left, calibration=replace(left.calibration, thresholds={}))  # one threshold for all was given

    def check_editable(self, otherwise: str) -> None:
        """Raise if labels have learned vectors, so that they cannot be changed without training."""
        if self._model.labels.learned:
            raise MaskMatchError(f"The method {self.config.method.name} learns a vector per label, so {otherwise}.")

    def _set(self, labels: LabelSet, learned: Learned | None = None) -> None:
        """The one place where labels change."""
        self._labels = labels
        self._learned = self._learned if learned is None else learned
        self._model.labels.set_count(len(labels))
        self._version += 1

    # -- vectors ---------------------------------------------------------------------------------------------

    @property
    def layout(self) -> LabelLayout:
        """Which label texts belong to which label."""
        source = self._model.labels
        return LabelLayout.of([source.texts(label) for label in self.known_labels.labels])

    def vectors(self) -> torch.Tensor:
        """The vectors of all label texts, shifted by centroids: (F, masks, dim)."""
        return self.derive(LabelBank._shifted_vectors)

    def _shifted_vectors(self) -> torch.Tensor:
        labels, flat, centroids = self.known_labels, self.part_vectors(), self._learned.centroids
        if len(flat) > self.layout.size:
            flat, examples = split_examples(flat, labels)
            centroids = centroids.merged(examples)
        if len(centroids):
            source = self._model.labels
            flat = centroids.shift(flat, [label.id for label in labels.labels for _ in source.texts(label)])
        return flat

    def part_vectors(self) -> torch.Tensor:
        """The vectors of all that is read for labels, examples included, not shifted: (F, masks, dim)."""
        source = self.model.labels
        return self.text_vectors([part for label in self.known_labels.labels for part in source.parts(label)])

    def text_vectors(self, texts: Sequence[LabelText]) -> torch.Tensor:
        """The vectors of label texts, from the cache where it has them: (F, masks, dim)."""
        source, reader = self.model.labels, self.reader
        if source.learned:
            return source.read(texts, reader)
        key = self._model.weights_version, self.cache_key(texts)
        return self._cache.look_up(texts, key, lambda missing: source.read(missing, reader))

    @exclusive
    def fill_vectors(self, vectors: torch.Tensor, key: str | None = None) -> None:
        """Fill the cache with vectors of all that is read for labels, (F, masks, dim), that were computed elsewhere.

        Args:
            vectors: The vectors.
            key: The cache key that they were computed for; None: that of the config.
        """
        source = self._model.labels
        parts = [part for label in self.known_labels.labels for part in source.parts(label)]
        key_of_all = self._model.weights_version, self._own_key() if key is None else key
        self._cache.fill(parts, vectors.to(self._model.device), key_of_all)
        self._version += 1

    def read(self, texts: Sequence[LabelText]) -> torch.Tensor:
        """The vectors that texts have or would have as label texts; they are not cached: (F, masks, dim)."""
        return self.model.labels.read(texts, self.reader)

    def cache_key(self, texts: Sequence[LabelText]) -> str:
        """What the vectors of label texts depend on, besides the weights and the words."""
        config, method = self.config, self.config.method
        prompts = "/".join(map(str, config.label_prompts))
        debiased = "/debiased" if config.debias in ("labels", "both") else ""
        key = f"{method.label_source}/{method.label_readout}/{config.max_length}/{prompts}{debiased}"
        return key if all(isinstance(text, str) for text in texts) else f"{key}/{config.prompt}"

    def tokenize(self, texts: Sequence[Any]) -> TokenizedPrompts:
        """Texts in their input prompts; if labels are read with each text, also in the label prompts."""
        labels = self.known_labels if self.config.labels_in_context else None
        return tokenize_texts(self._tokenizer, self.config, texts, labels)

    # -- saving ----------------------------------------------------------------------------------------------

    def learned_state(self) -> dict[str, torch.Tensor]:
        """What the method has learned besides the encoder and label vectors."""
        elsewhere = ("encoder.", "labels.")
        state = self.model.state_dict()
        return {name: tensor for name, tensor in state.items() if not name.startswith(elsewhere)}

    def load_learned_state(self, state: Mapping[str, torch.Tensor], *, untrained: bool | None) -> None:
        """Load what :meth:`learned_state` gave.

        Args:
            state: The tensors by name.
            untrained: Whether the offset of the logits still has its initial value; None: compare with it.
        """
        shapes, expected = (
            {name: part.shape for name, part in parts.items()} for parts in (state, self.learned_state())
        )
        if shapes != expected:
            raise MaskMatchError(f"it does not hold what the method {self.config.method.name} learns.")
        self._model.load_state_dict(dict(state), strict=False)
        similarity = self._model.similarity
        if untrained is None:  # folders from before it was a field
            untrained = similarity.offset is None or similarity.offset.item() == similarity.config.row.offset
        similarity.untrained = untrained

    @exclusive
    def state_dict(self) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
        """The tensors of the labels, and what says whether they still belong to labels and config."""
        if self.config.labels_in_context:  # labels have no vectors of their own
            return {}, {}
        tensors = {"vectors": self.part_vectors(), **self._learned.to_tensors(self.known_labels)}
        return tensors, {"key": self._own_key(), "texts": self._text_digest(), "ids": self._id_digest()}

    @exclusive
    def load_state_dict(
        self, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str], *, same_weights: bool
    ) -> bool:
        """Load what :meth:`state_dict` gave.

        Args:
            tensors: The tensors by name.
            metadata: What says whether they belong to labels and config.
            same_weights: Whether the encoder's weights are those that the vectors were computed with.

        Returns:
            Whether all of it still belonged to the labels and weights.
        """
        labels, source, vectors = self.known_labels, self._model.labels, tensors.get("vectors")
        if vectors is None or vectors.dim() != 3 or (source.learned and len(vectors) != len(labels)):
            raise MaskMatchError("it does not hold the vectors of the labels.")
        if source.learned:
            if vectors.shape[2] != self._model.encoder.config.hidden_size:
                raise MaskMatchError("its vectors do not have the encoder's dimension.")
            source.load(vectors)
        elif same_weights and metadata.get("texts") == self._text_digest():
            self.fill_vectors(vectors, metadata.get("key", ""))
        learned = Learned.from_tensors(tensors, labels)
        if not same_weights:
            return learned.is_empty
        same_ids = not learned.is_by_label or metadata.get("ids") == self._id_digest()
        self._learned = learned if same_ids else replace(learned, centroids=NO_CENTROIDS, texts=None)
        self._version += 1
        return same_ids

    def _own_key(self) -> str:
        source = self._model.labels
        return self.cache_key([part for label in self.known_labels.labels for part in source.parts(label)])

    def _text_digest(self) -> str:
        """A digest of what is read for the labels."""
        source = self._model.labels
        return _digest([source.parts(label) for label in self.known_labels.labels])

    def _id_digest(self) -> str:
        """A digest of the ids of the labels."""
        return _digest([label_to_json(label)["id"] for label in self.known_labels.labels])


def _digest(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, default=vars).encode()).hexdigest()
