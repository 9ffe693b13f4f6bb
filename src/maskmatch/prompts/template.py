"""A prompt's template: parsed once, checked once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from string import Formatter
from typing import TYPE_CHECKING, Literal

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterable

FIELDS = ("text", "text_b", "head", "tail", "entity", "label")
"""The fields that a prompt may name unless a task brings its own."""

RESERVED = ("mask", "sep")
"""Names in braces that stand for a special token, not for a field."""

SEVERAL_MASKS = re.compile(r"mask\*([1-9][0-9]?)")
"""Up to 99 masks in a row."""


@dataclass(frozen=True)
class Part:
    """One piece of a template: the prompt's own words, a field, a mask or a separator."""

    kind: Literal["words", "field", "mask", "sep"]
    text: str = ""
    """The words themselves, or the field's name."""


@dataclass(frozen=True)
class Prompt:
    """A template such as ``"{text} It is about {mask}."``.

    Names in braces are fields, ``{mask}`` is where the encoder's state is read (``{mask*4}``: four masks in a row),
    ``{sep}`` is the encoder's separator token; ``{{`` and ``}}`` are literal braces. A template that cannot work is
    refused when it is made.

    Args:
        template: The template.
        fields: The fields it may name. One that is not among them is refused.
        required: The fields it has to name.
        masked: Whether it must hold a mask. A method that reads the encoder elsewhere (at [CLS], or pooled)
            takes prompts without one.

    >>> Prompt("{text} It is about {mask}.").fields
    ('text',)
    >>> Prompt("{label} is {mask} or {mask}.", required=("label",)).masks
    2
    """

    template: str
    fields_allowed: tuple[str, ...] = field(default=FIELDS, repr=False, compare=False)
    parts: tuple[Part, ...] = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        template: str,
        fields: Iterable[str] = FIELDS,
        *,
        required: Iterable[str] = (),
        masked: bool = True,
    ) -> None:
        object.__setattr__(self, "template", template)
        object.__setattr__(self, "fields_allowed", tuple(fields))
        object.__setattr__(self, "parts", _parse(template))
        self._check(tuple(required), masked)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the template names, in order, each once."""
        return tuple(dict.fromkeys(part.text for part in self.parts if part.kind == "field"))

    @property
    def masks(self) -> int:
        """How many masks the template holds."""
        return sum(part.kind == "mask" for part in self.parts)

    def __str__(self) -> str:
        return self.template

    def _check(self, required: tuple[str, ...], masked: bool) -> None:
        allowed = _braced(self.fields_allowed)
        for name in self.fields:
            if name not in self.fields_allowed:
                raise MaskMatchError(
                    f"The prompt {self.template!r} names the field {{{name}}}, which is not there; "
                    f"it may name {allowed} and {{mask}}."
                )
        for name in required:
            if name not in self.fields:
                raise MaskMatchError(
                    f'The prompt {self.template!r} has to name {{{name}}}, for instance "{{{name}}} is {{mask}}."'
                )
        if not self.fields:
            raise MaskMatchError(f"The prompt {self.template!r} names no field; put in {allowed}.")
        if masked and not self.masks:
            raise MaskMatchError(
                f"The prompt {self.template!r} has no mask; put {{mask}} where the answer would stand."
            )


def _parse(template: str) -> tuple[Part, ...]:
    if not isinstance(template, str) or not template.strip():
        raise MaskMatchError(f'A prompt is a text such as "{{text}} It is about {{mask}}.", not {template!r}.')
    parts: list[Part] = []
    try:
        pieces = list(Formatter().parse(template))
    except ValueError:
        raise MaskMatchError(
            f"The braces of the prompt {template!r} do not balance; a literal brace is written {{{{ or }}}}."
        ) from None
    for words, name, spec, conversion in pieces:
        if words:
            parts.append(Part("words", words))
        if name is None:
            continue
        several = SEVERAL_MASKS.fullmatch(name)
        if several and not (spec or conversion):
            parts += [Part("mask")] * int(several[1])
            continue
        if not name.isidentifier() or spec or conversion:
            shown = name + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
            raise MaskMatchError(
                f"The prompt {template!r} holds {{{shown}}}; between braces stands only a plain field name, "
                "such as {text}, or {mask}, or {mask*4} for four masks (99 at most)."
            )
        if name == "mask":
            parts.append(Part("mask"))
        elif name == "sep":
            parts.append(Part("sep"))
        else:
            parts.append(Part("field", name))
    return tuple(parts)


def _braced(names: Iterable[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)
