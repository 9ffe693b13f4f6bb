"""LabelBank: the one owner of everything that is known of labels."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.files import Lock, exclusive
from maskmatch.labels.centroids import NO_CENTROIDS, Centroids, split_examples
from maskmatch.labels.label import label_to_json
from maskmatch.labels.label_set import LabelSet
from maskmatch.labels.layout import LabelLayout
from maskmatch.labels.learned import NOTHING, Learned
from maskmatch.labels.reading import READINGS
from maskmatch.labels.vector_cache import VectorCache

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.labels.adaptation import Adaptation
    from maskmatch.labels.calibration import Calibration
    from maskmatch.labels.label import Label, LabelText
    from maskmatch.labels.label_set import LabelsLike
    from maskmatch.prompts import PromptTokenizer

logger = logging.getLogger("maskmatch")

SHARED = ("_labels", "_learned", "background_cache")
"""What a bank and its copy share. None of it changes in place."""

Derived = TypeVar("Derived")
Own = TypeVar("Own", bound="LabelBank")


class LabelBank:
    """The label set, the vectors of label texts, and what texts have taught about labels.

    Labels are edited here and nowhere else. Everything that is derived from labels or weights holds as long as
    ``version`` stays the same: get it through :meth:`derive`, and it is never stale. One thread at a time edits or
    derives; what was derived does not change any more, so predictions need no lock.

    What encodes label texts is in a subclass: a model with torch, or the graph of an export.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self._labels: LabelSet | None = None
        self._learned = NOTHING
        self._cache = VectorCache()
        self.background_cache = VectorCache()  # of names that are no labels, see Pipeline.background
        self._version = 0
        self._weights: Any = None
        self._derived: dict[Any, tuple[int, Any]] = {}

    # -- what a subclass provides ----------------------------------------------------------------------------

    @property
    def config(self) -> MatcherConfig:
        """Task, prompts, method, similarity."""
        raise NotImplementedError

    @property
    def weights_version(self) -> Any:
        """Changes with the weights of what encodes label texts."""
        raise NotImplementedError

    @property
    def tokenizer(self) -> PromptTokenizer:
        """Turns prompts into tokens."""
        raise NotImplementedError

    def reading(self) -> Callable[[Sequence[LabelText]], NDArray[np.float32]]:
        """A function that encodes label texts: → (F, masks, dim). It does not refer to the bank."""
        raise NotImplementedError

    def check_editable(self, otherwise: str) -> None:
        """Raise if labels cannot be changed, because names are not read."""

    def check_renamable(self) -> None:
        """Raise if a label cannot be renamed."""

    def _empty(self: Own) -> Own:
        """A bank without labels, on the same weights."""
        raise NotImplementedError

    def _select(self, places: Sequence[int]) -> None:
        """Keep only the labels at these places in what was learned by row."""

    def _set_count(self, labels: int) -> None:
        """Prepare for this many labels."""

    @property
    def learns_rows(self) -> bool:
        """Whether training learns a vector per label, which is never cached."""
        return False

    # -- what is read ----------------------------------------------------------------------------------------

    def read(self, texts: Sequence[LabelText]) -> NDArray[np.float32]:
        """The vectors that texts have or would have as label texts; they are not cached: (F, masks, dim)."""
        return self.reading()(texts)

    def label_texts(self, label: Label) -> tuple[LabelText, ...]:
        """The label texts from which a label's vectors are computed, one vector each."""
        return READINGS[self.config.method.label_source].texts(label)

    def label_parts(self, label: Label) -> tuple[LabelText, ...]:
        """All that is read for a label: its label texts, and its examples if they can be read."""
        return READINGS[self.config.method.label_source].parts(label)

    # -- what is known ---------------------------------------------------------------------------------------

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
        weights = self.weights_version
        if weights != self._weights:
            self._weights = weights
            self._version += 1
        return self._version

    @exclusive
    def derive(self, make: Callable[[Any], Derived]) -> Derived:
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
        self.check_editable("a label cannot be added")
        self._set(LabelSet.of(labels) if self._labels is None else self._labels.added(labels))

    @exclusive
    def rename(self, old: Hashable, new: Hashable) -> None:
        """Rename a label; its training texts still count."""
        self.check_renamable()
        before = self.known_labels
        after = before.renamed(old, new)
        self._set(after, self._learned.renamed(dict(zip(before, after, strict=True))))

    @exclusive
    def remove(self, ids: Sequence[Hashable]) -> None:
        """Remove labels."""
        before = self.known_labels
        after = before.removed(ids)
        self._select([before.position(id_) for id_ in after])
        self._set(after, self._learned.renamed({id_: id_ for id_ in after}))

    @exclusive
    def edit(
        self, *, add: LabelsLike | None, rename: Mapping[Hashable, Hashable], remove: Sequence[Hashable]
    ) -> dict[Hashable, Hashable]:
        """Remove labels, rename others and add some, in one step; returns the new id of each label that stays.

        If one of the edits is wrong, nothing changes.
        """
        before = self.known_labels
        ids, labels, after = self.edited(before, add=add, rename=rename, remove=remove)
        if remove:
            self._select([before.position(id_) for id_ in ids])
        self._set(after, self._learned.renamed(ids))
        again = {id_: id_ for id_ in remove if id_ in after and id_ not in labels}  # removed and added again
        return ids | again

    def edited(
        self,
        before: LabelSet,
        *,
        add: LabelsLike | None,
        rename: Mapping[Hashable, Hashable],
        remove: Sequence[Hashable],
    ) -> tuple[dict[Hashable, Hashable], LabelSet, LabelSet]:
        """What edits would make of labels; raises if one of them is wrong.

        Returns:
            The new id of each label that stays, the labels that stay, and these with those that are added.
        """
        if isinstance(remove, (str, bytes)):
            raise MaskMatchError(f"remove is {remove!r}; give a list of labels.")
        if rename:
            self.check_renamable()
        if add is not None:
            self.check_editable("a label cannot be added")
        labels = before.removed(list(remove)) if remove else before
        kept = list(labels)
        places = {old: labels.position(old) for old in rename}
        if any(new in labels for new in rename.values()):  # names change places
            for number, place in enumerate(places.values()):
                labels = labels.renamed(labels[place], f"(renamed {number})")
        for old, place in places.items():
            labels = labels.renamed(labels[place], rename[old])
        ids = dict(zip(kept, labels, strict=True))
        return ids, labels, labels if add is None else labels.added(add)

    @exclusive
    def take(self: Own, other: Own, version: int) -> bool:
        """Take the labels of a copy that was edited, with all that was derived from it, in one step.

        Args:
            other: The copy.
            version: The version of this bank when it was copied.

        Returns:
            Whether it was taken; not if this bank has changed since.
        """
        if self.version != version:
            return False
        derived, theirs = vars(other)["_derived"], other.version
        vars(self).update({name: vars(other)[name] for name in SHARED}, _cache=other.cache_copy())
        self._version += 1
        self._derived = {make: (self._version, made) for make, (known, made) in derived.items() if known == theirs}
        return True

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
    def learn(self, /, **parts: Any) -> None:
        """Take what texts have taught: parts of :class:`Learned`. It holds only for these weights."""
        self._learned = replace(self._learned, **parts)
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
    def copy(self: Own) -> Own:
        """A bank that can be edited by itself; it shares the weights."""
        bank = self._empty()
        vars(bank).update({name: vars(self)[name] for name in SHARED}, _cache=self.cache_copy())
        return bank

    def cache_copy(self) -> VectorCache:
        """A cache with the same vectors: a look-up in one leaves the other as it is."""
        return self._cache.copy()

    def with_labels(self: Own, labels: LabelSet) -> Own:
        """A bank with other labels, on the same weights."""
        bank = self.copy()
        bank.replace(labels)
        return bank

    def _set(self, labels: LabelSet, learned: Learned | None = None) -> None:
        """The one place where labels change."""
        self._labels = labels
        self._learned = self._learned if learned is None else learned
        self._set_count(len(labels))
        self._version += 1

    # -- vectors ---------------------------------------------------------------------------------------------

    @property
    def layout(self) -> LabelLayout:
        """Which label texts belong to which label."""
        return LabelLayout.of([self.label_texts(label) for label in self.known_labels.labels])

    def vectors(self) -> NDArray[np.float32]:
        """The vectors of all label texts, shifted by centroids: (F, masks, dim)."""
        return self.derive(LabelBank._shifted_vectors)

    def _shifted_vectors(self) -> NDArray[np.float32]:
        labels, flat, centroids = self.known_labels, self.part_vectors(), self._learned.centroids
        if len(flat) > self.layout.size:
            flat, examples = split_examples(flat, labels)
            centroids = centroids.merged(examples)
        if len(centroids):
            flat = centroids.shift(flat, [label.id for label in labels.labels for _ in self.label_texts(label)])
        return flat

    def part_vectors(self) -> NDArray[np.float32]:
        """The vectors of all that is read for labels, examples included, not shifted: (F, masks, dim)."""
        return self.text_vectors(self._parts)

    def text_vectors(self, texts: Sequence[LabelText]) -> NDArray[np.float32]:
        """The vectors of label texts, from the cache where it has them: (F, masks, dim)."""
        if self.learns_rows:
            return self.read(texts)
        return self._cache.look_up(texts, (self.weights_version, self.cache_key(texts)), self.read)

    @exclusive
    def fill_vectors(self, vectors: NDArray[np.float32], key: str | None = None) -> None:
        """Fill the cache with vectors of all that is read for labels, (F, masks, dim), that were computed elsewhere.

        Args:
            vectors: The vectors.
            key: The cache key that they were computed for; None: that of the config.
        """
        self._cache.fill(self._parts, vectors, (self.weights_version, self._own_key() if key is None else key))
        self._version += 1

    def cache_key(self, texts: Sequence[LabelText]) -> str:
        """What the vectors of label texts depend on, besides the weights and the words."""
        config, method = self.config, self.config.method
        prompts = "/".join(map(str, config.label_prompts))
        debiased = "/debiased" if config.debias in ("labels", "both") else ""
        key = f"{method.label_source}/{method.label_readout}/{config.max_length}/{prompts}{debiased}"
        return key if all(isinstance(text, str) for text in texts) else f"{key}/{config.prompt}"

    @property
    def has_vectors(self) -> bool:
        """Whether the cache has a vector of everything that is read for the labels."""
        return self._cache.has(self._parts, (self.weights_version, self._own_key()))

    @property
    def _parts(self) -> list[LabelText]:
        """All that is read for the labels."""
        return [part for label in self.known_labels.labels for part in self.label_parts(label)]

    # -- saving ----------------------------------------------------------------------------------------------

    @exclusive
    def state_dict(self, *, kept_texts: bool = True) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
        """The arrays of the labels, and what says whether they still belong to labels and config.

        Args:
            kept_texts: Whether training texts that were kept are among them.
        """
        if self.config.labels_in_context:  # labels have no vectors of their own
            return {}, {}
        learned = self._learned if kept_texts else replace(self._learned, texts=None)
        arrays = {"vectors": self.part_vectors(), **learned.to_arrays(self.known_labels)}
        return arrays, {"key": self._own_key(), "texts": self._text_digest(), "ids": self._id_digest()}

    @exclusive
    def load_state_dict(
        self, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str], *, same_weights: bool
    ) -> bool:
        """Load what :meth:`state_dict` gave.

        Args:
            arrays: The arrays by name.
            metadata: What says whether they belong to labels and config.
            same_weights: Whether the encoder's weights are those that the vectors were computed with.

        Returns:
            Whether all of it still belonged to the labels and weights.
        """
        labels, vectors = self.known_labels, arrays.get("vectors")
        if vectors is None or vectors.ndim != 3:
            raise MaskMatchError("it does not hold the vectors of the labels.")
        self._load_vectors(vectors.astype(np.float32), metadata, same_weights=same_weights)
        learned = Learned.from_arrays(arrays, labels)
        if not same_weights:
            return learned.is_empty
        same_ids = not learned.is_by_label or metadata.get("ids") == self._id_digest()
        self._learned = learned if same_ids else replace(learned, centroids=NO_CENTROIDS, texts=None)
        self._version += 1
        return same_ids

    def _load_vectors(self, vectors: NDArray[np.float32], metadata: Mapping[str, str], *, same_weights: bool) -> None:
        """Take saved vectors, if they still belong to the label texts and the weights."""
        if same_weights and metadata.get("texts") == self._text_digest():
            self.fill_vectors(vectors, metadata.get("key", ""))

    def _own_key(self) -> str:
        return self.cache_key(self._parts)

    def _text_digest(self) -> str:
        """A digest of what is read for the labels."""
        return _digest([self.label_parts(label) for label in self.known_labels.labels])

    def _id_digest(self) -> str:
        """A digest of the ids of the labels."""
        return _digest([label_to_json(label)["id"] for label in self.known_labels.labels])


def _digest(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, default=vars).encode()).hexdigest()
