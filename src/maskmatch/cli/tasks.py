"""``maskmatch tasks``: the task presets."""

from __future__ import annotations

from dataclasses import asdict

from maskmatch.cli import options


def tasks(json: options.AsJson = False) -> None:
    """List the task presets with their fields, metric, method, prompts and paraphrases of the prompts."""
    from maskmatch.tasks import TASKS

    if json:
        options.print_json([asdict(task) for task in TASKS.values()])
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
                task.prompt,
                task.label_prompt,
                " | ".join((*task.paraphrases, *task.label_paraphrases)),
            )
            for task in TASKS.values()
        ],
    )
