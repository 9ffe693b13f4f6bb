"""The settings of a classifier: task, prompts, method and similarity, checked against each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, get_args

from maskmatch.choices import Debias, MaskJoin, PhraseJoin, SearchKind, SimilarityKind
from maskmatch.errors import MaskMatchError
from maskmatch.methods import METHODS, Method, find_method
from maskmatch.prompts import Prompt
from maskmatch.settings import as_json
from maskmatch.similarity_config import SimilarityConfig
from maskmatch.tasks import Task, find_task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PAIR_MASKS = (2, 3)
"""How many masks are read of a pair: one for each side, and if there are three, one before them for both together."""


def check_threshold(threshold: Any) -> None:
    """Refuse a threshold that is no probability."""
    if isinstance(threshold, bool) or not isinstance(threshold, Real) or not 0 <= float(threshold) <= 1:
        raise MaskMatchError(f"The threshold is {threshold!r}; it has to be a probability, a number from 0 to 1.")


@dataclass(frozen=True)
class MatcherConfig:
    """Task, prompts, method and similarity of a classifier, checked against each other."""

    task: Task
    prompt: Prompt
    label_prompt: Prompt
    method: Method
    similarity: SimilarityConfig
    max_length: int
    multi_label: bool = False
    threshold: float = 0.5
    """From which probability on a label applies, where a text may have several."""
    search: SearchKind = "auto"
    """How the best labels of a text are found."""
    pool: tuple[Prompt, ...] = ()
    """Further input prompts: a text is read in each, and its vector is the mean; or of a pair, one for each side."""
    label_pool: tuple[Prompt, ...] = ()
    """Further label prompts, likewise."""
    debias: Debias = "none"
    """Whose vectors the state of the empty prompt is taken from."""

    def __post_init__(self) -> None:
        self._check_prompts()
        check_threshold(self.threshold)
        if self.search not in get_args(SearchKind):
            raise MaskMatchError(
                f"There is no search {self.search!r}; choose one of {', '.join(get_args(SearchKind))}."
            )
        self._check_masks()

    def _check_masks(self) -> None:
        """Refuse numbers of masks, and a search, that do not go with how the masks are joined."""
        if self.similarity.masks == "concat" and self.input_masks != self.label_masks:
            raise MaskMatchError(
                f"Masks that are joined by concatenation have to be as many on both sides; here texts have "
                f"{self.input_masks} and labels {self.label_masks}."
            )
        if self.method.reads_pairs:
            self._check_sides()
        if self.search == "approximate" and self.labels_in_context:
            raise MaskMatchError(
                f"The label prompt {self.label_prompt.template!r} names a field of the text, so labels are read with "
                "each text and there is nothing to make an index of; choose exact search."
            )
        if self.search == "approximate" and self.similarity.masks == "late":
            raise MaskMatchError(
                "An approximate search knows one vector a label, and late interaction has one for each mask; "
                "choose exact search."
            )

    def _check_sides(self) -> None:
        """Refuse prompts from which the two sides of a pair cannot be read."""
        places = len(self.prompts) * self.prompt.masks
        if places not in PAIR_MASKS:
            told = " and ".join(repr(prompt.template) for prompt in self.prompts)
            raise MaskMatchError(
                f"The method {self.method.name} reads two masks, one for each side of a pair, in one prompt or in a "
                f"prompt each, or three, of which the first is that of the pair as a whole; in {told} there are "
                f"{places}."
            )
        if len(self.prompts) == 1 or len(self.task.fields) == 1:
            return
        first, second = (set(prompt.fields) for prompt in self.prompts[-2:])
        if first == second:
            raise MaskMatchError(
                f"The prompts {self.prompts[-2].template!r} and {self.prompts[-1].template!r} name the same fields; "
                "where each side of a pair has a prompt of its own, each names its own side."
            )
        whole = set(self.prompt.fields)
        if len(self.prompts) == 3 and (not first ^ second <= whole or whole <= first or whole <= second):
            raise MaskMatchError(
                "Of three prompts the first is that of the pair as a whole and names both sides, and each of the "
                f"others names one of them; here the first is {self.prompt.template!r}."
            )

    @property
    def labels_in_context(self) -> bool:
        """Whether the label prompt names a field of the text, so that labels are read together with each text."""
        return self.method.label_source == "prompt" and self.label_prompt.fields != ("label",)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that a text has to have: those that the prompts name."""
        others = self.label_prompt.fields if self.labels_in_context else ()
        return tuple(dict.fromkeys((*self.input_fields, *(name for name in others if name != "label"))))

    @property
    def input_fields(self) -> tuple[str, ...]:
        """The fields that the input prompts name."""
        return tuple(dict.fromkeys(name for prompt in self.prompts for name in prompt.fields))

    @property
    def input_masks(self) -> int:
        """How many vectors a text has."""
        return self.prompt.masks if self.method.input_masked and not self.method.reads_pairs else 1

    @property
    def label_masks(self) -> int:
        """How many vectors a label text has."""
        return self.label_prompt.masks if self.method.label_masked else 1

    @property
    def moves_labels(self) -> bool:
        """Whether label vectors can move towards those of training texts.

        Both have to be read, and of one shape. Where a text may have several labels, the similarity from which on a
        label applies was learned with names as they are.
        """
        read = self.method.label_source == "prompt" and not self.labels_in_context
        return read and not self.multi_label and self.input_masks == self.label_masks

    def _check_prompts(self) -> None:
        """Refuse pools whose prompts do not go together, and a choice of debiasing that has no prompt to go by."""
        for prompts, sides in ((self.prompts, self.method.reads_pairs), (self.label_prompts, False)):
            for other in prompts[1:]:
                same_fields = sides or set(other.fields) == set(prompts[0].fields)
                if not same_fields or other.masks != prompts[0].masks:
                    alike = "number of masks" if sides else "fields and number of masks"
                    hint = " Prompts for each side of a pair are read by the method pair-matching: name it with them."
                    raise MaskMatchError(
                        f"The prompts {prompts[0].template!r} and {other.template!r} do not have the same {alike}; "
                        f"prompts that are given together have to.{hint if len(self.task.fields) > 1 else ''}"
                    )
        if self.debias not in get_args(Debias):
            raise MaskMatchError(f"debias is {self.debias!r}; choose one of {', '.join(get_args(Debias))}.")
        if self.debias in ("labels", "both") and self.method.label_source != "prompt":
            raise MaskMatchError(
                f"The method {self.method.name} reads no label prompt that labels could be freed of; debias its inputs "
                "alone."
            )

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """All input prompts."""
        return (self.prompt, *self.pool)

    @property
    def label_prompts(self) -> tuple[Prompt, ...]:
        """All label prompts."""
        return (self.label_prompt, *self.label_pool)

    @classmethod
    def make(
        cls,
        *,
        max_length: int,
        task: str | Task | None = None,
        prompt: str | Sequence[str] | None = None,
        label_prompt: str | Sequence[str] | None = None,
        method: str | Method | None = None,
        similarity: SimilarityKind | SimilarityConfig | None = None,
        masks: MaskJoin | None = None,
        phrase_join: PhraseJoin | None = None,
        multi_label: bool | None = None,
        threshold: float | None = None,
        search: SearchKind | None = None,
        debias: Debias | None = None,
    ) -> MatcherConfig:
        """Fill in what is left out from the task and the method."""
        task = find_task("topic" if task is None else task)
        method = _own_method(task, prompt, label_prompt) if method is None else find_method(method)
        prompt = own_prompt(task, method) if prompt is None else prompt
        if label_prompt is None:
            label_prompt = task.label_prompt if method.label_masked else "{label}"
        chosen = method.similarity if similarity is None else SimilarityConfig.of(similarity)
        prompts = [Prompt(template, task.fields, masked=method.input_masked) for template in templates(prompt)]
        label_prompts = [
            Prompt(template, (*task.fields, "label"), required=("label",), masked=method.label_masked)
            for template in templates(label_prompt)
        ]
        return cls(
            task=task,
            prompt=prompts[0],
            pool=tuple(prompts[1:]),
            label_prompt=label_prompts[0],
            label_pool=tuple(label_prompts[1:]),
            method=method,
            similarity=replace(chosen, masks=masks or chosen.masks, phrases=phrase_join or chosen.phrases),
            max_length=max_length,
            multi_label=bool(multi_label),
            threshold=0.5 if threshold is None else threshold,
            search="auto" if search is None else search,
            debias="none" if debias is None else debias,
        )

    def changed(self, **changes: Any) -> MatcherConfig:
        """The same config but for what is given and not None; a new task or method brings its own prompts."""
        changes = {name: value for name, value in changes.items() if value is not None}
        task = find_task(changes.pop("task", self.task))
        method = find_method(changes.pop("method", self.method))
        kept: dict[str, Any] = {
            "task": task,
            "method": method,
            "max_length": self.max_length,
            "multi_label": self.multi_label,
            "threshold": self.threshold,
            "search": self.search,
            "debias": self.debias,
        }
        if replace(task, method=self.task.method) == self.task and method == self.method:
            kept |= {"prompt": _told(self.prompts), "label_prompt": _told(self.label_prompts)}
        if method == self.method:
            kept["similarity"] = self.similarity
        return MatcherConfig.make(**{**kept, **changes})

    def to_json(self) -> dict[str, Any]:
        """The config as plain JSON."""
        return {
            "task": as_json(self.task),
            "prompt": _told(self.prompts),
            "label_prompt": _told(self.label_prompts),
            "method": as_json(self.method),
            "similarity": as_json(self.similarity),
            "max_length": self.max_length,
            "multi_label": self.multi_label,
            "threshold": self.threshold,
            "search": self.search,
            "debias": self.debias,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MatcherConfig:
        """The config that :meth:`to_json` wrote."""
        task = Task(**{**data["task"], "fields": tuple(data["task"]["fields"])})
        method = Method(**{**data["method"], "similarity": SimilarityConfig(**data["method"]["similarity"])})
        return cls.make(
            task=task,
            prompt=data["prompt"],
            label_prompt=data["label_prompt"],
            method=method,
            similarity=SimilarityConfig(**data["similarity"]),
            max_length=data["max_length"],
            multi_label=data["multi_label"],
            threshold=data["threshold"],
            search=data.get("search"),  # folders from before it was a choice have none
            debias=data.get("debias"),
        )


def _own_method(task: Task, prompt: str | Sequence[str] | None, label_prompt: str | Sequence[str] | None) -> Method:
    """The method of a task.

    Where that reads pairs, a prompt of the user's own is rather taken as any other; and so where labels see the text.
    """
    method = find_method(task.method)
    seen = [] if label_prompt is None else templates(label_prompt)
    others = prompt is not None or any(f"{{{field}}}" in template for template in seen for field in task.fields)
    return METHODS["mask-matching"] if method.reads_pairs and others else method


def own_prompt(task: Task, method: Method) -> str | Sequence[str]:
    """The input prompt of a task that suits a method; or several, such as one for each side of a pair."""
    if not method.input_masked:
        return task.bare_prompt
    return task.pair_prompts if method.reads_pairs else task.prompt


def templates(given: str | Sequence[str]) -> list[str]:
    """The templates of a pool, or of a single prompt."""
    pool = [given] if isinstance(given, str) else list(given)
    if not pool:
        raise MaskMatchError("A pool of prompts is empty; give at least one prompt.")
    return pool


def _told(prompts: Sequence[Prompt]) -> str | list[str]:
    """A prompt as its template, a pool as a list of them."""
    return prompts[0].template if len(prompts) == 1 else [prompt.template for prompt in prompts]
