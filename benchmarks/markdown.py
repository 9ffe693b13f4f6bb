"""The parts that the pages of figures are written with."""

from __future__ import annotations

from typing import Any


def table(header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    """A table in Markdown."""
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def origin(result: dict[str, Any]) -> str:
    """Where results come from: command, date, versions, machine."""
    versions = ", ".join(f"{name} {value}" for name, value in result["versions"].items())
    machine = result["machine"]
    return f"`{result['command']}`, {result['date']}; {versions}; {machine['cpu']}, {machine['cores']} cores."
