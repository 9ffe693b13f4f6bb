"""The labels of a classifier, in order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

from maskmatch.errors import MaskMatchError, did_you_mean
from maskmatch.labels.label import Label, is_hashable, label_to_json

LabelsLike = Any
"""A LabelSet, a list of ids or Labels, or a mapping:
{name: description}, {name: [phrases]}, {name: {"words": [words at the mask], …}}, {id: name}, {id: Label}.
"""

LABEL_FIELDS = ("name", "description", "phrases", "words", "examples")
"""The keys of a label that is given as a mapping."""


@dataclass(frozen=True)
class LabelSet(Sequence[Hashable]):
    """The labels of a classifier, in order: a sequence of ids. ``names`` and ``label`` give the words.

    Blank labels, duplicate ids and duplicate names raise an error.

    >>> labels = LabelSet.of({"card_lost": "it cannot be found", "refund": ["money back", "reimbursement"]})
    >>> list(labels), labels.names
    (['card_lost', 'refund'], ('card lost', 'refund'))
    >>> labels.label("refund").texts
    ('refund', 'money back', 'reimbursement')
    """

    labels: tuple[Label, ...]
    _positions: dict[Hashable, int] = field(init=False, repr=False, compare=False)
    _id_by_spelling: dict[str, Hashable] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.labels:
            raise MaskMatchError("There are no labels; give at least one name.")
        positions: dict[Hashable, int] = {}
        by_name: dict[str, Label] = {}
        by_word: dict[str, Label] = {}
        for position, label in enumerate(self.labels):
            if label.id in positions:
                raise MaskMatchError(f"The label {label.id!r} appears twice; give every label once.")
            positions[label.id] = position
            other = by_name.setdefault(label.name.casefold(), label)
            if other is not label:
                raise MaskMatchError(
                    f"The labels {other.id!r} and {label.id!r} share the name {label.name!r}; give them different "
                    "names."
                )
            for word in label.words:
                other = by_word.setdefault(word.casefold(), label)
                if other is not label:
                    raise MaskMatchError(
                        f"The labels {other.id!r} and {label.id!r} share the word {word!r}; a word stands for one "
                        "label."
                    )
        object.__setattr__(self, "_positions", positions)
        object.__setattr__(self, "_id_by_spelling", {str(id_): id_ for id_ in positions})

    @classmethod
    def of(cls, labels: LabelsLike) -> LabelSet:
        """Make a label set from any of the forms in :data:`LabelsLike`."""
        if isinstance(labels, LabelSet):
            return labels
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            raise MaskMatchError(f"Labels are a list of names or a mapping from name to description, not {labels!r}.")
        if isinstance(labels, Mapping):
            return cls(tuple(_label_from_item(id_, value) for id_, value in labels.items()))
        return cls(tuple(label if isinstance(label, Label) else Label(label) for label in labels))

    @property
    def digest(self) -> str:
        """The SHA-256 of the labels with all their words, in hex: it changes with any of them."""
        data = [label_to_json(label) for label in self.labels]
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()

    @property
    def names(self) -> tuple[str, ...]:
        """The readable names, in order."""
        return tuple(label.name for label in self.labels)

    @property
    def names_by_id(self) -> dict[Hashable, str]:
        """The readable name of each id."""
        return {label.id: label.name for label in self.labels}

    def label(self, id: Hashable) -> Label:  # noqa: A002 - it is the field's own name
        """Return the label with this id."""
        return self.labels[self.position(id)]

    def position(self, id: Hashable) -> int:  # noqa: A002
        """Return the column of a label in ``predict_proba``."""
        try:
            return self._positions[id]
        except (KeyError, TypeError):
            shown = ", ".join(repr(known) for known in list(self._positions)[:5])
            more = ", …" if len(self) > 5 else ""
            raise MaskMatchError(
                f"There is no label {id!r}; the labels are {shown}{more}.{did_you_mean(id, self)}"
            ) from None

    def resolve(self, id: Hashable) -> Hashable:  # noqa: A002
        """Return the id of this set that has the same spelling: files often write the label 3 as the text "3".

        An unknown id is returned unchanged.

        >>> LabelSet.of([3, 5]).resolve("3"), LabelSet.of(["3", "5"]).resolve(3), LabelSet.of([3, 5]).resolve("7")
        (3, '3', '7')
        """
        return id if id in self else self._id_by_spelling.get(str(id), id)

    def added(self, labels: LabelsLike) -> LabelSet:
        """Return a set with more labels at the end."""
        new = LabelSet.of(labels)
        for id_ in new:
            self._check_free(id_)
        return LabelSet((*self.labels, *new.labels))

    def _check_free(self, id_: Hashable) -> None:
        """Raise if there is a label with this id."""
        if id_ in self:
            raise MaskMatchError(f"There is already a label {id_!r}; choose another name, or remove that label first.")

    def with_own_ids(self, others: LabelSet) -> LabelSet:
        """Other labels, with the ids of this set where both are written alike: ids in a file of labels are strings."""
        own = {str(id_): id_ for id_ in self}
        return LabelSet(
            tuple(
                label if label.id in self else replace(label, id=own.get(str(label.id), label.id))
                for label in others.labels
            )
        )

    def renamed(self, old: Hashable, new: Hashable) -> LabelSet:
        """Return a set in which one label has another name. Its position, description, phrases and examples stay.

        A label whose id is its name also gets a new id. A label with another id, such as a number, keeps the id, and
        only its name changes.
        """
        position = self.position(old)
        label = self.labels[position]
        if isinstance(new, Label):
            changed = new
        elif isinstance(new, str) and not label.id_is_name:
            changed = replace(label, name=Label(new).name)
        else:
            changed = replace(label, id=new, name="")
        if changed.id != label.id:
            self._check_free(changed.id)
        return LabelSet((*self.labels[:position], changed, *self.labels[position + 1 :]))

    def removed(self, ids: Iterable[Hashable] | Hashable) -> LabelSet:
        """Return a set without these labels; a single id is accepted too."""
        several = isinstance(ids, Iterable) and not isinstance(ids, str)
        positions = {self.position(id_) for id_ in (ids if several else (ids,))}  # type: ignore[union-attr]
        if len(positions) == len(self):
            raise MaskMatchError("Every label would be removed; at least one has to stay.")
        return LabelSet(tuple(label for position, label in enumerate(self.labels) if position not in positions))

    @property
    def without_examples(self) -> LabelSet:
        """The same labels without examples; the set itself if there are none."""
        if not any(label.examples for label in self.labels):
            return self
        return LabelSet(tuple(replace(label, examples=()) for label in self.labels))

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._positions)

    def __contains__(self, id: object) -> bool:  # noqa: A002
        return is_hashable(id) and id in self._positions

    @overload
    def __getitem__(self, index: int) -> Hashable: ...
    @overload
    def __getitem__(self, index: slice) -> list[Hashable]: ...
    def __getitem__(self, index: int | slice) -> Hashable | list[Hashable]:
        if isinstance(index, slice):
            return [label.id for label in self.labels[index]]
        return self.labels[index].id


def _label_from_item(id_: Hashable, value: Any) -> Label:
    """Make a label from one item of a mapping. The type of the value decides what it means."""
    if value is None:
        return Label(id_)
    if isinstance(value, Label):
        return replace(value, id=id_)
    if isinstance(value, str):
        # {"refund": "money given back"} describes a name; {3: "refund"} names a number.
        return Label(id_, description=value) if isinstance(id_, str) else Label(id_, name=value)
    if isinstance(value, Mapping):
        unknown = set(value) - set(LABEL_FIELDS)
        if unknown:
            raise MaskMatchError(
                f"The label {id_!r} has {', '.join(sorted(map(str, unknown)))}; "
                "a label has a name, a description, phrases, words and examples."
            )
        return Label(id_, **value)
    if isinstance(value, Iterable):
        return Label(id_, phrases=tuple(value))
    raise MaskMatchError(f"The label {id_!r} is described by {value!r}; give a description or a list of phrases.")
