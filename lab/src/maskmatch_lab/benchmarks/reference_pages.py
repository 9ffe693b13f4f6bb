"""The reference pages of the docs that follow from the code: settings and commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from maskmatch_lab.benchmarks.markdown import table

if TYPE_CHECKING:
    from collections.abc import Iterator

WRITTEN = "<!-- This page is written by `make docs` from the code. -->"


def settings_page() -> str:
    """All settings, from the classes that declare them."""
    from maskmatch.config.alignment import AlignmentConfig
    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.config.methods import Method
    from maskmatch.config.settings import reference_table
    from maskmatch.config.similarity import SimilarityConfig
    from maskmatch.config.tasks import Task
    from maskmatch.config.training import TrainingConfig
    from maskmatch.serving.config import ENVIRONMENT, ServeConfig

    parts = [
        "# Settings",
        WRITTEN,
        "Every setting is declared once in the code. Its option on the command line, its key in saved folders and its "
        "row here follow from the declaration.",
        "## Classifier",
        "Arguments of `MaskMatcher.from_pretrained`, and options of `train`, `classify` and other commands.",
        reference_table(MatcherConfig),
        "### Similarity",
        "These are arguments of `from_pretrained`, too; or give a whole `SimilarityConfig` as `similarity`.",
        reference_table(SimilarityConfig),
        "## Training",
        "Arguments of `MaskMatcher.fit`, fields of `TrainingConfig`, and options of `maskmatch train`.",
        reference_table(TrainingConfig),
        "## Alignment",
        "Arguments of `align`, fields of `AlignmentConfig`, and options of `maskmatch align`.",
        reference_table(AlignmentConfig),
        "## Server",
        f"Options of `maskmatch serve`. Each is also an environment variable: `port` is `{ENVIRONMENT}PORT`.",
        reference_table(ServeConfig),
        "## A method of your own",
        "A `Method`, given as `method`. The built-in ones are listed in [Methods](methods.md).",
        reference_table(Method),
        "## A task of your own",
        "A `Task`, given as `task`. The presets are listed in [Tasks](tasks.md).",
        reference_table(Task),
    ]
    return "\n\n".join(parts) + "\n"


def commands_page() -> str:
    """All commands with their arguments and options, from the command line itself."""
    from maskmatch.cli import app

    sections = [
        "# Commands",
        WRITTEN,
        "Results go to standard output, progress and warnings to standard error. Exit code 0 is success, 1 a failure "
        "with one sentence that says why, 2 wrong usage.",
    ]
    for name, command in _commands(typer.main.get_command(app), "maskmatch"):
        sections += [f"## `{name}`", (command.help or "").strip().replace("\n", " ")]
        rows = [_row(parameter) for parameter in command.params if parameter.name != "help"]
        sections.append(table(("option", "meaning", "default"), rows))
    return "\n\n".join(sections) + "\n"


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """All commands below a group, with their full names."""
    context = typer.Context(command)
    for key in command.list_commands(context):
        _, each, _ = command.resolve_command(context, [key])
        if hasattr(each, "commands"):
            yield from _commands(each, f"{name} {key}")
        else:
            yield f"{name} {key}", each


def _row(parameter: Any) -> tuple[str, str, str]:
    is_argument = parameter.param_type_name == "argument"
    options = ", ".join([*parameter.opts, *parameter.secondary_opts])
    spelled = (parameter.name or "").upper() if is_argument else options
    default = parameter.default
    shown = "" if default in (None, False, ()) or callable(default) or parameter.required else f"`{default}`"
    return f"`{spelled}`", (getattr(parameter, "help", "") or "").replace("|", "\\|"), shown
