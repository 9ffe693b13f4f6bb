"""GraphBank: the label bank of an export, whose graph reads texts and label prompts alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskmatch.errors import MaskMatchError
from maskmatch.labels.background import background_names
from maskmatch.labels.bank import LabelBank
from maskmatch.prediction.from_bank import background_key, pipeline_of
from maskmatch.prediction.pipeline import encode_prompts
from maskmatch.prompts import tokenize_label_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.labels import LabelText
    from maskmatch.prediction.from_bank import LogitScale
    from maskmatch.prediction.pipeline import Pipeline, Runtime
    from maskmatch.prediction.search import MeasuredIndex
    from maskmatch.prompts import PromptTokenizer


class GraphBank(LabelBank):
    """The label bank of an export.

    Args:
        config: Task, prompts, method, similarity.
        tokenizer: Turns prompts into tokens.
        logits: How similarities become logits.
        runtime: Computes vectors.
        fixed: Why labels cannot be edited; None: the graph reads label prompts, so they can be.
    """

    def __init__(
        self,
        config: MatcherConfig,
        tokenizer: PromptTokenizer,
        logits: LogitScale,
        runtime: Runtime,
        *,
        fixed: str | None = None,
    ) -> None:
        super().__init__()
        self._config, self._tokenizer, self._logits = config, tokenizer, logits
        self._runtime, self._fixed = runtime, fixed
        self._index: tuple[int, MeasuredIndex] | None = None

    @property
    def config(self) -> MatcherConfig:
        """Task, prompts, method, similarity."""
        return self._config

    @property
    def weights_version(self) -> int:
        """The weights of an export never change."""
        return 0

    @property
    def logits(self) -> LogitScale:
        """How similarities become logits."""
        return self._logits

    @property
    def tokenizer(self) -> PromptTokenizer:
        """Turns prompts into tokens."""
        return self._tokenizer

    @property
    def fixed(self) -> str | None:
        """Why labels cannot be edited; None if they can be."""
        return self._fixed

    def reading(self) -> Callable[[Sequence[LabelText]], NDArray[np.float32]]:
        """A function that encodes label texts: → (F, masks, dim). It does not refer to the bank."""
        config, tokenizer, runtime, fixed = self._config, self._tokenizer, self._runtime, self._fixed

        def read(texts: Sequence[LabelText]) -> NDArray[np.float32]:
            _check_editable(fixed, "no other label can be read")
            prompts = tokenize_label_texts(tokenizer, config, texts)
            return encode_prompts(runtime, prompts, tokenizer.vocabulary.pad_id)

        return read

    def check_editable(self, otherwise: str) -> None:
        """Raise if the graph does not read label prompts, so that labels are fixed."""
        _check_editable(self._fixed, otherwise)

    def check_renamable(self) -> None:
        """Raise if the graph does not read label prompts, and so no other name."""
        self.check_editable("a label cannot be renamed")

    def with_config(self, config: MatcherConfig) -> GraphBank:
        """The same labels with other settings, none of which changes vectors."""
        bank = self.copy()
        vars(bank)["_config"] = config
        index = self.current_index()
        if index is not None:
            bank.take_index(index)
        return bank

    def take_index(self, index: MeasuredIndex) -> None:
        """Take an index over the labels of now."""
        self._version += 1  # the pipeline has it from now on
        self._index = self.version, index

    def take_background(self, vectors: NDArray[np.float32]) -> None:
        """Take the vectors of names from many domains, (B, masks, dim), so that they need not be encoded."""
        self.background_cache.fill(list(background_names()), vectors, background_key(self))

    @property
    def pipeline(self) -> Pipeline:
        """The prediction pipeline with the labels of now."""
        return self.derive(_make_pipeline)

    def current_index(self) -> MeasuredIndex | None:
        """The index over the labels of now, if there is one."""
        return self._index[1] if self._index is not None and self._index[0] == self.version else None

    def _empty(self) -> GraphBank:
        return GraphBank(self._config, self._tokenizer, self._logits, self._runtime, fixed=self._fixed)

    @property
    def runtime(self) -> Runtime:
        """Computes vectors."""
        return self._runtime


def _check_editable(fixed: str | None, otherwise: str) -> None:
    if fixed is not None:
        raise MaskMatchError(f"{fixed}, so {otherwise}; edit the classifier and export it again.")


def _make_pipeline(bank: GraphBank) -> Pipeline:
    runtime = bank.runtime
    in_context = bank.config.labels_in_context
    return pipeline_of(
        bank,
        bank.tokenizer,
        bank.logits,
        runtime,
        label_runtime=runtime if in_context else None,
        index=bank.current_index(),
    )
