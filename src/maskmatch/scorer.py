"""The one prediction path: from texts and labels to probabilities, with label vectors that are computed once."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.functional import normalize
from tqdm.auto import tqdm

from maskmatch.encoder import BATCH_SIZE, Encoder, encode_prompts, length_groups, pad
from maskmatch.errors import MaskMatchError
from maskmatch.evaluation import best_threshold
from maskmatch.kept_labels import KeptLabels, samples_labels
from maskmatch.label_vectors import LabelLayout, LabelVectorStore
from maskmatch.mlm_head import Head, HeadConfig
from maskmatch.model import MatchingModel
from maskmatch.prompts import FieldText, PromptTokenizer, TokenizedPrompts, field_texts
from maskmatch.search import LabelRows, LabelSearch, make_search, probabilities
from maskmatch.targets import target_array

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from maskmatch.config import MatcherConfig
    from maskmatch.kept_labels import LabelEncoding
    from maskmatch.labels import LabelSet
    from maskmatch.training import TrainingData

logger = logging.getLogger("maskmatch")
ROWS_FOR_OFFSET = 256
"""How many training rows tell from which similarity on a label applies."""
FIRST_LABELS = 16
"""How many labels of a text are looked at first where several may apply."""
SEARCH_QUERIES = 128
"""How many label texts are read as texts to measure an index with."""


@dataclass(frozen=True)
class Judgement:
    """The predicted label of each text with how sure it is; or lists of labels, with the probabilities of all."""

    predicted: list[Any]
    confidence: NDArray[np.float64] | None = None  # (n,)
    probabilities: NDArray[np.float32] | None = None  # (n, K)


class Scorer:
    """An encoder with its prompts and its model, ready to score texts with labels.

    Args:
        encoder: The pretrained encoder with its tokenizer.
        config: Prompts, method, similarity.
        head: The head that the encoder was pretrained with, if it has one and the method uses it.
    """

    def __init__(self, encoder: Encoder, config: MatcherConfig, head: Head | None = None) -> None:
        self.encoder = encoder
        self.config = config
        self._head = head or Head(HeadConfig(), {})
        self._tokenizer = PromptTokenizer(encoder.tokenizer, config.max_length)
        self._store = LabelVectorStore()
        self._model: MatchingModel | None = None
        self._search: tuple[LabelSet, int, LabelSearch] | None = None

    def model(self, labels: LabelSet) -> MatchingModel:
        """The model, made when it is first needed: a label matrix has to know the number of labels."""
        if self._model is None:
            self._model = self._new_model(len(labels))
        return self._model

    def _new_model(self, labels: int) -> MatchingModel:
        config, head = self.config, self._head if self.config.method.has_word_head else None
        model = MatchingModel(
            self.encoder.model,
            config.method,
            config.similarity,
            labels,
            config.multi_label,
            head=None if head is None else head.config,
        )
        if head is not None and head.weights and model.transform is not None:
            model.transform.take(head.weights)
        return model.to(self.encoder.model.device).eval()

    def with_config(self, config: MatcherConfig) -> Scorer:
        """A scorer with another config on the same encoder; what the same method has learned is kept."""
        scorer = Scorer(self.encoder, config, self._head)
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

    @property
    def head_config(self) -> HeadConfig | None:
        """The form of the head over the mask, if the method has one."""
        return self._head.config if self.config.method.has_word_head else None

    @property
    def notes(self) -> list[str]:
        """What a reader of figures should know about how they came to be, in sentences."""
        return [] if self.head_config is None else [self.head_config.note]

    def layout(self, labels: LabelSet) -> LabelLayout:
        """The texts of labels that the method reads."""
        return LabelLayout.of(labels, words=self.config.method.reads_words)

    def forget_labels(self) -> None:
        """Drop the label vectors: the weights have changed."""
        self._store = LabelVectorStore()
        self._search = None

    def forget_model(self) -> None:
        """Drop what was drawn at random for a method that has not been trained yet."""
        self._model = None
        self._search = None

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

    def training_data(
        self,
        texts: Sequence[Any],
        rows: Sequence[Any],
        labels: LabelSet,
        hold: float = 0.0,
        label_encoding: LabelEncoding = "full",
    ) -> TrainingData:
        """Texts with their labels, tokenised once for all of a training run.

        Args:
            texts: The texts.
            rows: The labels of each.
            labels: All labels.
            hold: How much vectors are to be held where they are now.
            label_encoding: Whether a step reads all labels.
        """
        from maskmatch.training import TrainingData

        layout = self.layout(labels)
        source = self.config.method.label_source
        prompts = self.tokenize(texts)
        label_prompts = self._label_prompts(layout.texts) if source == "prompt" else None
        holds = hold > 0 and source == "prompt"  # where labels are learned from nothing, there is nothing to keep
        held = self._vectors_now(prompts, labels) if holds else None
        kept = None
        if label_prompts is not None and samples_labels(label_encoding, len(layout.texts)):
            model = self.model(labels)
            vectors = model.similarity.prepare(self._flat_label_vectors(model, layout))  # (F, dim)
            held_labels = None if held is None else held[len(prompts) :]
            kept = KeptLabels(label_prompts, layout, vectors, self.encoder.pad_id, held=held_labels)
        return TrainingData(
            texts=prompts,
            targets=target_array(rows, labels, self.config.multi_label),
            layout=layout,
            label_prompts=label_prompts,
            label_words=self._tokenizer.words(layout.texts) if source == "verbalizer" else (),
            pad_id=self.encoder.pad_id,
            held=held,
            hold=hold if holds else 0.0,
            kept=kept,
        )

    def _vectors_now(self, prompts: TokenizedPrompts, labels: LabelSet) -> torch.Tensor:
        """The vectors of texts and label texts as they are, of length 1: (n + F, dim)."""
        model = self.model(labels)
        texts = encode_prompts(
            prompts, model.input_vectors, pad_id=self.encoder.pad_id, device=self.encoder.model.device
        )
        flat = self._flat_label_vectors(model, self.layout(labels))
        return normalize(torch.cat([texts.mean(dim=1), flat.mean(dim=1)]), dim=-1).cpu()

    def settle_offset(self, data: TrainingData, labels: LabelSet) -> None:
        """Where a text may have several labels: let as many apply as suit the training rows.

        A short training learns which labels are more similar than others, long before the offset has moved to where
        the encoder's similarities lie.
        """
        some = np.unique(np.linspace(0, len(data.texts) - 1, ROWS_FOR_OFFSET, dtype=np.int64))
        targets = np.asarray(data.targets[some])
        scores = np.zeros(targets.shape)
        for rows, found in self._scores(data.texts.select(some), labels):
            scores[rows] = found.double().cpu().numpy()
        if targets.any():
            self.model(labels).similarity.move_offset(_best_cut(targets, scores))

    # -- scores ----------------------------------------------------------------------------------------------

    def probabilities(
        self, prompts: TokenizedPrompts, labels: LabelSet, batch_size: int = BATCH_SIZE
    ) -> Iterator[tuple[NDArray[np.int64], torch.Tensor]]:
        """Row numbers and their probabilities (rows, K), in batches of like length."""
        similarity = self.model(labels).similarity
        for rows, scores in self._scores(prompts, labels, batch_size):
            with torch.inference_mode():
                found = similarity.applies(scores) if self.config.multi_label else scores.softmax(dim=1)
            yield rows, found.float().cpu()

    def _scores(
        self, prompts: TokenizedPrompts, labels: LabelSet, batch_size: int = BATCH_SIZE
    ) -> Iterator[tuple[NDArray[np.int64], torch.Tensor]]:
        """Row numbers and their scores (rows, K), in batches of like length."""
        similarity = self.model(labels).similarity
        vectors, present = self.label_vectors(labels)
        for rows, inputs in self._input_vectors(prompts, labels, batch_size):
            with torch.inference_mode():
                scores = similarity(inputs, vectors, present)
            yield rows, scores

    def _input_vectors(
        self, prompts: TokenizedPrompts, labels: LabelSet, batch_size: int
    ) -> Iterator[tuple[NDArray[np.int64], torch.Tensor]]:
        """Row numbers and their vectors (rows, masks, dim), in batches of like length."""
        check_count(batch_size, "batch_size")
        model = self.model(labels)
        bar = tqdm(total=len(prompts), desc="classifying", unit="text", delay=2, leave=False)
        with _evaluating(model), bar:
            for rows in length_groups(prompts.lengths, batch_size):
                with torch.inference_mode():
                    batch = pad(prompts, rows, self.encoder.pad_id).to(self.encoder.model.device)
                    vectors = model.input_vectors(batch)
                yield rows, vectors
                bar.update(len(rows))

    def probability_matrix(
        self, prompts: TokenizedPrompts, labels: LabelSet, batch_size: int = BATCH_SIZE
    ) -> NDArray[np.float32]:
        """All probabilities at once: (n, K)."""
        matrix = np.zeros((len(prompts), len(labels)), dtype=np.float32)
        for rows, found in self.probabilities(prompts, labels, batch_size):
            matrix[rows] = found.numpy()
        return matrix

    def best(
        self, prompts: TokenizedPrompts, labels: LabelSet, k: int, batch_size: int = BATCH_SIZE
    ) -> list[list[tuple[Hashable, float]]]:
        """The k best labels of each text with their probabilities, best first."""
        found: list[list[tuple[Hashable, float]]] = [[] for _ in range(len(prompts))]
        search = self.search(labels)
        for rows, inputs in self._input_vectors(prompts, labels, batch_size):
            places, probabilities = self._best_of(search, inputs, labels, k)
            for row, values, chosen in zip(rows, probabilities.tolist(), places.tolist(), strict=True):
                found[row] = [(labels[place], value) for place, value in zip(chosen, values, strict=True)]
        return found

    def above(
        self, prompts: TokenizedPrompts, labels: LabelSet, threshold: float, batch_size: int = BATCH_SIZE
    ) -> list[list[Hashable]]:
        """The labels of each text with at least this probability, best first."""
        found: list[list[Hashable]] = [[] for _ in range(len(prompts))]
        search = self.search(labels)
        for rows, inputs in self._input_vectors(prompts, labels, batch_size):
            k = FIRST_LABELS
            places, probabilities = self._best_of(search, inputs, labels, k)
            while k < len(labels) and bool((probabilities[:, -1] >= threshold).any()):  # more may apply
                k *= 4
                places, probabilities = self._best_of(search, inputs, labels, k)
            counts = (probabilities >= threshold).sum(dim=1).tolist()
            for row, chosen, count in zip(rows, places.tolist(), counts, strict=True):
                found[row] = [labels[place] for place in chosen[:count]]
        return found

    def _best_of(
        self, search: LabelSearch, inputs: torch.Tensor, labels: LabelSet, k: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The positions of the k best labels of texts, and their probabilities: (n, k) each."""
        with torch.inference_mode():
            found = search(inputs, min(k, len(labels)))
            similarity = self.model(labels).similarity
            return found.places, probabilities(similarity, found, len(labels), self.config.multi_label).float().cpu()

    def search(self, labels: LabelSet) -> LabelSearch:
        """The search over labels, kept while they and the weights hold."""
        model = self.model(labels)
        state = self._weights_version(model)
        if self._search is None or self._search[0] is not labels or self._search[1] != state:
            vectors, present = self.label_vectors(labels)  # kept for training too, so not in inference mode
            with torch.inference_mode():
                rows = LabelRows.of(model.similarity, vectors, present)
                search = make_search(rows, self.config.search, lambda: self._search_queries(labels))
            self._search = (labels, state, search)
        return self._search[2]

    def _search_queries(self, labels: LabelSet) -> torch.Tensor:
        """Vectors to measure an index with, (n, masks, dim): label texts read as texts, and points midway between."""
        texts = self.layout(labels).texts
        some = np.unique(np.linspace(0, len(texts) - 1, SEARCH_QUERIES, dtype=np.int64))
        rows = [dict.fromkeys(self.config.prompt.fields, FieldText(texts[place])) for place in some]
        prompts = self._tokenizer(self.config.prompt, rows)
        model = self.model(labels)
        with _evaluating(model):
            read = encode_prompts(
                prompts, model.input_vectors, pad_id=self.encoder.pad_id, device=self.encoder.model.device
            )
        return torch.cat([read, (read + read.roll(len(read) // 2, dims=0)) / 2])

    def judge(self, prompts: TokenizedPrompts, labels: LabelSet, batch_size: int = BATCH_SIZE) -> Judgement:
        """What is predicted for each text, and how sure that is."""
        if not self.config.multi_label:
            best = [pairs[0] for pairs in self.best(prompts, labels, 1, batch_size)]
            return Judgement([id_ for id_, _ in best], confidence=np.array([value for _, value in best]))
        matrix = self.probability_matrix(prompts, labels, batch_size)
        chosen = labels_above(torch.from_numpy(matrix), labels, self.config.threshold)
        return Judgement(list(chosen), probabilities=matrix)

    def label_vectors(self, labels: LabelSet) -> tuple[torch.Tensor, torch.Tensor]:
        """The label vectors (K, phrases, masks, dim) and which phrases there are (K, phrases).

        They are computed only where labels, prompt or weights have changed.
        """
        model = self.model(labels)
        if model.matrix is not None:
            vectors = model.matrix().detach()  # (K, 1, 1, dim), whatever phrases a label has
            return vectors, torch.ones(vectors.shape[:2], dtype=torch.bool, device=vectors.device)
        layout = self.layout(labels)
        flat = self._flat_label_vectors(model, layout)
        return layout.arrange(flat), layout.present.to(flat.device)

    def _flat_label_vectors(self, model: MatchingModel, layout: LabelLayout) -> torch.Tensor:
        """The vectors of all label texts, (F, masks, dim)."""
        return self._store.look_up(
            layout.texts,
            weights=self._weights_version(model),
            key=self.label_vector_key,
            encode=lambda texts: self._encode_labels(model, texts),
        )

    def _encode_labels(self, model: MatchingModel, texts: Sequence[str]) -> torch.Tensor:
        """The vectors of label texts, (F, masks, dim)."""
        if self.config.method.label_source == "verbalizer":
            with torch.no_grad():
                return model.word_vectors(self._tokenizer.words(texts))
        with _evaluating(model):
            return encode_prompts(
                self._label_prompts(texts),
                model.label_prompt_vectors,
                pad_id=self.encoder.pad_id,
                device=self.encoder.model.device,
                doing="reading labels",
                unit="label",
            )

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
            raise MaskMatchError(f"it does not hold what the method {self.config.method.name} learns.")
        model.load_state_dict(dict(head), strict=False)
        if vectors is None:
            return
        if model.matrix is not None:
            model.matrix.load(vectors)
        else:
            self._store.keep(
                self.layout(labels).texts,
                vectors.to(self.encoder.model.device),
                weights=self._weights_version(model),
                key=key,
            )


@contextmanager
def _evaluating(model: MatchingModel) -> Iterator[None]:
    """Without dropout, also when training looks at dev data."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def labels_above(probabilities: torch.Tensor, labels: LabelSet, threshold: float) -> list[list[Hashable]]:
    """Per row, the labels at or above a threshold, best first."""
    order = probabilities.argsort(dim=1, descending=True).tolist()
    counts = (probabilities >= threshold).sum(dim=1).tolist()
    return [[labels[place] for place in places[:count]] for places, count in zip(order, counts, strict=True)]


def _best_cut(targets: NDArray[Any], scores: NDArray[np.float64]) -> float:
    """The score from which on labels had best apply: 0 if that is as good, else half-way to the next lower score."""
    largest = float(np.abs(scores).max()) or 1.0
    squashed = 0.5 + scores / (2 * largest)  # as probabilities would be, but none so near to 1 that they meet
    given = squashed >= best_threshold(targets, squashed)
    lowest = float(scores[given].min())
    highest_below = float(scores[~given].max()) if not given.all() else lowest - 1.0
    return 0.0 if highest_below < 0 <= lowest else (lowest + highest_below) / 2


def check_count(value: Any, name: str) -> None:
    """Refuse a number of things that is none."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise MaskMatchError(f"{name} is {value!r}; it has to be a whole number of at least 1.")
