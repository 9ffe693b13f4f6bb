"""Task presets: for each kind of task, its fields and the prompts that suit it."""

from __future__ import annotations

from dataclasses import dataclass

from maskmatch.errors import MaskMatchError
from maskmatch.prompts import Prompt
from maskmatch.prompts.template import RESERVED


@dataclass(frozen=True)
class Task:
    """What a kind of task needs: the fields of a text, and the two prompts.

    Make one of your own for texts with other fields::

        Task("ticket", "support tickets", fields=("subject", "body"),
             prompt="{subject}: {body} It is about {mask}.")

    Args:
        name: The task's name.
        description: What is classified, in a few words.
        fields: The fields that a text has. A plain string will do where the prompt names a single one.
        prompt: The input prompt; it names fields and holds at least one mask.
        label_prompt: The label prompt; it names ``{label}`` and holds at least one mask.
    """

    name: str
    description: str
    fields: tuple[str, ...] = ("text",)
    prompt: str = "{text} It is about {mask}."
    label_prompt: str = "{label} is {mask}."

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))
        if not self.fields:
            raise MaskMatchError(f"The task {self.name!r} has no fields; a text needs at least one.")
        for name in RESERVED:
            if name in self.fields:
                raise MaskMatchError(f"The task {self.name!r} has a field {name!r}; {{{name}}} stands for a token.")
        Prompt(self.prompt, self.fields)
        Prompt(self.label_prompt, ("label",), required=("label",))

    @property
    def bare_prompt(self) -> str:
        """The fields alone, for methods that read no mask."""
        return " {sep} ".join(f"{{{field}}}" for field in self.fields)


TASKS = {
    task.name: task
    for task in (
        Task("topic", "what a text is about"),
        Task("intent", "what the writer wants", prompt="{text} This is about {mask}."),
        Task("sentiment", "how the writer feels about it", prompt="{text} It was {mask}."),
        Task("emotion", "the emotion that a text expresses", prompt="{text} The writer feels {mask}."),
        Task("question", "what kind of answer a question asks for", prompt="{text} The answer is a {mask}."),
        Task(
            "nli",
            "whether the first text entails the second",
            fields=("text", "text_b"),
            prompt='"{text}" and "{text_b}": the second is {mask}.',
        ),
        Task(
            "paraphrase",
            "whether two texts say the same",
            fields=("text", "text_b"),
            prompt='"{text}" and "{text_b}" are {mask}.',
        ),
        Task(
            "word-in-context",
            "whether a word means the same in two texts",
            fields=("text", "text_b", "entity"),
            prompt='"{text}" and "{text_b}": the word "{entity}" has a {mask}.',
        ),
        Task(
            "relation",
            "how two marked things are related",
            fields=("text", "head", "tail"),
            prompt="{text} {head} {mask} {tail}.",
        ),
        Task(
            "entity-typing",
            "what kind of thing a marked mention is",
            fields=("text", "entity"),
            prompt="{text} {entity} is a {mask}.",
        ),
        Task(
            "stance",
            "where a text stands towards a target",
            fields=("text", "text_b"),
            prompt="{text} The attitude towards {text_b} is {mask}.",
        ),
    )
}


def find_task(task: str | Task) -> Task:
    """A preset by its name; a Task of the user's own is taken as it is."""
    if isinstance(task, Task):
        return task
    if task not in TASKS:
        raise MaskMatchError(f"There is no task {task!r}; choose one of {', '.join(TASKS)}.")
    return TASKS[task]
