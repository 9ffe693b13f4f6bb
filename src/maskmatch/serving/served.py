"""A served classifier: classifies through the batcher, with its own labels or those of a request."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError
from maskmatch.labels import LabelSet, label_to_json
from maskmatch.prediction.answers import DIGITS, json_answer
from maskmatch.serving.batcher import Batcher, QueueFullError
from maskmatch.serving.errors import RequestError, invalid, overloaded
from maskmatch.serving.loading import load_predictor
from maskmatch.storage.integrity import revision
from maskmatch.storage.layout import CONFIG_FILE, EXPORT_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from maskmatch.prediction.editing import EditablePredictor
    from maskmatch.prediction.pipeline import Pipeline
    from maskmatch.prompts import TokenizedPrompts
    from maskmatch.serving.config import ServeConfig
    from maskmatch.serving.metrics import Metrics

logger = logging.getLogger("maskmatch")

WATCH_SECONDS = 1.0
"""How often it is noticed that someone else has saved the folder."""

SCORED_AT_ONCE = 200_000
"""From how many scores on they are computed in another thread, so that other requests do not wait."""


@dataclass(frozen=True)
class Wanted:
    """What a request wants to know of each text.

    Attributes:
        top_k: How many labels, best first.
        threshold: With several labels per text: the probability from which a label applies; None: the classifier's.
        abstain: With one label per text: the probability below which the answer is ``none_label``; None: its own.
        none_label: The answer below that.
        novelty: Whether to compute the novelty of each text.
    """

    top_k: int = 3
    threshold: float | None = None
    abstain: float | None = None
    none_label: str | None = None
    novelty: bool = False


class ServedModel:
    """A classifier that answers requests.

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
        self._editing = asyncio.Lock()
        self._revision = self._folder_revision()
        self._batcher = self._new_batcher()

    @property
    def waiting(self) -> int:
        """How many texts wait to be encoded."""
        return self._batcher.waiting

    @property
    def multi_label(self) -> bool:
        """Whether a text may have several labels."""
        return self.predictor.config.multi_label

    def stop(self) -> None:
        """Encode what waits, then end."""
        self._batcher.stop()

    def _new_batcher(self) -> Batcher:
        pipeline, config = self.predictor.pipeline, self._config
        return Batcher(
            pipeline.runtime,
            pipeline.tokenizer.vocabulary.pad_id,
            max_tokens=config.max_batch_tokens,
            max_wait=config.max_wait_ms / 1000,
            limit=config.queue,
            observe=self._metrics.observe_batch,
        )

    # -- the folder ------------------------------------------------------------------------------------------

    def _folder_revision(self) -> str | None:
        """What identifies the content of the folder; None if there is none."""
        if self.folder is None:
            return None
        return revision(self.folder / EXPORT_FILE) or revision(self.folder / CONFIG_FILE)

    async def watch(self) -> None:
        """Load the folder again whenever someone else has saved it, such as another worker."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if self._folder_revision() in (None, self._revision):
                continue
            async with self._editing:
                try:
                    await self._reload()
                except MaskMatchError as error:  # it serves what it has
                    logger.warning("%s could not be loaded again: %s", self.name, error)

    async def _reload(self) -> None:
        now = self._folder_revision()
        self.predictor = await _apart(True, lambda: load_predictor(str(self.folder)))
        before, self._batcher = self._batcher, self._new_batcher()
        self._revision = now
        self._sets.clear()
        await _apart(True, before.stop)

    # -- classifying -----------------------------------------------------------------------------------------

    async def classify(self, texts: Sequence[Any], wanted: Wanted, labels: Any = None) -> list[dict[str, Any]]:
        """The answer for each text; a text that cannot be read gets an object with "error" instead."""
        pipeline = await self._pipeline(labels)
        if wanted.threshold is not None and not self.multi_label:
            raise invalid("threshold needs a classifier that gives several labels per text; use abstain.")
        if wanted.abstain is not None and self.multi_label:
            raise invalid("abstain needs a classifier that gives one label per text; use threshold.")
        prompts, problems = await self._tokenize(pipeline, texts)
        answers = [] if prompts is None else await self._answers(pipeline, prompts, wanted)
        self._metrics.texts.inc(len(answers))
        found, rest = [], iter(answers)
        for place in range(len(texts)):
            found.append({"error": problems[place]} if place in problems else next(rest))
        return found

    async def _tokenize(
        self, pipeline: Pipeline, texts: Sequence[Any]
    ) -> tuple[TokenizedPrompts | None, dict[int, str]]:
        """The texts that can be read in their prompts, and what is wrong with the others, by their numbers."""
        try:
            return (await _apart(len(texts) > 8, lambda: pipeline.tokenize(texts))) if texts else None, {}
        except MaskMatchError:
            pass
        parts, problems = [], {}
        for place, text in enumerate(texts):
            try:
                parts.append(pipeline.tokenize([text]))
            except MaskMatchError as error:
                problems[place] = str(error).removeprefix("Text 0: ")
        if not parts:
            return None, problems
        good = [text for place, text in enumerate(texts) if place not in problems]
        return pipeline.tokenize(good), problems

    async def _answers(self, pipeline: Pipeline, prompts: TokenizedPrompts, wanted: Wanted) -> list[dict[str, Any]]:
        several = self.multi_label
        least = pipeline.least_threshold(wanted.threshold) if several else None
        k = min(wanted.top_k, len(pipeline.labels))
        if pipeline.scorer.in_context:  # labels are read with each text
            lists, far = await _apart(
                True, lambda: pipeline.answers(prompts, k, threshold=least, novelty=wanted.novelty)
            )
        else:
            try:
                vectors = await self._batcher.encode(prompts)
            except QueueFullError:
                raise overloaded() from None
            slow = len(vectors) * len(pipeline.labels) > SCORED_AT_ONCE or wanted.novelty
            lists, far = await _apart(slow, lambda: _scored(pipeline, vectors, k, least, wanted.novelty))
        abstain = pipeline.config.abstain if wanted.abstain is None else wanted.abstain
        answers = []
        for place, ranked in enumerate(lists):
            applying = pipeline.applying(ranked, wanted.threshold) if several else None
            answer = json_answer(ranked, k, applying, abstain=abstain, none_label=wanted.none_label)
            more = {} if far is None else {"novelty": round(float(far[place]), DIGITS)}
            answers.append({**answer, **more})
        return answers

    # -- labels ----------------------------------------------------------------------------------------------

    async def _pipeline(self, labels: Any) -> Pipeline:
        """The pipeline with the labels of a request; they are encoded once, and cached."""
        if labels is None:
            if not self.own_labels:
                raise invalid("There are no labels; give them with the request.")
            return self.predictor.pipeline
        try:
            label_set = LabelSet.of(labels)
        except MaskMatchError as error:
            raise invalid(str(error)) from error
        most = self._config.max_labels
        if len(label_set) > most:
            raise RequestError(413, "too_many_labels", f"The request has {len(label_set)} labels; {most} are allowed.")
        if len(label_set) < 2 and not self.multi_label:
            raise invalid("One label cannot be told from others; give at least two.")
        key = _digest(label_set)
        known = self._sets.get(key)
        if known is None:
            known = self._sets[key] = asyncio.ensure_future(_apart(True, lambda: self._encode(label_set)))
            known.add_done_callback(lambda done: self._drop_failed(key, done))
            while len(self._sets) > self._config.label_sets:
                self._sets.popitem(last=False)
        self._sets.move_to_end(key)
        try:
            return await asyncio.shield(known)  # another request may wait for the same labels
        except MaskMatchError as error:
            raise invalid(str(error)) from error

    def _drop_failed(self, key: str, done: asyncio.Future[Pipeline]) -> None:
        if (done.cancelled() or done.exception() is not None) and self._sets.get(key) is done:
            del self._sets[key]

    def _encode(self, labels: LabelSet) -> Pipeline:
        bank = self.predictor.bank.with_labels(labels)
        pipeline = self.predictor.pipeline_with(bank)
        self._metrics.labels_encoded.inc(len(labels))
        return pipeline

    @property
    def etag(self) -> str:
        """Changes with the labels."""
        return f'"{_digest(self.predictor.bank.known_labels)[:32]}"'

    def labels_json(self) -> list[dict[str, Any]]:
        """The labels as plain JSON."""
        return [label_to_json(label) for label in self.predictor.bank.known_labels.labels]

    async def edit(self, expected: str, edits: dict[str, Any], *, save: bool) -> None:
        """Edit labels, if they are still those that the editor saw; all edits, or none."""
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
            try:
                await _apart(True, lambda: self._edit(edits, save))
            except MaskMatchError as error:
                raise invalid(str(error)) from error

    def _edit(self, edits: dict[str, Any], save: bool) -> None:
        predictor = self.predictor.edit_labels(**edits)
        _ = predictor.pipeline  # encoded before the next request
        self._metrics.labels_encoded.inc(len(edits["rename"]) + len(edits["add"] or ()))
        self._sets.clear()
        if save:
            assert self.folder is not None
            predictor.save_pretrained(self.folder)
            self._revision = self._folder_revision()

    async def preview(self, texts: Sequence[Any], edits: dict[str, Any]) -> dict[str, Any]:
        """Which of these texts would get another label."""
        try:
            diff = await _apart(True, lambda: self.predictor.preview(list(texts), **edits))
        except MaskMatchError as error:
            raise invalid(str(error)) from error
        found: dict[str, Any] = diff.to_dict()
        return found


async def _apart(slow: bool, work: Callable[[], Any]) -> Any:
    """Do work in another thread if it is slow, so that other requests do not wait."""
    return await asyncio.get_running_loop().run_in_executor(None, work) if slow else work()


def _scored(
    pipeline: Pipeline, vectors: NDArray[np.float32], k: int, threshold: float | None, novelty: bool
) -> tuple[list[list[tuple[Any, float]]], NDArray[np.float64] | None]:
    return pipeline.nearest(vectors, k, threshold), pipeline.novelty_of(vectors) if novelty else None


def _digest(labels: LabelSet) -> str:
    data = [label_to_json(label) for label in labels.labels]
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
