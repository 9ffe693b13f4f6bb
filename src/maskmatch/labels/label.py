"""One label: its id, and the words that describe it to the encoder."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

from maskmatch.data import is_missing
from maskmatch.errors import MaskMatchError

PREFIXES = {
    "per": "person",
    "org": "organization",
    "loc": "location",
    "gpe": "place",
    "misc": "miscellaneous",
}
"""Type prefixes of relation and entity names, spelled out: ``per:city_of_birth`` is "person city of birth"."""

LONE_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character that was cut in two. No tokenizer accepts it."""


@dataclass(frozen=True)
class ExampleText:
    """A text that has the label. The encoder reads it in the input prompt, not in the label prompt."""

    text: str


LabelText = str | ExampleText
"""One input of the encoder for a label: a string for the label prompt, or an example for the input prompt."""


def readable(name: str) -> str:
    """Turn a machine name into words. A name that contains a space is already readable and stays as it is.

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
    if len(words) > 1 and name.isupper():  # CARD_LOST is the name of a constant, not a list of acronyms
        words = [word.lower() for word in words]
    return " ".join(words) or name


def _split_camel_case(word: str) -> list[str]:
    """Split ``PlayMusic`` into play, music. Acronyms stay whole, and ``iPhone`` is one word."""
    if re.match(r"[a-z][A-Z]", word) or not re.search(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}", word):
        return [word]
    parts = re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[^A-Z]+|[A-Z]+", word)
    return [part if len(part) > 1 and part.isupper() else part.lower() for part in parts]


@dataclass(frozen=True)
class Label:
    """A label: its id, and the words that describe it to the encoder.

    For every argument but the id, None means the same as leaving it out.

    Args:
        id: The value that ``predict`` returns: a string, number, boolean, or tuple of these. Often the name itself.
        name: The name as words. The default is made from the id: ``card_payment_fee`` becomes "card payment fee".
        description: What the label means. The label prompt reads it together with the name.
        phrases: Other names for the same label. Each is encoded separately, like the name.
        words: The verbalizer of ``prompt-tuning``: words predicted at the mask, such as "great" and "good" for the
            label "positive". The default is the name and the phrases. Other methods ignore it.
        examples: Texts that have this label. They are encoded like texts to classify, and shift the label's vector
            towards their centroid. Training ignores them, because it uses the centroids of the training texts.
    """

    id: Hashable
    name: str = ""
    description: str = ""
    phrases: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        id_ = _checked_id(self.id)
        given_name, description = ("" if part is None else part for part in (self.name, self.description))
        phrases, words, examples = (tuple(_as_list(part)) for part in (self.phrases, self.words, self.examples))
        for part in (given_name, description, *phrases, *words, *examples):
            if not isinstance(part, str):
                raise MaskMatchError(
                    f"The label {id_!r} has {part!r} where text is expected; name, description, phrases, words and "
                    "examples are strings."
                )
        name = _single_spaced(given_name) or _name_from_id(id_)
        if not name or (isinstance(id_, str) and not id_.strip()):
            raise MaskMatchError(f"The label {id_!r} is blank; every label needs a name.")
        phrases, words, examples = _distinct(phrases), _distinct(words), tuple(dict.fromkeys(examples))
        for kind, parts in (("phrase", phrases), ("word", words), ("example", [text.strip() for text in examples])):
            if not all(parts):
                raise MaskMatchError(f"The label {id_!r} has a blank {kind}.")
        if LONE_SURROGATE.search(f"{name}{description}{''.join((*phrases, *words, *examples))}"):
            raise MaskMatchError(f"The label {id_!r} contains half of a character (a lone surrogate).")
        object.__setattr__(self, "id", id_)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "description", _single_spaced(description))
        object.__setattr__(self, "phrases", tuple(phrase for phrase in phrases if phrase != name))
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "examples", examples)

    def __repr__(self) -> str:
        # Examples are shown only if there are any: finished lab runs identify labels by this text.
        shown = [each.name for each in fields(self) if each.name != "examples" or self.examples]
        return f"Label({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    @property
    def id_is_name(self) -> bool:
        """Whether the id is the name, rather than a number or a code."""
        return isinstance(self.id, str) and self.name == readable(self.id)

    @property
    def texts(self) -> tuple[str, ...]:
        """The strings for the label prompt: the name (with the description), then each phrase."""
        first = f"{self.name}: {self.description}" if self.description else self.name
        return (first, *self.phrases)

    @property
    def parts(self) -> tuple[LabelText, ...]:
        """All inputs of the encoder for this label: its texts, then its examples."""
        return (*self.texts, *map(ExampleText, self.examples))

    @property
    def verbalizer(self) -> tuple[str, ...]:
        """The words that stand for this label at a mask: the given words, or the name and each phrase."""
        return self.words or (self.name, *self.phrases)


def label_to_json(label: Label) -> dict[str, Any]:
    """Convert a label to a JSON object. Empty fields are left out."""
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
    """Read the label that :func:`label_to_json` wrote."""
    return Label(
        _id_from_json(data["id"]),
        data["name"],
        data.get("description", ""),
        data.get("phrases", ()),
        data.get("words", ()),
        data.get("examples", ()),
    )


def is_hashable(value: object) -> bool:
    """Whether a value can be a key. A tuple is hashable by type, but not if it contains a list."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _checked_id(given: Any) -> Hashable:
    """Return an id as a plain Python value; raise if it is missing, not hashable or cannot be saved."""
    id_ = _plain_id(given)
    if is_missing(id_):
        raise MaskMatchError("A label is missing (None or NaN); every label needs a name.")
    if not is_hashable(id_):
        raise MaskMatchError(f"The label {id_!r} cannot be an id, because it is not hashable.")
    if not _is_saveable(id_):
        raise MaskMatchError(
            f"The label {id_!r} is of type {type(id_).__name__}, which cannot be saved; give strings, numbers, "
            "booleans or tuples of these, such as the value of an enum's member."
        )
    return id_  # type: ignore[no-any-return]


def _plain_id(id_: Any) -> Any:
    """Convert numpy and torch scalars to Python numbers, also inside a tuple."""
    if type(id_) is tuple:
        return tuple(_plain_id(part) for part in id_)
    is_scalar = type(id_).__module__ in ("numpy", "torch") and getattr(id_, "ndim", None) == 0
    return id_.item() if is_scalar else id_


def _is_saveable(id_: object) -> bool:
    """Whether an id survives a round trip through JSON."""
    return all(map(_is_saveable, id_)) if isinstance(id_, tuple) else isinstance(id_, (str, bool, int, float))


def _as_list(value: Any) -> Iterable[Any]:
    """Return the members of a collection; wrap a single string or number; None is empty."""
    if value is None:
        return ()
    return value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


def _name_from_id(id_: Hashable) -> str:
    """Make a readable name from an id."""
    if isinstance(id_, Enum):  # an IntEnum is a number too, but its name says more
        return readable(str(id_.name))
    if isinstance(id_, tuple):
        return " ".join(_name_from_id(part) for part in id_)
    return readable(str(id_))


def _single_spaced(text: str) -> str:
    """Strip a text and replace each run of white space by one space."""
    return " ".join(text.split())


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Drop repeated texts, after normalising white space."""
    return tuple(dict.fromkeys(map(_single_spaced, texts)))


def _id_to_json(id_: Hashable) -> Any:
    return {"tuple": [_id_to_json(part) for part in id_]} if isinstance(id_, tuple) else id_


def _id_from_json(data: Any) -> Hashable:
    if isinstance(data, dict):
        return tuple(_id_from_json(part) for part in data["tuple"])
    return data  # type: ignore[no-any-return]
