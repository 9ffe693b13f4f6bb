"""The settings of a classifier: task, prompts, method and similarity, checked against each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from maskmatch.config.methods import AT_MASKS, METHODS, Method, find_method
from maskmatch.config.settings import Declared, Settings, as_json, check_names, declared, setting
from maskmatch.config.similarity import SimilarityConfig
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:  # what tasks and prompts import takes time, and the command line reads the settings at once
    from collections.abc import Iterator, Mapping, Sequence

    from maskmatch.config.tasks import Task
    from maskmatch.prompts import Prompt

Debias = Literal["none", "inputs", "labels", "both"]
SearchKind = Literal["auto", "exact", "approximate"]
LongTexts = Literal["cut", "windows"]

PAIR_MASKS = (2, 3)
"""How many masks a pair is read at: one for each side; with three, the first is that of the pair as a whole."""

DEFAULT_TASK = "topic"


@dataclass(frozen=True)
class MatcherConfig(Settings):
    """All settings of a classifier, checked against each other. Make one with :meth:`make`.

    A new setting is a field here and the line that uses it: ``from_pretrained``, the command line, saved folders and
    the reference tables take it from here.
    """

    task: Task = setting(
        given=str | None, help="The kind of task: its fields, prompts, metric and method. Default: topic."
    )
    prompts: tuple[Prompt, ...] = setting(
        name="prompt",
        given=list[str] | None,
        help="The input prompt, such as '{text} It is about {mask}.', instead of the task's. With several, a text is "
        "read in each and its vectors are averaged; with pair-matching, each reads one side of the pair.",
    )
    label_prompts: tuple[Prompt, ...] = setting(
        name="label_prompt",
        given=list[str] | None,
        help="The label prompt, such as '{label} is {mask}.', instead of the task's; several are averaged.",
    )
    method: Method = setting(
        given=str | None, help="The method: where input vectors and label vectors come from. Default: the task's."
    )
    similarity: SimilarityConfig = setting(help="How input vectors and label vectors are compared.", option=False)
    max_length: int = setting(
        above=0,
        help="The maximum number of tokens of a prompted text; longer texts are truncated and counted. Default: 256, "
        "or what the encoder can read.",
    )
    long_texts: LongTexts = setting(
        "cut",
        help="What to do with a text that is longer than max_length: cut it, or read it in windows whose vectors are "
        "averaged, which takes longer.",
    )
    multi_label: bool = setting(False, help="Whether a text may have several labels. Default: as in the training data.")
    threshold: float = setting(
        0.5,
        at_least=0,
        at_most=1,
        identity=False,
        help="With several labels per text: the probability from which a label applies. With dev data, fit tunes it.",
    )
    abstain: float = setting(
        0.0,
        at_least=0,
        at_most=1,
        identity=False,
        help="With one label per text: below this probability of the best label, the answer is none. 0: always answer.",
    )
    search: SearchKind = setting(
        "auto",
        identity=False,
        help="How the nearest labels are found: exact compares a text with all labels; approximate with candidates "
        "from an index (extra: index); auto uses the index from 50,000 label texts, if it is installed.",
    )
    debias: Debias = setting(
        "none",
        help="Subtract the state of the empty prompt from the vectors of inputs, labels or both. The empty prompt is "
        "read once, before training.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_prompts()
        self._check_masks()
        if self.long_texts == "windows" and (self.labels_in_context or self.method.reads_pairs):
            raise MaskMatchError(
                'long_texts="windows" needs texts that are read by themselves, not together with each label nor as two '
                "sides of a pair; choose mask-matching with a label prompt that names the label alone, or cut texts."
            )
        if self.abstain and self.multi_label:
            raise MaskMatchError("abstain needs one label per text; with several labels, set the threshold.")

    @property
    def prompt(self) -> Prompt:
        """The first input prompt."""
        return self.prompts[0]

    @property
    def label_prompt(self) -> Prompt:
        """The first label prompt."""
        return self.label_prompts[0]

    @property
    def labels_in_context(self) -> bool:
        """Whether the label prompt names a field of the text, so that labels are read together with each text."""
        return self.method.label_source == "prompt" and self.label_prompt.fields != ("label",)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that a text must have: those that the prompts name."""
        others = self.label_prompt.fields if self.labels_in_context else ()
        return tuple(dict.fromkeys((*self.input_fields, *(name for name in others if name != "label"))))

    @property
    def input_fields(self) -> tuple[str, ...]:
        """The fields that the input prompts name."""
        return tuple(dict.fromkeys(name for prompt in self.prompts for name in prompt.fields))

    @property
    def input_masks(self) -> int:
        """The number of vectors per text."""
        return self.prompt.masks if self.method.reads_masks and not self.method.reads_pairs else 1

    @property
    def label_masks(self) -> int:
        """The number of vectors per label text."""
        method = self.method
        return self.label_prompt.masks if method.label_source == "prompt" and method.label_readout in AT_MASKS else 1

    @property
    def uses_centroids(self) -> bool:
        """Whether label vectors can be shifted towards the centroids of their training texts.

        The encoder must read both, in one shape. With several labels per text, the offset of the logits was learned
        with the vectors of the names alone.
        """
        read = self.method.label_source == "prompt" and not self.labels_in_context
        return read and not self.multi_label and self.input_masks == self.label_masks

    @property
    def adapts(self) -> bool:
        """Whether label vectors can be adapted to unlabelled texts: they are read, and compared by one vector each."""
        read = self.method.reads_labels and not self.labels_in_context
        return read and not self.multi_label and not self.similarity.mask_join.late

    def _check_prompts(self) -> None:
        """Raise for pools of prompts that do not fit together, and for debiasing without a prompt."""
        for prompts, sides in ((self.prompts, self.method.reads_pairs), (self.label_prompts, False)):
            for other in prompts[1:]:
                same_fields = sides or set(other.fields) == set(prompts[0].fields)
                if not same_fields or other.masks != prompts[0].masks:
                    alike = "number of masks" if sides else "fields and number of masks"
                    hint = " To read each side of a pair in a prompt of its own, choose the method pair-matching."
                    raise MaskMatchError(
                        f"The prompts {prompts[0].template!r} and {other.template!r} do not have the same {alike}; "
                        f"prompts that are given together must.{hint if len(self.task.fields) > 1 else ''}"
                    )
        if self.debias in ("labels", "both") and self.method.label_source != "prompt":
            raise MaskMatchError(
                f"The method {self.method.name} reads no label prompt, so label vectors cannot be debiased; choose "
                'debias="inputs".'
            )

    def _check_masks(self) -> None:
        """Raise for a number of masks, or a search, that does not fit how masks are joined."""
        if self.similarity.masks == "concat" and self.input_masks != self.label_masks:
            raise MaskMatchError(
                f"Concatenated masks must be as many in both prompts; here the input prompt has {self.input_masks} and "
                f"the label prompt {self.label_masks}."
            )
        if self.method.reads_pairs:
            self._check_sides()
        if self.search == "approximate" and self.labels_in_context:
            raise MaskMatchError(
                f"The label prompt {self.label_prompt.template!r} names a field of the text, so labels are read with "
                "each text and there is nothing to index; choose exact search."
            )
        if self.search == "approximate" and self.similarity.masks == "late":
            raise MaskMatchError(
                "Approximate search needs one vector per label text, and late interaction has one per mask; choose "
                "exact search."
            )

    def _check_sides(self) -> None:
        """Raise for prompts from which the two sides of a pair cannot be read."""
        places = len(self.prompts) * self.prompt.masks
        if places not in PAIR_MASKS:
            shown = " and ".join(repr(prompt.template) for prompt in self.prompts)
            raise MaskMatchError(
                f"The method {self.method.name} reads a pair at two masks, one for each side, in one prompt or in one "
                f"prompt each; or at three, of which the first is for the pair as a whole. Here {shown} has {places}."
            )
        if len(self.prompts) == 1 or len(self.task.fields) == 1:
            return
        first, second = (set(prompt.fields) for prompt in self.prompts[-2:])
        if first == second:
            raise MaskMatchError(
                f"The prompts {self.prompts[-2].template!r} and {self.prompts[-1].template!r} name the same fields; "
                "if each side of a pair has its own prompt, each prompt must name its own side."
            )
        whole = set(self.prompt.fields)
        if len(self.prompts) == 3 and (not first ^ second <= whole or whole <= first or whole <= second):
            raise MaskMatchError(
                "With three prompts, the first reads the pair as a whole and names both sides, and each of the others "
                f"names one side; here the first is {self.prompt.template!r}."
            )

    @classmethod
    def make(cls, *, max_length: int, **options: Any) -> MatcherConfig:
        """A config from the options that a user gave; what is left out or None comes from the task and the method.

        Args:
            max_length: The maximum number of tokens of a prompted text.
            **options: Settings by the names that users give them, see :func:`classifier_options`.
        """
        from maskmatch.config.tasks import find_task

        check_options(options)
        given = {name: value for name, value in options.items() if value is not None}
        task = find_task(given.pop("task", DEFAULT_TASK))
        method = given.pop("method", None)
        method = _default_method(task, given) if method is None else find_method(method)
        prompts, label_prompts = _prompts(task, method, given.pop("prompt", None), given.pop("label_prompt", None))
        return cls(
            task=task,
            prompts=prompts,
            label_prompts=label_prompts,
            method=method,
            similarity=_similarity(given, method),
            max_length=max_length,
            **given,
        )

    def changed(self, options: Mapping[str, Any]) -> MatcherConfig:
        """The same config with options replaced; those that are None stay. A new task or method brings its prompts."""
        from maskmatch.config.tasks import find_task

        given = {name: value for name, value in options.items() if value is not None}
        task, method = find_task(given.get("task", self.task)), find_method(given.get("method", self.method))
        kept = {each.name: getattr(self, each.field.name) for each in declared(MatcherConfig)}
        kept |= {"task": task, "method": method}
        for name, prompts in (("prompt", self.prompts), ("label_prompt", self.label_prompts)):
            kept[name] = _templates(prompts)
        if replace(task, method=self.task.method) != self.task or method != self.method:
            del kept["prompt"], kept["label_prompt"]
        if method != self.method:
            del kept["similarity"]
        return MatcherConfig.make(**{**kept, **given})

    def identity(self) -> dict[str, Any]:
        """The settings that make a training run what it is, as plain JSON."""
        known = {each.name for each in declared(MatcherConfig) if each.setting.identity}
        return {name: value for name, value in self.to_json().items() if name in known}

    def to_json(self) -> dict[str, Any]:
        """The config as plain JSON, with prompts as their templates."""
        data = {each.name: as_json(getattr(self, each.field.name)) for each in declared(MatcherConfig)}
        return data | {"prompt": _templates(self.prompts), "label_prompt": _templates(self.label_prompts)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MatcherConfig:
        """The config that :meth:`to_json` wrote; settings that are newer than the data have their defaults."""
        from maskmatch.config.tasks import Task

        nested = {
            "task": Task(**data["task"]),
            "method": Method.from_json(data["method"]),
            "similarity": SimilarityConfig(**data["similarity"]),
        }
        return cls.make(**{**data, **nested})


def classifier_options() -> Iterator[Declared]:
    """The settings that users give to a classifier, those of its similarity among them."""
    for each in declared(MatcherConfig):
        yield from declared(SimilarityConfig) if each.field.name == "similarity" else (each,)


def check_options(options: Mapping[str, Any]) -> None:
    """Raise for an option that a classifier does not have, and for a value that it cannot have."""
    known = list(classifier_options())
    check_names(known, options, "a classifier")
    for each in known:
        if each.setting.given is None and each.name != "similarity" and options.get(each.name) is not None:
            each.checked(options[each.name])


def check_threshold(threshold: Any, name: str = "threshold") -> None:
    """Raise unless the threshold is a probability; `name` is the setting that it stands for."""
    next(each for each in declared(MatcherConfig) if each.name == name).checked(threshold)


def _similarity(given: dict[str, Any], method: Method) -> SimilarityConfig:
    """The similarity from the options that belong to it, which are taken out of the given ones."""
    whole = given.pop("similarity", None)
    config = method.similarity if whole is None else SimilarityConfig.of(whole)
    parts = {each.field.name: given.pop(each.name) for each in declared(SimilarityConfig) if each.name in given}
    return replace(config, **parts)


def _prompts(
    task: Task, method: Method, prompt: str | Sequence[str] | None, label_prompt: str | Sequence[str] | None
) -> tuple[tuple[Prompt, ...], tuple[Prompt, ...]]:
    """The input prompts and the label prompts, those of the task where none are given."""
    from maskmatch.prompts import Prompt

    prompt = default_prompt(task, method) if prompt is None else prompt
    if label_prompt is None:
        label_prompt = task.label_prompt if method.label_masked else "{label}"
    return (
        tuple(Prompt(template, task.fields, masked=method.input_masked) for template in templates(prompt)),
        tuple(
            Prompt(template, (*task.fields, "label"), required=("label",), masked=method.label_masked)
            for template in templates(label_prompt)
        ),
    )


def _default_method(task: Task, given: Mapping[str, Any]) -> Method:
    """The method of a task.

    If that reads pairs, but the user gave an input prompt, or a label prompt that names the text, it is mask-matching:
    such prompts read the pair as a whole.
    """
    method = find_method(task.method)
    label_templates = templates(given["label_prompt"]) if "label_prompt" in given else []
    in_context = any(f"{{{field}}}" in template for template in label_templates for field in task.fields)
    return METHODS["mask-matching"] if method.reads_pairs and ("prompt" in given or in_context) else method


def default_prompt(task: Task, method: Method) -> str | Sequence[str]:
    """The input prompt of a task for a method; or several, such as one for each side of a pair."""
    if not method.input_masked:
        return task.bare_prompt
    return task.pair_prompts if method.reads_pairs else task.prompt


def templates(given: str | Sequence[str]) -> list[str]:
    """The templates of one prompt or of a pool."""
    pool: list[Any] = list(given) if isinstance(given, (list, tuple)) else [given]
    if not pool:
        raise MaskMatchError("A pool of prompts is empty; give at least one prompt.")
    for each in pool:
        if not isinstance(each, str):
            raise MaskMatchError(f"A prompt is a text such as '{{text}} It is about {{mask}}.', not {each!r}.")
    return pool


def _templates(prompts: Sequence[Prompt]) -> str | list[str]:
    """A single prompt as its template, a pool as a list of templates."""
    return prompts[0].template if len(prompts) == 1 else [prompt.template for prompt in prompts]
