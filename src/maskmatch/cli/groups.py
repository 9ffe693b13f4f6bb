"""Options in groups: a dataclass of options stands in the signature of a command as one parameter."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as the command line has to see it: with the fields of its dataclasses as options of their own.

    So an option that several commands take is written once, and what belongs together is handed on together.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            parameters += _options(groups[name])
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**given: Any) -> None:
        taken = {name: _take(group, given) for name, group in groups.items()}
        command(**taken, **given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _options(group: Any) -> Iterator[inspect.Parameter]:
    """The fields of a group as parameters of a command."""
    hints = get_type_hints(group, include_extras=True)
    for each in fields(group):
        default = inspect.Parameter.empty if each.default is MISSING else each.default
        yield inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[each.name])


def _take(group: Any, given: dict[str, Any]) -> Any:
    """Make a group of what was given for its fields, and take that away from what was given."""
    return group(**{each.name: given.pop(each.name) for each in fields(group)})
