"""The one prediction path: from texts and labels to probabilities, with label vectors that are computed once."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from tqdm.auto import tqdm

from maskmatch.encoder import Encoder, length_groups, pad
from maskmatch.errors import MaskMatchError
from maskmatch.label_vectors import LabelLayout, LabelVectorStore
from maskmatch.model import MatchingModel
from maskmatch.prompts import FieldText, PromptTokenizer, TokenizedPrompts, field_texts
from maskmatch.saving import HEAD_FILE
from maskmatch.targets import target_array

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from maskmatch.config import MatcherConfig
    from maskmatch.labels import LabelSet
    from maskmatch.training import TrainingData

logger = logging.getLogger("maskmatch")

BATCH_SIZE = 64


class Scorer:
    """An encoder with its prompts and its model, ready to score texts with labels.

    Args:
        encoder: The pretrained encoder with its tokenizer.
        config: Prompts, method, similarity.
    """

    def __init__(self, encoder: Encoder, config: MatcherConfig) -> None:
        self.encoder = encoder
        self.config = config
        self._tokenizer = PromptTokenizer(encoder.tokenizer, config.max_length)
        self._store = LabelVectorStore()
        self._model: MatchingModel | None = None

    def model(self, labels: LabelSet) -> MatchingModel:
        """The model, made when it is first needed: a label matrix has to know the number of labels."""
        if self._model is None:
            self._model = self._new_model(len(labels))
        return self._model

    def _new_model(self, labels: int) -> MatchingModel:
        config = self.config
        model = MatchingModel(self.encoder.model, config.method, config.similarity, labels, config.multi_label)
        return model.to(self.encoder.model.device).eval()

    def with_config(self, config: MatcherConfig) -> Scorer:
        """A scorer with another config on the same encoder; what the same method has learned is kept."""
        scorer = Scorer(self.encoder, config)
        old = self._model
        if old is not None and config.method == self.config.method:
            rows = 1 if old.matrix is None else len(old.matrix.weight)
            scorer._model = scorer._new_model(rows)
            same = (config.similarity, config.multi_label) == (self.config.similarity, self.config.multi_label)
            kept = ("matrix.", "transform.", "similarity.") if same else ("matrix.", "transform.")
            state = {name: value for name, value in old.state_dict().items() if name.startswith(kept)}
            scorer._model.load_state_dict(state, strict=False)
        scorer._store = self._store  # its key tells whether the vectors still hold
        return scorer

    def forget_labels(self) -> None:
        """Drop the label vectors: the weights have changed."""
        self._store = LabelVectorStore()

    def forget_model(self) -> None:
        """Drop what was drawn at random for a method that has not been trained yet."""
        self._model = None

    def select_labels(self, rows: Sequence[int]) -> None:
        """Keep only some labels, where the method has learned a vector for each."""
        if self._model is not None and self._model.matrix is not None:
            self._model.matrix.select(rows)

    # -- texts and labels as tokens --------------------------------------------------------------------------

    def tokenize(self, texts: Sequence[Any]) -> TokenizedPrompts:
        """Texts in their input prompt."""
        fields = self.config.prompt.fields
        return self._tokenizer(self.config.prompt, [field_texts(text, fields, row) for row, text in enumerate(texts)])

    def _label_prompts(self, texts: Sequence[str]) -> TokenizedPrompts:
        prompts = self._tokenizer(self.config.label_prompt, [{"label": FieldText(text)} for text in texts])
        if prompts.cut.any():
            logger.warning("%d label texts were longer than the model reads and were shortened.", prompts.cut.sum())
        return prompts

    def training_data(self, texts: Sequence[Any], rows: Sequence[Any], labels: LabelSet) -> TrainingData:
        """Texts with their labels, tokenised once for all of a training run."""
        from maskmatch.training import TrainingData

        layout = LabelLayout.of(labels)
        source = self.config.method.label_source
        return TrainingData(
            texts=self.tokenize(texts),
            targets=target_array(rows, labels, self.config.multi_label),
            layout=layout,
            label_prompts=self._label_prompts(layout.texts) if source == "prompt" else None,
            label_words=self._tokenizer.words(layout.texts) if source == "verbalizer" else (),
            pad_id=self._pad_id,
        )

    # -- scores ----------------------------------------------------------------------------------------------

    def probabilities(
        self, prompts: TokenizedPrompts, labels: LabelSet, batch_size: int = BATCH_SIZE
    ) -> Iterator[tuple[NDArray[np.int64], torch.Tensor]]:
        """Row numbers and their probabilities (rows, K), in batches of like length."""
        check_count(batch_size, "batch_size")
        model = self.model(labels)
        was_training = model.training
        model.eval()
        vectors, present = self.label_vectors(labels)
        with tqdm(total=len(prompts), desc="classifying", unit="text", delay=2, leave=False) as bar:
            for rows in length_groups(prompts.lengths, batch_size):
                with torch.inference_mode():
                    batch = pad(prompts, rows, self._pad_id).to(self.encoder.model.device)
                    scores = model.similarity(model.input_vectors(batch), vectors, present)
                    found = scores.sigmoid() if self.config.multi_label else scores.softmax(dim=1)
                yield rows, found.float().cpu()
                bar.update(len(rows))
        model.train(was_training)

    def probability_matrix(
        self, prompts: TokenizedPrompts, labels: LabelSet, batch_size: int = BATCH_SIZE
    ) -> NDArray[np.float32]:
        """All probabilities at once: (n, K)."""
        matrix = np.zeros((len(prompts), len(labels)), dtype=np.float32)
        for rows, found in self.probabilities(prompts, labels, batch_size):
            matrix[rows] = found.numpy()
        return matrix

    def label_vectors(self, labels: LabelSet) -> tuple[torch.Tensor, torch.Tensor]:
        """The label vectors (K, phrases, masks, dim) and which phrases there are (K, phrases).

        They are computed only where labels, prompt or weights have changed.
        """
        model = self.model(labels)
        if model.matrix is not None:
            vectors = model.matrix().detach()  # (K, 1, 1, dim), whatever phrases a label has
            return vectors, torch.ones(vectors.shape[:2], dtype=torch.bool, device=vectors.device)
        layout = LabelLayout.of(labels)
        flat = self._store.look_up(
            layout.texts,
            weights=self._weights_version(model),
            key=self.label_vector_key,
            encode=lambda texts: self._encode_labels(model, texts),
        )
        return layout.arrange(flat), layout.present.to(flat.device)

    def _encode_labels(self, model: MatchingModel, texts: Sequence[str]) -> torch.Tensor:
        """The vectors of label texts, (F, masks, dim)."""
        with torch.no_grad():
            if self.config.method.label_source == "verbalizer":
                return model.word_vectors(self._tokenizer.words(texts))
            prompts = self._label_prompts(texts)
            vectors: torch.Tensor | None = None
            with tqdm(total=len(prompts), desc="reading labels", unit="label", delay=2, leave=False) as bar:
                for rows in length_groups(prompts.lengths, BATCH_SIZE):
                    batch = pad(prompts, rows, self._pad_id).to(self.encoder.model.device)
                    part = model.label_prompt_vectors(batch)
                    if vectors is None:
                        vectors = part.new_empty(len(prompts), *part.shape[1:])
                    vectors[torch.from_numpy(rows)] = part
                    bar.update(len(rows))
        assert vectors is not None
        return vectors

    @property
    def label_vector_key(self) -> str:
        """What label vectors hang on besides the weights and the label's words."""
        method, prompt = self.config.method, self.config.label_prompt
        return f"{method.label_source}/{method.label_readout}/{self.config.max_length}/{prompt}"

    @staticmethod
    def _weights_version(model: MatchingModel) -> int:
        # A change in place counts a tensor's version up, so the sum tells whether any weight was changed by hand; a
        # fused optimizer does not count, so training drops the vectors itself.
        return sum(parameter._version for parameter in model.parameters())

    @property
    def _pad_id(self) -> int:
        return int(self.encoder.tokenizer.pad_token_id or 0)

    # -- what is saved ---------------------------------------------------------------------------------------

    def head(self, labels: LabelSet) -> dict[str, torch.Tensor]:
        """What the method learns besides the encoder and a matrix of label vectors."""
        state = self.model(labels).state_dict()
        elsewhere = ("encoder.", "matrix.")
        return {name: tensor for name, tensor in state.items() if not name.startswith(elsewhere)}

    def load(self, labels: LabelSet, head: Mapping[str, torch.Tensor], vectors: torch.Tensor | None, key: str) -> None:
        """Take in what was saved: what the method has learned, and the label vectors (F, masks, dim) if they hold."""
        model = self.model(labels)
        shapes, expected = ({name: part.shape for name, part in parts.items()} for parts in (head, self.head(labels)))
        if shapes != expected:
            raise MaskMatchError(
                f"{HEAD_FILE} is damaged: it does not hold what the method {self.config.method.name} learns."
            )
        model.load_state_dict(dict(head), strict=False)
        if vectors is None:
            return
        if model.matrix is not None:
            model.matrix.load(vectors)
        else:
            self._store.keep(
                LabelLayout.of(labels).texts,
                vectors.to(self.encoder.model.device),
                weights=self._weights_version(model),
                key=key,
            )


def check_count(value: Any, name: str) -> None:
    """Refuse a number of things that is none."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise MaskMatchError(f"{name} is {value!r}; it has to be a whole number of at least 1.")
