"""``maskmatch tasks``: the task presets."""

from __future__ import annotations

from dataclasses import asdict

from maskmatch.cli import options


def tasks(json: options.AsJson = False) -> None:
    """List the task presets with their fields and prompts."""
    from maskmatch.tasks import TASKS

    if json:
        options.print_json([asdict(task) for task in TASKS.values()])
        return
    options.print_table(
        ("task", "what is classified", "fields", "input prompt", "label prompt"),
        [
            (task.name, task.description, ", ".join(task.fields), task.prompt, task.label_prompt)
            for task in TASKS.values()
        ],
    )
