"""Labels are words: their names, what they mean, and the ids that the user knows them by."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from enum import Enum
from typing import Any, overload

from maskmatch.errors import MaskMatchError

PREFIXES = {
    "per": "person",
    "org": "organization",
    "loc": "location",
    "gpe": "place",
    "misc": "miscellaneous",
}
"""Type prefixes of relation and entity names (``per:city_of_birth``), spelled out, if whole."""


@dataclass(frozen=True)
class ExampleText:
    """A text that stands for a label by being one of its texts: it is read as a text, not as a name."""

    text: str


LabelText = str | ExampleText
"""What is read for a label: words in the label prompt, or an example in the input prompt."""

HALF_CHARACTER = re.compile("[\ud800-\udfff]")
"""What is left of a character that was cut in two; no tokenizer reads it."""


def readable(name: str) -> str:
    """Make words of a machine name; a name that already holds a blank is left as it is.

    >>> readable("card_payment_fee")
    'card payment fee'
    >>> readable("per:city_of_birth"), readable("org:founded_by")
    ('person city of birth', 'organization founded by')
    >>> readable("PlayMusic"), readable("HTTPServerError"), readable("comp.sys.mac.hardware")
    ('play music', 'HTTP server error', 'comp sys mac hardware')
    >>> readable("property"), readable("iPhone"), readable("e-mail"), readable("v2.0")
    ('property', 'iPhone', 'e-mail', 'v2.0')
    """
    name = " ".join(name.split())
    if " " in name or not name:
        return name
    prefix, colon, rest = name.partition(":")
    if colon and rest and prefix.lower() in PREFIXES:
        name = f"{PREFIXES[prefix.lower()]} {rest}"
    pieces = re.split(r"[_:/\s]+|(?<=[^\W\d])\.(?=[^\W\d])", name)
    words = [word for piece in pieces if piece for word in _split_camel_case(piece)]
    if len(words) > 1 and name.isupper():  # CARD_LOST is a constant's name, not a row of acronyms
        words = [word.lower() for word in words]
    return " ".join(words) or name


def _split_camel_case(word: str) -> list[str]:
    """``PlayMusic`` → play, music; acronyms stay whole, and ``iPhone`` is one word."""
    if re.match(r"[a-z][A-Z]", word) or not re.search(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}", word):
        return [word]
    parts = re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[^A-Z]+|[A-Z]+", word)
    return [part if len(part) > 1 and part.isupper() else part.lower() for part in parts]


@dataclass(frozen=True)
class Label:
    """A label: the id that the user knows it by, and the words that stand for it.

    Args:
        id: What ``predict`` gives back: usually the name itself; a string, number, boolean or tuple of these.
        name: The words. Left out, they are made of the id: ``card_payment_fee`` reads "card payment fee".
        description: What the label means, in words; it is read together with the name.
        phrases: Other names for the same label; each is read as a name of its own, beside the first.
        words: What the label says at a mask, for ``prompt-tuning``: "great", "good" for a label named positive. Left
            out, its name and phrases are these words. No other method reads them.
        examples: Texts that have this label. They are read like texts to classify, and move the label's vector
            towards theirs. Training does without them: its own texts take their place.
    """

    id: Hashable
    name: str = ""
    description: str = ""
    phrases: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        id_ = _plain_id(self.id)
        if _is_missing(id_):
            raise MaskMatchError("A label is missing (None or NaN); every label needs a name.")
        if not _is_hashable(id_):
            raise MaskMatchError(f"The label {id_!r} cannot be an id, because it is not hashable.")
        if not _is_plain(id_):
            raise MaskMatchError(
                f"The label {id_!r} is of type {type(id_).__name__}, which cannot be saved; give strings, numbers, "
                "booleans or tuples of these, such as the value of an enum's member."
            )
        phrases, words, examples = (tuple(_each(part)) for part in (self.phrases, self.words, self.examples))
        for part in (self.name, self.description, *phrases, *words, *examples):
            if not isinstance(part, str):
                raise MaskMatchError(
                    f"The label {id_!r} has {part!r} where words belong; name, description, phrases, words and "
                    "examples are texts."
                )
        name = " ".join(self.name.split()) or _words_of(id_)
        if not name or (isinstance(id_, str) and not id_.strip()):
            raise MaskMatchError(f"The label {id_!r} is blank; every label needs a name.")
        phrases, words, examples = _spaced(phrases), _spaced(words), tuple(dict.fromkeys(examples))
        for kind, parts in (("phrase", phrases), ("word", words), ("example", [text.strip() for text in examples])):
            if not all(parts):
                raise MaskMatchError(f"The label {id_!r} has a blank {kind}.")
        if HALF_CHARACTER.search(f"{name}{self.description}{''.join((*phrases, *words, *examples))}"):
            raise MaskMatchError(f"The label {id_!r} holds half of a character (a lone surrogate).")
        object.__setattr__(self, "id", id_)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "description", " ".join(self.description.split()))
        object.__setattr__(self, "phrases", tuple(phrase for phrase in phrases if phrase != name))
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "examples", examples)

    def __repr__(self) -> str:
        # Examples are left out where there are none: finished work knows labels by how they are shown.
        shown = [each.name for each in fields(self) if each.name != "examples" or self.examples]
        return f"Label({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    @property
    def is_its_name(self) -> bool:
        """Whether the label is known by its name, rather than by a number or a code that stands for it."""
        return isinstance(self.id, str) and self.name == readable(self.id)

    @property
    def texts(self) -> tuple[str, ...]:
        """What the label prompt is filled with for this label: its name (with its description), then each phrase."""
        first = f"{self.name}: {self.description}" if self.description else self.name
        return (first, *self.phrases)

    @property
    def parts(self) -> tuple[LabelText, ...]:
        """All that the encoder reads for this label: its texts, then its examples."""
        return (*self.texts, *map(ExampleText, self.examples))

    @property
    def verbalizer(self) -> tuple[str, ...]:
        """The words that stand for this label at a mask: those given, or its name and each phrase."""
        return self.words or (self.name, *self.phrases)


def _spaced(parts: Iterable[str]) -> tuple[str, ...]:
    """The distinct ones of some texts, with single blanks."""
    return tuple(dict.fromkeys(" ".join(part.split()) for part in parts))


def _plain_id(id_: Any) -> Any:
    """An id as a plain Python value: numbers of numpy and torch become Python's, inside a tuple too."""
    if type(id_) is tuple:
        return tuple(_plain_id(part) for part in id_)
    is_scalar = type(id_).__module__ in ("numpy", "torch") and getattr(id_, "ndim", None) == 0
    return id_.item() if is_scalar else id_


def _is_missing(id_: object) -> bool:
    """Whether there is no id: None, NaN, or what pandas writes for them."""
    if id_ is None or type(id_).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(id_, (float, Decimal)) and math.isnan(id_)


def _is_hashable(id_: object) -> bool:
    try:
        hash(id_)  # a tuple is hashable by its type, but not if it holds a list
    except TypeError:
        return False
    return True


def _is_plain(id_: object) -> bool:
    """Whether an id can be saved as JSON and come back the same."""
    return all(map(_is_plain, id_)) if isinstance(id_, tuple) else isinstance(id_, (str, bool, int, float))


def _each(value: Any) -> Iterable[Any]:
    """The members of a list or another collection; a single word or number is its own only member."""
    return value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


def _words_of(id_: Hashable) -> str:
    """The words that an id reads as, where no name is given."""
    if isinstance(id_, Enum):  # an IntEnum is a number too
        return readable(str(id_.name))
    if isinstance(id_, tuple):
        return " ".join(_words_of(part) for part in id_)
    return readable(str(id_))


LabelsLike = Any
"""A LabelSet, a list of ids or Labels, or a mapping:
{name: description}, {name: [phrases]}, {name: {"words": [words at the mask], …}}, {id: name}, {id: Label}.
"""


@dataclass(frozen=True)
class LabelSet(Sequence[Hashable]):
    """The labels of a classifier, in order: a sequence of ids; ``names`` and ``label`` give the words.

    Blank labels, duplicates, and two labels that read the same are refused.

    >>> labels = LabelSet.of({"card_lost": "it cannot be found", "refund": ["money back", "reimbursement"]})
    >>> list(labels), labels.names
    (['card_lost', 'refund'], ('card lost', 'refund'))
    >>> labels.label("refund").texts
    ('refund', 'money back', 'reimbursement')
    """

    labels: tuple[Label, ...]
    _positions: dict[Hashable, int] = field(init=False, repr=False, compare=False)
    _spelled: dict[str, Hashable] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.labels:
            raise MaskMatchError("There are no labels; give at least one name.")
        positions: dict[Hashable, int] = {}
        by_name: dict[str, Label] = {}
        by_word: dict[str, Label] = {}
        for position, label in enumerate(self.labels):
            if label.id in positions:
                raise MaskMatchError(f"The label {label.id!r} is there twice; every label may be named once.")
            positions[label.id] = position
            twin = by_name.setdefault(label.name.casefold(), label)
            if twin is not label:
                raise MaskMatchError(
                    f"The labels {twin.id!r} and {label.id!r} both read {label.name!r}; give them different names."
                )
            for word in label.words:
                twin = by_word.setdefault(word.casefold(), label)
                if twin is not label:
                    raise MaskMatchError(
                        f"The labels {twin.id!r} and {label.id!r} share the word {word!r}; a word stands for one label."
                    )
        object.__setattr__(self, "_positions", positions)
        object.__setattr__(self, "_spelled", {str(id_): id_ for id_ in positions})

    @classmethod
    def of(cls, labels: LabelsLike) -> LabelSet:
        """Make a label set of whatever form the labels come in."""
        if isinstance(labels, LabelSet):
            return labels
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            raise MaskMatchError(f"Labels are a list of names or a mapping from name to description, not {labels!r}.")
        if isinstance(labels, Mapping):
            return cls(tuple(_label_of_item(id_, value) for id_, value in labels.items()))
        return cls(tuple(label if isinstance(label, Label) else Label(label) for label in labels))

    @property
    def names(self) -> tuple[str, ...]:
        """The readable names, in order."""
        return tuple(label.name for label in self.labels)

    @property
    def readings(self) -> dict[Hashable, str]:
        """How each label reads, by its id."""
        return {label.id: label.name for label in self.labels}

    def label(self, id: Hashable) -> Label:  # noqa: A002 - it is the field's own name
        """The label with this id."""
        return self.labels[self.position(id)]

    def position(self, id: Hashable) -> int:  # noqa: A002
        """The column of a label in ``predict_proba``."""
        try:
            return self._positions[id]
        except (KeyError, TypeError):
            shown = ", ".join(repr(known) for known in list(self._positions)[:5])
            more = ", …" if len(self) > 5 else ""
            raise MaskMatchError(f"There is no label {id!r}; the labels are {shown}{more}.") from None

    def own(self, id: Hashable) -> Hashable:  # noqa: A002
        """The label's id as it is here, if it is only spelled otherwise: "3" and 3 are one label to most files.

        An id that is not here in any spelling is given back as it came.

        >>> LabelSet.of([3, 5]).own("3"), LabelSet.of(["3", "5"]).own(3), LabelSet.of([3, 5]).own("7")
        (3, '3', '7')
        """
        return id if id in self else self._spelled.get(str(id), id)

    def added(self, labels: LabelsLike) -> LabelSet:
        """A set with further labels at its end."""
        return LabelSet((*self.labels, *LabelSet.of(labels).labels))

    def renamed(self, old: Hashable, new: Hashable) -> LabelSet:
        """A set in which a label has another name; its place and all that is said of it stay.

        A label that is known by its name gets a new id with it; one that has an id of its own, such as a number, keeps
        the id, and only reads otherwise.
        """
        position = self.position(old)
        label = self.labels[position]
        if isinstance(new, Label):
            changed = new
        elif isinstance(new, str) and not label.is_its_name:
            changed = replace(label, name=Label(new).name)
        else:
            changed = replace(label, id=new, name="")
        return LabelSet((*self.labels[:position], changed, *self.labels[position + 1 :]))

    def removed(self, ids: Iterable[Hashable]) -> LabelSet:
        """A set without these labels."""
        gone = {self.position(id_) for id_ in _each(ids)}
        if len(gone) == len(self):
            raise MaskMatchError("Every label would be removed; at least one has to stay.")
        return LabelSet(tuple(label for position, label in enumerate(self.labels) if position not in gone))

    @property
    def without_examples(self) -> LabelSet:
        """The set itself if no label has examples, else one in which none has."""
        if not any(label.examples for label in self.labels):
            return self
        return LabelSet(tuple(replace(label, examples=()) for label in self.labels))

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._positions)

    def __contains__(self, id: object) -> bool:  # noqa: A002
        return _is_hashable(id) and id in self._positions

    @overload
    def __getitem__(self, index: int) -> Hashable: ...
    @overload
    def __getitem__(self, index: slice) -> list[Hashable]: ...
    def __getitem__(self, index: int | slice) -> Hashable | list[Hashable]:
        if isinstance(index, slice):
            return [label.id for label in self.labels[index]]
        return self.labels[index].id


def _label_of_item(id_: Hashable, value: Any) -> Label:
    """A label from one item of a mapping: what the value means depends on its kind."""
    if value is None:
        return Label(id_)
    if isinstance(value, Label):
        return replace(value, id=id_)
    if isinstance(value, str):
        # {"refund": "money given back"} explains a name; {3: "refund"} names a number.
        return Label(id_, description=value) if isinstance(id_, str) else Label(id_, name=value)
    if isinstance(value, Mapping):
        unknown = set(value) - {"name", "description", "phrases", "words", "examples"}
        if unknown:
            raise MaskMatchError(
                f"The label {id_!r} has {', '.join(sorted(map(str, unknown)))}; "
                "a label has a name, a description, phrases, words and examples."
            )
        return Label(id_, **{key: part for key, part in value.items() if part is not None})
    if isinstance(value, Iterable):
        return Label(id_, phrases=tuple(value))
    raise MaskMatchError(f"The label {id_!r} is described by {value!r}; give a description or a list of phrases.")


def label_to_json(label: Label) -> dict[str, Any]:
    """A label as plain JSON, its id included."""
    data: dict[str, Any] = {"id": _id_to_json(label.id), "name": label.name}
    if label.description:
        data["description"] = label.description
    if label.phrases:
        data["phrases"] = list(label.phrases)
    if label.words:
        data["words"] = list(label.words)
    if label.examples:
        data["examples"] = list(label.examples)
    return data


def label_from_json(data: Mapping[str, Any]) -> Label:
    """The label that :func:`label_to_json` wrote."""
    return Label(
        _id_from_json(data["id"]),
        data["name"],
        data.get("description", ""),
        tuple(data.get("phrases", ())),
        tuple(data.get("words", ())),
        tuple(data.get("examples", ())),
    )


def _id_to_json(id_: Hashable) -> Any:
    return {"tuple": [_id_to_json(part) for part in id_]} if isinstance(id_, tuple) else id_


def _id_from_json(data: Any) -> Hashable:
    if isinstance(data, dict):
        return tuple(_id_from_json(part) for part in data["tuple"])
    return data  # type: ignore[no-any-return]
