"""Task presets: the fields, prompts, metric and method of each kind of task."""

from __future__ import annotations

from dataclasses import dataclass

from maskmatch.config.settings import Settings, setting
from maskmatch.errors import MaskMatchError, did_you_mean
from maskmatch.evaluation import find_metric
from maskmatch.prompts import Prompt
from maskmatch.prompts.template import RESERVED

LABEL_PARAPHRASES = ("{label} means {mask}.", "The label {label} stands for {mask}.", "{mask}: {label}")


@dataclass(frozen=True)
class Task(Settings):
    """What a kind of task needs: the fields of a text, the two prompts, a metric and a method.

    Make one of your own for texts with other fields::

        Task("ticket", "support tickets", fields=("subject", "body"),
             prompt="{subject}: {body} It is about {mask}.")
    """

    name: str = setting(help="The task's name.")
    description: str = setting(help="What is classified, in a few words.")
    fields: tuple[str, ...] = setting(
        ("text",), help="The fields of a text. A plain string will do where the prompt names a single field."
    )
    prompt: str = setting(
        "{text} It is about {mask}.", help="The input prompt. It names fields and has at least one mask."
    )
    label_prompt: str = setting(
        "{label} is {mask}.",
        help="The label prompt. It names {label} and has at least one mask. If it also names fields of the text, "
        "labels are read together with each text.",
    )
    paraphrases: tuple[str, ...] = setting(
        (), help="Other input prompts with the same meaning, for alignment and for tests of robustness."
    )
    label_paraphrases: tuple[str, ...] = setting(LABEL_PARAPHRASES, help="Other label prompts.")
    metric: str = setting("accuracy", help="The metric by which the task is usually measured.")
    method: str = setting("mask-matching", help="The default method of the task.")

    def __post_init__(self) -> None:
        super().__post_init__()
        find_metric(self.metric)
        for name in ("fields", "paraphrases", "label_paraphrases"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.fields:
            raise MaskMatchError(f"The task {self.name!r} has no fields; a text needs at least one.")
        for name in RESERVED:
            if name in self.fields:
                raise MaskMatchError(
                    f"The task {self.name!r} has a field {name!r}; {{{name}}} is a special token of prompts."
                )
        for prompt in (self.prompt, *self.paraphrases):
            Prompt(prompt, self.fields)
        for prompt in (self.label_prompt, *self.label_paraphrases):
            Prompt(prompt, (*self.fields, "label"), required=("label",))

    @property
    def bare_prompt(self) -> str:
        """The fields alone, for methods that read no mask."""
        return " {sep} ".join(f"{{{field}}}" for field in self.fields)

    @property
    def pair_prompts(self) -> tuple[str, ...]:
        """A prompt for each of the first two fields, for methods that read the sides of pairs.

        A prompt with several masks has one for each side already.
        """
        if Prompt(self.prompt, self.fields).masks > 1:
            return (self.prompt,)
        if len(self.fields) < 2:
            raise MaskMatchError(
                f"The task {self.name!r} has a single field, so there is no pair to read; choose another task or "
                "method, or give a prompt with two masks."
            )
        first, second, *others = (f"{{{field}}}" for field in self.fields)
        about = f"Here {' and '.join(others)} means {{mask}}." if others else "means {mask}."
        return f'"{first}" {about}', f'"{second}" {about}'


TASKS = {
    task.name: task
    for task in (
        Task(
            "topic",
            "what a text is about",
            paraphrases=("{text} The topic is {mask}.", "{text} It deals with {mask}.", "Topic: {mask}. {text}"),
        ),
        Task(
            "intent",
            "what the writer wants",
            prompt="{text} This is about {mask}.",
            paraphrases=("{text} The request: {mask}.", "{text} The writer wants {mask}.", "About {mask}: {text}"),
        ),
        Task(
            "sentiment",
            "how the writer feels about it",
            prompt="{text} It was {mask}.",
            paraphrases=("{text} The verdict is {mask}.", "{text} All in all, {mask}.", "It was {mask}. {text}"),
        ),
        Task(
            "emotion",
            "the emotion that a text expresses",
            prompt="{text} The writer feels {mask}.",
            paraphrases=("{text} I feel {mask}.", "{text} The feeling is {mask}.", "Feeling {mask}: {text}"),
        ),
        Task(
            "question",
            "what kind of answer a question asks for",
            prompt="{text} The answer is a {mask}.",
            paraphrases=(
                "{text} It asks for {mask}.",
                "{text} What is wanted is a {mask}.",
                "Kind of answer: {mask}. {text}",
            ),
        ),
        Task(
            "nli",
            "whether the first text entails the second",
            fields=("text", "text_b"),
            prompt='"{text}" and "{text_b}": the second is {mask}.',
            paraphrases=(
                '"{text}" Is it so that "{text_b}"? {mask}.',
                "{text} {mask}, {text_b}",
                'Given "{text}", "{text_b}" is {mask}.',
            ),
            method="pair-matching",
        ),
        Task(
            "paraphrase",
            "whether two texts say the same",
            fields=("text", "text_b"),
            prompt='"{text}" and "{text_b}" are {mask}.',
            paraphrases=(
                "{text} {sep} {text_b} They are {mask}.",
                'The two are {mask}: "{text}" and "{text_b}"',
                '"{text}" compared with "{text_b}": {mask}.',
            ),
            method="pair-matching",
        ),
        Task(
            "word-in-context",
            "whether a word means the same in two texts",
            fields=("text", "text_b", "entity"),
            prompt='"{text}" and "{text_b}": the word "{entity}" has a {mask}.',
            paraphrases=(
                "{entity}: {text} {sep} {text_b} The sense is {mask}.",
                '"{text}" and "{text_b}": the meaning of {entity} is {mask}.',
                'For "{entity}" it is a {mask}: "{text}" and "{text_b}"',
            ),
            method="pair-matching",
        ),
        Task(
            "relation",
            "how two marked things are related",
            fields=("text", "head", "tail"),
            prompt="{text} {head} {mask} {tail}.",
            paraphrases=(
                "{text} The relation between {head} and {tail} is {mask}.",
                "{head} {mask} {tail}: {text}",
                "{text} {tail} is to {head}: {mask}.",
            ),
            metric="relation-micro-f1",
        ),
        Task(
            "entity-typing",
            "what kind of thing a marked mention is",
            fields=("text", "entity"),
            prompt="{text} {entity} is a {mask}.",
            paraphrases=(
                "{text} Here, {entity} is a kind of {mask}.",
                "{entity} is a {mask}. {text}",
                "{text} The type of {entity}: {mask}.",
            ),
            metric="micro-f1",
        ),
        Task(
            "stance",
            "where a text stands towards a target",
            fields=("text", "text_b"),
            prompt="{text} The attitude towards {text_b} is {mask}.",
            paraphrases=(
                "{text} On {text_b}, the writer is {mask}.",
                "{text_b}: {mask}. {text}",
                "{text} As to {text_b}, this is {mask}.",
            ),
            metric="stance-f1",
        ),
    )
}


def find_task(task: str | Task) -> Task:
    """Find a preset by its name; a Task is returned as it is."""
    if isinstance(task, Task):
        return task
    if task not in TASKS:
        raise MaskMatchError(f"There is no task {task!r}; choose one of {', '.join(TASKS)}.{did_you_mean(task, TASKS)}")
    return TASKS[task]
