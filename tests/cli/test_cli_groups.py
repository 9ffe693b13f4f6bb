"""Options in groups: a dataclass in the signature of a command is a set of options on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from maskmatch.cli.groups import grouped


@dataclass(frozen=True)
class Place:
    street: Annotated[str, typer.Option(help="The street.")]
    number: Annotated[int, typer.Option(help="The number.", min=1)] = 7

    def __post_init__(self) -> None:
        if self.street == "nowhere":
            raise typer.BadParameter("there is no such street.", param_hint="--street")


@dataclass(frozen=True)
class Corner(Place):
    other: Annotated[list[str] | None, typer.Option(help="Streets that meet there.")] = None


def visit(*, name: Annotated[str, typer.Argument(help="Who.")], place: Corner, loud: bool = False) -> None:
    """Say who goes where."""
    print(name, place.street, place.number, place.other, loud)


def run(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(grouped(visit))
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["Ann", "--street", "Elm"], "Ann Elm 7 None False"),
        (["Ann", "--street", "Elm", "--number", "3", "--loud"], "Ann Elm 3 None True"),
        (["--other", "Oak", "--other", "Ash", "--street", "Elm", "Ann"], "Ann Elm 7 ['Oak', 'Ash'] False"),
    ],
)
def test_fields_are_options(arguments: list[str], printed: str) -> None:
    assert run(*arguments) == (0, printed)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["Ann"], "--street"),
        (["Ann", "--street", "Elm", "--number", "0"], "--number"),
        (["Ann", "--street", "nowhere"], "there is no such street"),
    ],
)
def test_a_group_refuses_what_an_option_would(arguments: list[str], words: str) -> None:
    code, printed = run(*arguments)
    assert code == 2
    assert words in printed


def test_help_tells_the_command_and_every_field() -> None:
    code, printed = run("--help")
    assert code == 0
    for words in ("Say who goes where.", "The street.", "[default: 7]", "Streets that meet there.", "--loud"):
        assert words in printed
