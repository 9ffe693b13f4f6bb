"""Commands that are imported when they are called: the list of commands needs none of them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

ADD_ONS = "maskmatch.commands"
"""The entry points by which another distribution adds commands: the value is a table of CommandRow by name."""


@dataclass(frozen=True)
class CommandRow:
    """A row of the table of commands.

    Attributes:
        where: ``"module:name"`` of the function, or of a Typer app with commands of its own.
        help: Its line in the list of commands. The docstring of the function is the help of the command itself.
    """

    where: str
    help: str

    def load(self, name: str) -> Any:
        """The command, imported."""
        from maskmatch.cli.groups import grouped

        module, _, attribute = self.where.partition(":")
        app = getattr(import_module(module), attribute)
        if not isinstance(app, typer.Typer):
            function, app = app, typer.Typer(add_completion=False, pretty_exceptions_enable=False)
            app.command(name)(grouped(function))
        command = typer.main.get_command(app)
        command.name = name
        return command


class LazyCommand(TyperCommand):
    """A command as the list of commands shows it; :meth:`load` imports it."""

    def __init__(self, name: str, row: CommandRow) -> None:
        super().__init__(name, help=row.help)
        self._row = row

    def load(self) -> Any:
        """The command itself."""
        assert self.name is not None
        return self._row.load(self.name)


class LazyGroup(TyperGroup):
    """The commands of a table, and those that other distributions add."""

    table: Mapping[str, CommandRow] = {}

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = {name: LazyCommand(name, row) for name, row in self.table.items()}
        self._complete = False

    def add_others(self) -> None:
        """Add the commands of other distributions, such as ``compare`` and ``study`` of maskmatch-lab."""
        if self._complete:
            return
        self._complete = True
        from importlib.metadata import entry_points  # takes longer than the rest of the list of commands

        for point in entry_points(group=ADD_ONS):
            try:
                table = point.load()
            except ImportError as error:  # a broken add-on should not take the other commands away
                sys.stderr.write(f"maskmatch: the commands of {point.name} cannot be loaded: {error}\n")
                continue
            for name, row in table.items():
                self.commands.setdefault(name, LazyCommand(name, row))

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands, in the order of the tables."""
        self.add_others()
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The line of a command; None if there is no such command."""
        if cmd_name not in self.commands:
            self.add_others()
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command to run, imported."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, LazyCommand) else command, rest
