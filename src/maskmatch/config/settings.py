"""Settings, declared once.

A setting is one field of a frozen dataclass that inherits from :class:`Settings`::

    epochs: float | None = setting(None, above=0, help="Passes over the training data.")

Everything else follows from the field: the check of its value, its option on the command line, its JSON, its part in
the identity of a training run, its row in the reference tables of the docs.
"""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from maskmatch.errors import MaskMatchError, did_you_mean

KEY = "maskmatch"
"""The key of a setting's declaration in the metadata of its dataclass field."""

Own = TypeVar("Own", bound="Settings")


@dataclass(frozen=True)
class Setting:
    """What is declared about a setting besides its type and default.

    Attributes:
        help: What it does, in a sentence or two.
        above: The value must be larger than this.
        at_least: The value must not be smaller than this.
        at_most: The value must not be larger than this.
        below: The value must be smaller than this.
        choices: The allowed values; a table of rows will do.
        given: The type in which users give it, where the field holds something else: a task by its name.
        name: What users call it, if not by the field's name.
        option: Whether it is an option of the command line.
        identity: Whether a training run with another value is another run.
    """

    help: str
    above: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    below: float | None = None
    choices: Collection[str] | None = None
    given: Any = None
    name: str | None = None
    option: bool = True
    identity: bool = True


def setting(default: Any = MISSING, *, help: str, factory: Any = MISSING, **declared: Any) -> Any:  # noqa: A002
    """Declare a setting: a dataclass field with its default, help and check. See :class:`Setting`."""
    metadata = {KEY: Setting(help=help, **declared)}
    if factory is not MISSING:
        return field(default_factory=factory, metadata=metadata)
    return field(default=default, metadata=metadata)


class Settings:
    """Base of frozen dataclasses whose fields are settings.

    >>> @dataclass(frozen=True)
    ... class Bread(Settings):
    ...     flour: str = setting("rye", choices=("rye", "wheat"), help="What it is made of.")
    ...     minutes: int = setting(40, above=0, help="How long it bakes.")
    >>> Bread().changed({"minutes": 50})
    Bread(flour='rye', minutes=50)
    >>> Bread(minutes=0)
    Traceback (most recent call last):
    ...
    maskmatch.errors.MaskMatchError: minutes is 0; it must be an integer above 0.
    """

    def __post_init__(self) -> None:
        for each in declared(type(self)):
            object.__setattr__(self, each.field.name, each.checked(getattr(self, each.field.name)))

    def changed(self: Own, options: Mapping[str, Any]) -> Own:
        """The same settings with these values replaced."""
        check_names(declared(type(self)), options, type(self).__name__)
        fields_of = {each.name: each.field.name for each in declared(type(self))}
        changes = {fields_of[name]: value for name, value in options.items()}
        return replace(self, **changes)  # type: ignore[type-var]

    def to_json(self) -> dict[str, Any]:
        """All settings as plain JSON."""
        return {each.field.name: as_json(getattr(self, each.field.name)) for each in declared(type(self))}

    def identity(self) -> dict[str, Any]:
        """The settings that make a run what it is, as plain JSON."""
        return {
            each.field.name: as_json(getattr(self, each.field.name))
            for each in declared(type(self))
            if each.setting.identity
        }


@dataclass(frozen=True)
class Declared:
    """A setting of a class: its field and what is declared about it."""

    owner: type
    field: Field[Any]
    setting: Setting

    @property
    def name(self) -> str:
        """What users call it."""
        return self.setting.name or self.field.name

    @property
    def type(self) -> Any:
        """The type in which users give it, None included where that is a value of it."""
        if self.setting.given is not None:
            return self.setting.given
        if not isinstance(self.field.type, str):
            return self.field.type
        declaring = next(
            each for each in self.owner.__mro__ if self.field.name in vars(each).get("__annotations__", {})
        )
        return eval(self.field.type, vars(sys.modules[declaring.__module__]))  # the annotation of the field

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The types of which it may be, without None: ``float | None`` is (float,)."""
        return tuple(kind for kind in _members(self.type) if kind is not type(None))

    @property
    def optional(self) -> bool:
        """Whether None is a value of it."""
        return type(None) in _members(self.type)

    @property
    def choices(self) -> tuple[str, ...] | None:
        """The allowed values, if there is a list of them."""
        if self.setting.choices is not None:
            return tuple(self.setting.choices)
        literal = next((kind for kind in self.kinds if get_origin(kind) is Literal), None)
        return None if literal is None else get_args(literal)

    @property
    def default(self) -> Any:
        """The value if nothing is given."""
        factory: Any = self.field.default_factory
        return self.field.default if self.field.default is not MISSING else factory()

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.field.default is MISSING and self.field.default_factory is MISSING

    def checked(self, value: Any) -> Any:
        """The value as a plain Python value; MaskMatchError if it is not allowed."""
        if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):  # numpy and torch scalars are no JSON
            value = value.item()
        if value is None and self.optional:
            return None
        if self.choices is not None:
            self._check_choice(value)
        elif self.kinds == (bool,):
            if not isinstance(value, bool):
                allowed = "True, False or None" if self.optional else "True or False"
                raise MaskMatchError(f"{self.name} is {value!r}; it must be {allowed}.")
        elif self.kinds in ((int,), (float,)):
            self._check_number(value)
            return int(value) if self.kinds == (int,) else value
        elif self.setting.given is None and all(map(_is_class, self.kinds)):
            self._check_type(value)
        return value

    def _check_type(self, value: Any) -> None:
        if not isinstance(value, self.kinds):
            kinds = " or ".join(kind.__name__ for kind in self.kinds)
            raise MaskMatchError(f"{self.name} is {value!r}; it must be a {kinds}.")

    def _check_choice(self, value: Any) -> None:
        assert self.choices is not None
        if value not in self.choices:
            hint = did_you_mean(value, self.choices)
            raise MaskMatchError(f"{self.name} is {value!r}; choose one of {', '.join(self.choices)}.{hint}")

    def _check_number(self, value: Any) -> None:
        kind: Any = Integral if self.kinds == (int,) else Real
        rule = self.setting
        ok = isinstance(value, kind) and not isinstance(value, bool) and math.isfinite(value)
        ok = ok and (rule.above is None or value > rule.above) and (rule.at_least is None or value >= rule.at_least)
        ok = ok and (rule.at_most is None or value <= rule.at_most) and (rule.below is None or value < rule.below)
        if not ok:
            raise MaskMatchError(f"{self.name} is {value!r}; it must be {self.allowed}.")

    @property
    def allowed(self) -> str:
        """The allowed numbers in words: "a number above 0"."""
        rule = self.setting
        kind = "an integer" if self.kinds == (int,) else "a number"
        if rule.at_least is not None and rule.at_most is not None:
            return f"{kind} from {rule.at_least} to {rule.at_most}"
        bounds = [
            f"{word} {bound}"
            for word, bound in (
                ("above", rule.above),
                ("of at least", rule.at_least),
                ("of at most", rule.at_most),
                ("below", rule.below),
            )
            if bound is not None
        ]
        return " ".join([kind, " and ".join(bounds)]).strip()


def declared(owner: type) -> Iterator[Declared]:
    """All settings of a settings class, in order."""
    for each in fields(owner):
        if KEY in each.metadata:
            yield Declared(owner, each, each.metadata[KEY])


def check_names(settings: Iterable[Declared], options: Mapping[str, Any], owner: str) -> None:
    """Raise for an option that is not among some settings.

    Args:
        settings: The settings that there are.
        options: Options by name.
        owner: What has the settings, for the message.
    """
    known = [each.name for each in settings]
    for name in options:
        if name not in known:
            raise MaskMatchError(
                f"There is no setting {name!r} of {owner}; the settings are {', '.join(known)}."
                f"{did_you_mean(name, known)}"
            )


def as_json(value: Any) -> Any:
    """Settings, and whatever they hold, as plain JSON.

    >>> as_json({"sizes": (1, 2), "path": __import__("pathlib").PurePosixPath("a/b")})
    {'sizes': [1, 2], 'path': 'a/b'}
    """
    if isinstance(value, Settings):
        return value.to_json()
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: as_json(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): as_json(content) for key, content in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [as_json(content) for content in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def reference_table(owner: type) -> str:
    """The settings of a class as a Markdown table: name, values, default (if it is one value), meaning."""
    lines = ["| setting | values | default | meaning |", "|---|---|---|---|"]
    for each in declared(owner):
        default = "" if each.required or each.default is None else f"`{as_json(each.default)}`"
        cells = (f"`{each.name}`", _values(each), default, each.setting.help)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def _values(each: Declared) -> str:
    """The values of a setting in words."""
    if each.choices is not None:
        return ", ".join(f"`{choice}`" for choice in each.choices)
    if each.kinds in ((int,), (float,)):
        return each.allowed
    return " or ".join(getattr(kind, "__name__", str(kind)) for kind in each.kinds)


def _is_class(kind: Any) -> bool:
    """Whether isinstance can check it; Python 3.10 takes list[str] for a class, too."""
    return isinstance(kind, type) and get_origin(kind) is None


def _members(kind: Any) -> tuple[Any, ...]:
    """The members of a union; a plain type is its own only member."""
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
