"""``maskmatch tasks``: the task presets."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from maskmatch.cli import options

if TYPE_CHECKING:
    from maskmatch.config.tasks import Task


def tasks(json: options.AsJson = False) -> None:
    """List the task presets with their fields, metric, method, prompts and paraphrases of the prompts."""
    from maskmatch.config.matcher import default_prompt, templates
    from maskmatch.config.methods import find_method
    from maskmatch.config.tasks import TASKS

    read = {name: templates(default_prompt(task, find_method(task.method))) for name, task in TASKS.items()}
    if json:
        options.print_json([{**asdict(task), "prompts_read": read[task.name]} for task in TASKS.values()])
        return
    options.print_table(
        ("task", "what is classified", "fields", "metric", "method", "input prompt", "label prompt", "paraphrases"),
        [
            (
                task.name,
                task.description,
                ", ".join(task.fields),
                task.metric,
                task.method,
                " | ".join(read[task.name]),
                task.label_prompt,
                " | ".join((*_other_prompts(task, read[task.name]), *task.label_paraphrases)),
            )
            for task in TASKS.values()
        ],
    )


def _other_prompts(task: Task, read: list[str]) -> tuple[str, ...]:
    """The input prompts of a task beside those that are read: of a pair, also that of the pair as a whole."""
    return task.paraphrases if task.prompt in read else (task.prompt, *task.paraphrases)
