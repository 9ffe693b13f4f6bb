"""A served classifier: classifies through the batcher, with its own labels or those of a request."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError
from maskmatch.labels import LabelSet, label_to_json
from maskmatch.prediction.answers import json_answers
from maskmatch.prediction.label_scorer import use_one_blas_thread
from maskmatch.serving.batcher import Batcher, QueueFullError
from maskmatch.serving.errors import RequestError, invalid, overloaded
from maskmatch.serving.loading import load_predictor
from maskmatch.storage.layout import folder_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from maskmatch.prediction.editing import EditablePredictor
    from maskmatch.prediction.pipeline import Pipeline
    from maskmatch.serving.config import ServeConfig
    from maskmatch.serving.metrics import Metrics

logger = logging.getLogger("maskmatch")

WATCH_SECONDS = 1.0
"""How often it is noticed that someone else has saved the folder."""

MOST_RANKED = 100_000
"""How many labels an answer may list, over all its texts."""

MOST_ENCODING = 16
"""How many sets of labels may wait to be encoded; a request with one more gets 503."""


@dataclass(frozen=True)
class Wanted:
    """What a request wants to know of each text.

    Attributes:
        top_k: How many labels, best first; None: all.
        threshold: With several labels per text: the probability from which a label applies; None: the classifier's.
        abstain: With one label per text: the probability below which the answer is ``none_label``; None: its own.
        none_label: The answer below that.
        novelty: Whether to compute the novelty of each text.
    """

    top_k: int | None = 3
    threshold: float | None = None
    abstain: float | None = None
    none_label: str | None = None
    novelty: bool = False


@dataclass(frozen=True, eq=False)
class Scoring:
    """Scores input vectors (n, masks, dim) with the labels of a pipeline: n answers."""

    pipeline: Pipeline
    wanted: Wanted
    k: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scoring) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[int, Wanted, int]:
        return id(self.pipeline), self.wanted, self.k

    def __call__(self, vectors: NDArray[np.float32], cut: NDArray[np.bool_]) -> list[dict[str, Any]]:
        """The answers for texts by their vectors."""
        pipeline, wanted = self.pipeline, self.wanted
        least = pipeline.least_threshold(wanted.threshold) if pipeline.config.multi_label else None
        far = pipeline.novelty_of(vectors) if wanted.novelty else None
        return _as_json(pipeline, (pipeline.nearest(vectors, self.k, least), far), cut, wanted, self.k)


@dataclass(frozen=True)
class Answered:
    """The answers for the texts of a request.

    Attributes:
        labels: The labels that were asked for.
        answers: One JSON object per text; for a text that cannot be read, it has "error".
        tokens: How many tokens the texts have.
    """

    labels: LabelSet
    answers: list[dict[str, Any]]
    tokens: int = 0


class ServedModel:
    """A classifier that answers requests.

    Requests read its labels from ``current``, which is replaced in one step after an edit. So no request waits for an
    edit, and none sees half of it.

    Args:
        name: What requests call it.
        predictor: The classifier or export.
        config: The settings of the server.
        metrics: What is counted.
        folder: Where edits of labels are saved, if asked for; None: nowhere.
        own_labels: Whether it has labels; otherwise every request must bring some.
    """

    def __init__(
        self,
        name: str,
        predictor: EditablePredictor,
        config: ServeConfig,
        metrics: Metrics,
        *,
        folder: Path | None = None,
        own_labels: bool = True,
    ) -> None:
        self.name, self.predictor, self.folder, self.own_labels = name, predictor, folder, own_labels
        self._config, self._metrics = config, metrics
        self._sets: OrderedDict[str, asyncio.Future[Pipeline]] = OrderedDict()
        self._editing, self._previewing = asyncio.Lock(), asyncio.Lock()
        self._encoding = 0  # how many sets of labels are encoded, or wait for it
        self._encoder = ThreadPoolExecutor(1, "maskmatch labels")
        self.model_hash = self._folder_hash()
        self.current = predictor.pipeline
        self._batcher = self._new_batcher()
        use_one_blas_thread()

    @property
    def labels(self) -> LabelSet:
        """The labels of now."""
        return self.current.labels

    @property
    def multi_label(self) -> bool:
        """Whether a text may have several labels."""
        return self.current.config.multi_label

    def stop(self) -> None:
        """Encode what waits, then end."""
        self._batcher.stop()
        self._encoder.shutdown(wait=False, cancel_futures=True)

    def _new_batcher(self) -> Batcher:
        config = self._config
        return Batcher(
            self.current.tokenize,
            self.current.runtime,
            self.current.tokenizer.vocabulary.pad_id,
            max_tokens=config.max_batch_tokens,
            max_wait=config.max_wait_ms / 1000,
            limit=config.queue,
            observe=partial(self._metrics.observe_batch, self.name),
        )

    # -- classifying -----------------------------------------------------------------------------------------

    async def classify(self, texts: Sequence[Any], wanted: Wanted, labels: Any = None) -> Answered:
        """Classify texts with the labels of the classifier, or with others."""
        batcher, pipeline = self._batcher, await self._pipeline(labels)
        while batcher is not self._batcher:  # the folder was loaded again meanwhile: these labels are another encoder's
            batcher, pipeline = self._batcher, await self._pipeline(labels)
        if wanted.threshold is not None and not self.multi_label:
            raise invalid("threshold needs a classifier that gives several labels per text; use abstain.")
        if wanted.abstain is not None and self.multi_label:
            raise invalid("abstain needs a classifier that gives one label per text; use threshold.")
        k = len(pipeline.labels) if wanted.top_k is None else min(wanted.top_k, len(pipeline.labels))
        if len(texts) * k > MOST_RANKED:
            raise RequestError(
                413, "too_large", f"The answer would have {len(texts) * k} labels; {MOST_RANKED} are allowed."
            )
        if pipeline.scorer.in_context:
            answers, tokens = await _apart(lambda: _with_each_text(pipeline, texts, wanted, k))
        else:
            try:
                answers, tokens = await batcher.classify(texts, Scoring(pipeline, wanted, k))
            except QueueFullError:
                raise overloaded() from None
        self._metrics.texts.inc(sum("error" not in answer for answer in answers))
        return Answered(pipeline.labels, answers, tokens)

    # -- labels of a request ---------------------------------------------------------------------------------

    async def _pipeline(self, labels: Any) -> Pipeline:
        """The pipeline with the labels of a request; they are encoded once, and cached."""
        if labels is None:
            if not self.own_labels:
                raise invalid("There are no labels; give them with the request.")
            return self.current
        self.check_labels(labels)
        try:
            label_set = LabelSet.of(labels)
        except MaskMatchError as error:
            raise invalid(str(error)) from error
        if len(label_set) < 2 and not self.multi_label:
            raise invalid("One label cannot be told from others; give at least two.")
        key = label_set.digest
        known = self._sets.get(key)
        if known is None:
            known = self._sets[key] = asyncio.ensure_future(self._encode(label_set))
            known.add_done_callback(lambda done: self._drop_failed(key, done))
            while len(self._sets) > self._config.label_sets:
                self._sets.popitem(last=False)
        else:
            self._sets.move_to_end(key)
        try:
            return await asyncio.shield(known)  # another request may wait for the same labels
        except MaskMatchError as error:
            raise invalid(str(error)) from error

    def check_labels(self, labels: Any) -> None:
        """Raise if a request brings too many labels; phrases count, too."""
        phrases = (each for each in labels.values() if isinstance(each, list)) if isinstance(labels, dict) else ()
        count, most = len(labels) + sum(map(len, phrases)), self._config.max_labels
        if count > most:
            raise RequestError(
                413, "too_many_labels", f"The request has {count} labels, phrases included; {most} are allowed."
            )

    def _drop_failed(self, key: str, done: asyncio.Future[Pipeline]) -> None:
        if (done.cancelled() or done.exception() is not None) and self._sets.get(key) is done:
            del self._sets[key]

    async def _encode(self, labels: LabelSet) -> Pipeline:
        """Encode labels in a thread of their own, one set after the other."""
        if self._encoding >= MOST_ENCODING:
            raise overloaded()
        self._encoding += 1
        try:
            predictor = self.predictor
            work = lambda: predictor.pipeline_with(predictor.bank.with_labels(labels))  # noqa: E731
            pipeline: Pipeline = await asyncio.get_running_loop().run_in_executor(self._encoder, work)
        finally:
            self._encoding -= 1
        self._metrics.labels_encoded.inc(len(labels))
        return pipeline

    # -- edits -----------------------------------------------------------------------------------------------

    @property
    def etag(self) -> str:
        """Changes with the labels."""
        return f'"{self.labels.digest[:32]}"'

    def labels_json(self) -> list[dict[str, Any]]:
        """The labels as plain JSON."""
        return [label_to_json(label) for label in self.labels.labels]

    def resolved(self, edits: Mapping[str, Any]) -> dict[str, Any]:
        """Edits with the ids of labels: in JSON, the label 3 is called "3"."""
        labels = self.labels
        return {
            "add": edits["add"],
            "rename": {labels.resolve(old): new for old, new in edits["rename"].items()},
            "remove": [labels.resolve(old) for old in edits["remove"]],
        }

    async def edit(self, expected: str, edits: Mapping[str, Any], *, save: bool) -> str:
        """Edit labels, if they are still those that the editor saw; all edits, or none. Returns the new ETag."""
        work = asyncio.ensure_future(self._edit(expected, edits, save))
        return await asyncio.shield(work)  # an edit that has begun ends, even if the editor has gone

    async def _edit(self, expected: str, edits: Mapping[str, Any], save: bool) -> str:
        async with self._editing:
            if expected not in (self.etag, "*"):
                raise RequestError(
                    412, "precondition_failed", "The labels have changed since you read them; read them again."
                )
            if save and self.folder is None:
                raise RequestError(409, "not_saved", "This classifier was not loaded from a folder.")
            if not save and self._config.workers > 1:
                raise RequestError(
                    409, "not_saved", "There are several workers, which share only the folder; give save as well."
                )
            self.current = await _apart(lambda: self._edited(self.resolved(edits), save))
            self._sets.clear()
            self._metrics.labels_encoded.inc(len(edits["rename"]) + len(edits["add"] or ()))
            return self.etag

    def _edited(self, edits: dict[str, Any], save: bool) -> Pipeline:
        """The pipeline after an edit; if the edit is wrong or cannot be saved, the labels are what they were."""
        predictor = self.predictor
        try:
            bank = predictor.bank
            if bank.learns_rows:
                raise MaskMatchError("This classifier learns its labels, so they cannot be edited while it is served.")
            before = bank.copy()
            predictor.edit_labels(**edits)
        except MaskMatchError as error:
            raise invalid(str(error)) from error
        try:
            pipeline = predictor.pipeline
            if save:
                assert self.folder is not None
                predictor.save_pretrained(self.folder)
                self.model_hash = self._folder_hash()
        except (MaskMatchError, OSError) as error:
            bank.take(before, bank.version)
            raise RequestError(
                409, "not_saved", f"Nothing was changed, because it could not be saved: {error}"
            ) from error
        return pipeline

    async def preview(self, texts: Sequence[Any], edits: Mapping[str, Any]) -> dict[str, Any]:
        """Which of these texts would get another label. One preview at a time."""
        if self._previewing.locked():
            raise overloaded()
        return await asyncio.shield(asyncio.ensure_future(self._preview(texts, edits)))

    async def _preview(self, texts: Sequence[Any], edits: Mapping[str, Any]) -> dict[str, Any]:
        async with self._previewing:
            try:
                diff = await _apart(lambda: self.predictor.preview(list(texts), **self.resolved(edits)))
            except MaskMatchError as error:
                raise invalid(str(error)) from error
        found: dict[str, Any] = diff.to_dict()
        return found

    # -- the folder ------------------------------------------------------------------------------------------

    def _folder_hash(self) -> str | None:
        """What identifies the content of the folder; None if there is none."""
        return None if self.folder is None else folder_hash(self.folder)

    async def watch(self) -> None:
        """Load the folder again whenever someone else has saved it, such as another worker."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            async with self._editing:
                if self._folder_hash() in (None, self.model_hash):
                    continue
                try:
                    await self._reload()
                except MaskMatchError as error:  # it serves what it has
                    logger.warning("%s could not be loaded again: %s", self.name, error)

    async def _reload(self) -> None:
        now = self._folder_hash()
        self.predictor = await _apart(lambda: load_predictor(str(self.folder)))
        self.model_hash, self.current = now, self.predictor.pipeline
        before, self._batcher = self._batcher, self._new_batcher()
        self._sets.clear()
        await _apart(before.stop)


def characters(text: Any) -> int:
    """How many characters a text has, in all its fields."""
    return len(text) if isinstance(text, str) else sum(len(str(value)) for value in text.values())


async def _apart(work: Callable[[], Any]) -> Any:
    """Do slow work in another thread, so that other requests do not wait."""
    return await asyncio.get_running_loop().run_in_executor(None, work)


def _with_each_text(
    pipeline: Pipeline, texts: Sequence[Any], wanted: Wanted, k: int
) -> tuple[list[dict[str, Any]], int]:
    """Answers, and the number of tokens, where labels are read with each text: texts are not batched with others."""
    least = pipeline.least_threshold(wanted.threshold) if pipeline.config.multi_label else None
    answers, tokens = [], 0
    for text in texts:
        try:
            prompts = pipeline.tokenize([text])
            ranked = pipeline.answers(prompts, k, threshold=least, novelty=wanted.novelty)
            answers += _as_json(pipeline, ranked, prompts.cut, wanted, k)
            tokens += int(prompts.tokens.sum())
        except MaskMatchError as error:
            answers.append({"error": str(error).removeprefix("Text 0: ")})
    return answers, tokens


def _as_json(
    pipeline: Pipeline,
    ranked: tuple[list[list[tuple[Any, float]]], NDArray[np.float64] | None],
    cut: NDArray[np.bool_],
    wanted: Wanted,
    k: int,
) -> list[dict[str, Any]]:
    """The answers for texts by their nearest labels, and their novelty."""
    answers = json_answers(
        pipeline, *ranked, k, threshold=wanted.threshold, abstain=wanted.abstain, none_label=wanted.none_label
    )
    for answer, is_cut in zip(answers, cut, strict=True):
        if is_cut:
            answer["truncated"] = True
    return answers
