"""Options in groups: a dataclass of options is one parameter of a command; so are all settings of a settings class."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

from maskmatch.errors import MaskMatchError
from maskmatch.progress import set_verbose

if TYPE_CHECKING:
    from maskmatch.config.settings import Declared


@dataclass(frozen=True)
class SettingsOf:
    """Marks a parameter that takes settings as options of the command line: ``Annotated[Options, SettingsOf(…)]``.

    The parameter gets a mapping from the names of settings to their values.

    Args:
        settings: The settings.
        panel: The panel of the help text that shows them.
        optional: Whether every option may be left out, whatever the default of the setting; the mapping then holds only
            what was given.
        exclude: Settings that are no options of this command.
        environment: How the environment variables begin that give the options, too; None: there are none.
    """

    settings: Callable[[], Iterable[Declared]]
    panel: str | None = None
    optional: bool = False
    exclude: tuple[str, ...] = ()
    environment: str | None = None

    def declared(self) -> list[Declared]:
        """The settings that are options."""
        return [each for each in self.settings() if each.setting.option and each.name not in self.exclude]

    def parameters(self) -> Iterator[inspect.Parameter]:
        """The options, derived from the settings."""
        for each in self.declared():
            default = None if self.optional else each.default
            optional = self.optional or each.optional
            kind = _option_type(each)
            option = typer.Option(
                *_flags(each, default),
                help=each.setting.help,
                rich_help_panel=self.panel,
                show_default=default is not None,
                envvar=None if self.environment is None else f"{self.environment}{each.name.upper()}",
            )
            yield inspect.Parameter(
                each.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=Annotated[kind | None if optional else kind, option],
            )

    def take(self, given: dict[str, Any]) -> dict[str, Any]:
        """The values of these options, taken out of what was given."""
        values = {}
        for each in self.declared():
            value = given.pop(each.name)
            value = value or None if isinstance(value, list) else value  # typer gives [] for an option left out
            if value is None and self.optional:
                continue
            try:
                values[each.name] = each.checked(value)
            except MaskMatchError as error:
                raise typer.BadParameter(str(error), param_hint=f"--{each.name.replace('_', '-')}") from error
        return values


Options = Mapping[str, Any]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as the command line must see it: with the fields of its groups as options of their own.

    So an option that several commands take is written once, and what belongs together is passed on together.
    """
    hints = {name: _annotated(hint) for name, hint in get_type_hints(command, include_extras=True).items()}
    groups = {name: group for name, hint in hints.items() if (group := _group(hint)) is not None}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            parameters += _parameters(groups[name])
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))

    parameters.append(inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Quiet))

    @wraps(command)
    def run(**given: Any) -> None:
        set_verbose(not given.pop("quiet"))
        taken = {name: _take(group, given) for name, group in groups.items()}
        command(**taken, **given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _annotated(hint: Any) -> Any:
    """The annotation as it was written: Python 3.10 wraps that of a parameter whose default is None in an Optional."""
    parts = get_args(hint) if get_origin(hint) is Union else ()
    return next((part for part in parts if hasattr(part, "__metadata__")), hint)


def _group(hint: Any) -> Any:
    """The group that a parameter stands for: a dataclass or settings; None for a plain option."""
    if is_dataclass(hint):
        return hint
    return next((part for part in getattr(hint, "__metadata__", ()) if isinstance(part, SettingsOf)), None)


def _parameters(group: Any) -> Iterator[inspect.Parameter]:
    """The options of a group as parameters of a command."""
    if isinstance(group, SettingsOf):
        yield from group.parameters()
        return
    hints = get_type_hints(group, include_extras=True)
    for each in fields(group):
        inner = _group(hints[each.name])
        if inner is not None:
            yield from _parameters(inner)
            continue
        default = inspect.Parameter.empty if each.default is MISSING else each.default
        yield inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[each.name])


def _take(group: Any, given: dict[str, Any]) -> Any:
    """Make a group of what was given for its options, and take that out of what was given."""
    if isinstance(group, SettingsOf):
        return group.take(given)
    hints = get_type_hints(group, include_extras=True)
    values = {}
    for each in fields(group):
        inner = _group(hints[each.name])
        values[each.name] = given.pop(each.name) if inner is None else _take(inner, given)
    return group(**values)


def _option_type(each: Declared) -> Any:
    """The type of an option: the setting's own, or a choice of the names of its table."""
    if each.choices is not None:
        return Literal[each.choices]
    (kind,) = each.kinds
    return kind if get_origin(kind) is not list else list[get_args(kind)[0]]  # type: ignore[misc]


def _flags(each: Declared, default: Any) -> tuple[str, ...]:
    """The spelling of an option; a switch that is off by default has no negative form."""
    name = each.name.replace("_", "-")
    if each.kinds != (bool,):
        return (f"--{name}",)
    return (f"--{name}",) if default is False else (f"--{name}/--no-{name}",)
