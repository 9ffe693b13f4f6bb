"""Prompt templates: parsing and validation."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from string import Formatter
from typing import TYPE_CHECKING, Literal

from maskmatch.data.values import is_valid_unicode
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterable

FIELDS = ("text", "text_b", "head", "tail", "entity", "label")
"""The fields that a prompt may use, unless a task defines its own."""

RESERVED = ("mask", "sep")
"""Placeholders of special tokens, which cannot be names of fields."""

MASK_RUN = re.compile(r"mask\*([1-9][0-9]?)")
"""The placeholder of several consecutive masks, at most 99."""


@dataclass(frozen=True)
class Part:
    """A part of a template: words, a field, a mask or a separator."""

    kind: Literal["words", "field", "mask", "sep"]
    text: str = ""
    """The words, or the name of the field."""


@dataclass(frozen=True)
class Prompt:
    """A template such as ``"{text} It is about {mask}."``.

    Names in braces are fields. ``{mask}`` is the mask token, at which the encoder's state is read (``{mask*4}``: four
    consecutive masks). ``{sep}`` is the separator token. ``{{`` and ``}}`` are literal braces. An invalid template
    raises when the prompt is created.

    Args:
        template: The template.
        fields: The fields that it may use.
        required: The fields that it must use.
        masked: Whether it must have a mask. Methods that read the encoder elsewhere (at [CLS], or pooled) accept
            prompts without one.

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
        """The fields of the template in order, without duplicates."""
        return tuple(dict.fromkeys(part.text for part in self.parts if part.kind == "field"))

    @property
    def masks(self) -> int:
        """The number of masks of the template."""
        return sum(part.kind == "mask" for part in self.parts)

    def __str__(self) -> str:
        return self.template

    def _check(self, required: tuple[str, ...], masked: bool) -> None:
        allowed = _braced(self.fields_allowed)
        for name in self.fields:
            if name not in self.fields_allowed:
                raise MaskMatchError(
                    f"The prompt {self.template!r} uses the field {{{name}}}, which does not exist; "
                    f"it may use {allowed} and {{mask}}."
                )
        for name in required:
            if name not in self.fields:
                raise MaskMatchError(
                    f'The prompt {self.template!r} must use {{{name}}}, for example "{{{name}}} is {{mask}}."'
                )
        if not self.fields:
            raise MaskMatchError(f"The prompt {self.template!r} has no field; add {allowed}.")
        if masked and not self.masks:
            raise MaskMatchError(f"The prompt {self.template!r} has no mask; put {{mask}} in the place of the answer.")


def _parse(template: str) -> tuple[Part, ...]:
    if not isinstance(template, str) or not template.strip():
        raise MaskMatchError(f'A prompt is a string such as "{{text}} It is about {{mask}}.", not {template!r}.')
    if not is_valid_unicode(template):
        raise MaskMatchError(f"The prompt {template!r} contains half of a character (a lone surrogate).")
    parts: list[Part] = []
    try:
        pieces = list(Formatter().parse(template))
    except ValueError:
        raise MaskMatchError(
            f"The prompt {template!r} has unbalanced braces; write a literal brace as {{{{ or }}}}."
        ) from None
    for words, name, spec, conversion in pieces:
        if words:
            parts.append(Part("words", words))
        if name is None:
            continue
        run = MASK_RUN.fullmatch(name)
        if run and not (spec or conversion):
            parts += [Part("mask")] * int(run[1])
            continue
        if not name.isidentifier() or spec or conversion:
            shown = name + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
            raise MaskMatchError(
                f"The prompt {template!r} contains {{{shown}}}; braces may contain only a plain field name, such as "
                "{text}, or {mask}, or {mask*4} for four masks (99 at most)."
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
