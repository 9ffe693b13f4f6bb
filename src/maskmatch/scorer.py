"""The torch side of a classifier: from weights, texts and labels to label vectors, training data and prediction."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from maskmatch.encoder import Encoder, TokenBatch, encode_prompts
from maskmatch.errors import MaskMatchError, TrainingDivergedError
from maskmatch.kept_labels import KeptLabels
from maskmatch.label_examples import NO_CENTRES, Centres, check_examples, split_examples
from maskmatch.label_vectors import LabelLayout, LabelVectorStore
from maskmatch.mlm_head import Head, HeadConfig
from maskmatch.model import MatchingModel
from maskmatch.prediction import Prediction, tokenize_texts
from maskmatch.prompts import FieldText, PromptTokenizer, TokenizedPrompts
from maskmatch.torch_runtime import TorchRuntime, evaluating

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from maskmatch.config import MatcherConfig
    from maskmatch.labels import LabelSet, LabelText

logger = logging.getLogger("maskmatch")


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
        self._centres = NO_CENTRES
        self._prediction: tuple[LabelSet, int, Prediction] | None = None  # with the labels and weights it is of
        self._diverged = False

    def model(self, labels: LabelSet) -> MatchingModel:
        """The model, made when it is first needed: a label matrix has to know the number of labels."""
        if self._diverged:
            raise TrainingDivergedError("The training of this classifier diverged, so it cannot be used; load it anew.")
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
            readings=(len(config.prompts), len(config.label_prompts)),
        )
        if head is not None and head.weights and model.transform is not None:
            model.transform.take(head.weights)
        model.to(self.encoder.model.device).eval()
        self._find_origins(model)
        return model

    def _find_origins(self, model: MatchingModel) -> None:
        """Read the prompts without a text in them: what they say by themselves is then taken from all vectors.

        It is read once, before training, and stays: training and prediction take away the same.
        """
        config = self.config
        if config.debias in ("inputs", "both"):
            empty = self._tokenizer.pooled(config.prompts, [dict.fromkeys(config.input_fields, FieldText(""))])
            model.input_origin = self.read_prompts(empty, model.input_vectors)[0]  # (masks, dim)
        if config.debias in ("labels", "both"):
            fields = dict.fromkeys(config.label_prompt.fields, FieldText(""))
            empty = self._tokenizer.pooled(config.label_prompts, [fields])
            model.label_origin = self.read_prompts(empty, model.label_prompt_vectors)[0]  # (masks, dim)

    def read_prompts(
        self,
        prompts: TokenizedPrompts,
        read: Callable[[TokenBatch], torch.Tensor],
        doing: str = "reading",
        unit: str = "text",
    ) -> torch.Tensor:
        """What is read of every text: (n, masks, dim)."""
        device, pad_id = self.encoder.model.device, self.encoder.pad_id
        return encode_prompts(prompts, read, pad_id=pad_id, device=device, doing=doing, unit=unit)

    def with_config(self, config: MatcherConfig) -> Scorer:
        """A scorer with another config on the same encoder; what the same method has learned is kept."""
        scorer = Scorer(self.encoder, config, self._head)
        old = self._model
        if old is not None and config.method == self.config.method:
            rows = 1 if old.matrix is None else len(old.matrix.weight)
            scorer._model = scorer._new_model(rows)
            same = (config.similarity, config.multi_label) == (self.config.similarity, self.config.multi_label)
            kept: tuple[str, ...] = ("matrix.", "pair.", "transform.", *(["similarity."] if same else []))
            kept += ("input_origin", "label_origin") if _reads_alike(config, self.config) else ()
            state = {name: value for name, value in old.state_dict().items() if name.startswith(kept)}
            scorer._model.load_state_dict(state, strict=False)
        scorer._store = self._store  # its key tells whether the vectors still hold
        if _reads_alike(config, self.config) and config.moves_labels:
            scorer._centres = self._centres
        elif len(self._centres):
            logger.warning("Texts or labels are read otherwise than in training: training texts no longer move labels.")
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
        self._prediction = None

    def give_up(self) -> None:
        """Refuse to work from now on: training left weights that are no numbers."""
        self.take_centres(NO_CENTRES)
        self.forget_labels()
        self._diverged = True

    def forget_model(self) -> None:
        """Drop what was drawn at random for a method that has not been trained yet."""
        self._model = None
        self._prediction = None

    def select_labels(self, rows: Sequence[int]) -> None:
        """Keep only some labels, where the method has learned a vector for each."""
        if self._model is not None and self._model.matrix is not None:
            self._model.matrix.select(rows)

    # -- texts and labels as tokens --------------------------------------------------------------------------

    def tokenize(self, texts: Sequence[Any], labels: LabelSet | None = None) -> TokenizedPrompts:
        """Texts in their input prompt, and where labels are read with each text, in those of the labels."""
        return tokenize_texts(self._tokenizer, self.config, texts, labels)

    def label_prompts(self, texts: Sequence[LabelText]) -> TokenizedPrompts:
        """Names and phrases in the label prompt, examples in the input prompt."""
        names = [place for place, text in enumerate(texts) if isinstance(text, str)]
        examples = [text.text for text in texts if not isinstance(text, str)]
        fields = [{"label": FieldText(str(texts[place]))} for place in names]
        prompts = self._tokenizer.pooled(self.config.label_prompts, fields)
        if examples:
            check_examples(self.config)
            others = sorted(set(range(len(texts))) - set(names))
            prompts = prompts.followed_by(self.tokenize(examples)).select(np.argsort([*names, *others]))
        if prompts.cut.any():
            logger.warning("%d label texts were longer than the model reads and were shortened.", prompts.cut.sum())
        return prompts

    # -- where training texts lie ----------------------------------------------------------------------------

    @property
    def centres(self) -> Centres:
        """Where the training texts of labels lie: label vectors are moved there."""
        return self._centres

    def take_centres(self, centres: Centres) -> None:
        """Take in where texts of labels lie."""
        self._centres = replace(centres, vectors=centres.vectors.to(self.encoder.model.device))
        self._prediction = None

    # -- prediction ------------------------------------------------------------------------------------------

    def prediction(self, labels: LabelSet) -> Prediction:
        """The prediction path with the weights and labels as they are now; it is kept while these hold."""
        model = self.model(labels)
        weights = self._weights_version(model)
        if self._prediction is None or self._prediction[0] is not labels or self._prediction[1] != weights:
            self._prediction = labels, weights, self._new_prediction(model, labels)
        return self._prediction[2]

    def _new_prediction(self, model: MatchingModel, labels: LabelSet) -> Prediction:
        similarity = model.similarity
        offset = None if similarity.offset is None else similarity.offset.item()
        scale, path = 1 / similarity.temperature, (self.config, self._tokenizer, labels)
        if self.config.labels_in_context:
            present = self.layout(labels).present.numpy()
            kept = KeptLabels.to_come(present, similarity.config, scale=scale, offset=offset)
            return Prediction(*path, kept, TorchRuntime(model), TorchRuntime(model, of_labels=True))
        vectors, present = (tensor.cpu().numpy() for tensor in self.label_vectors(labels))
        kept = KeptLabels.of(vectors, present, similarity.config, scale=scale, offset=offset)
        return Prediction(*path, kept, TorchRuntime(model))

    def label_vectors(self, labels: LabelSet) -> tuple[torch.Tensor, torch.Tensor]:
        """The label vectors (K, phrases, masks, dim) and which phrases there are (K, phrases).

        They are computed only where labels, prompt or weights have changed.
        """
        model = self.model(labels)
        if model.matrix is not None:
            vectors = model.matrix().detach()  # (K, 1, 1, dim), whatever phrases a label has
            return vectors, torch.ones(vectors.shape[:2], dtype=torch.bool, device=vectors.device)
        layout, flat = self.layout(labels), self.label_text_vectors(labels)
        centres = self._centres
        if len(flat) > len(layout.texts):
            flat, of_examples = split_examples(flat, labels)
            centres = centres.joined(of_examples)
        if len(centres):
            flat = centres.move(flat, [label.id for label in labels.labels for _ in label.texts])
        return layout.arrange(flat), layout.present.to(flat.device)

    def label_texts(self, labels: LabelSet) -> Sequence[LabelText]:
        """All that the method reads for labels, examples included."""
        if self.config.method.reads_words:
            return self.layout(labels).texts
        return [part for label in labels.labels for part in label.parts]

    def label_text_vectors(self, labels: LabelSet) -> torch.Tensor:
        """The vectors of all that is read for labels, (F, masks, dim); where they are learned, (K, 1, dim)."""
        model = self.model(labels)
        if model.matrix is not None:
            learned: torch.Tensor = model.matrix().detach()[:, 0]
            return learned
        return self.flat_label_vectors(model, self.label_texts(labels))

    def flat_label_vectors(self, model: MatchingModel, texts: Sequence[LabelText]) -> torch.Tensor:
        """The vectors of label texts, (F, masks, dim), as they are kept."""
        return self._store.look_up(
            texts,
            weights=self._weights_version(model),
            key=self.label_vector_key(texts),
            encode=lambda missing: self._encode_labels(model, missing),
        )

    def read_labels(self, labels: LabelSet, texts: Sequence[LabelText]) -> torch.Tensor:
        """The vectors that label texts have, or would have if they were some label's; they are not kept.

        Args:
            labels: The labels of the classifier.
            texts: The label texts.

        Returns:
            (F, masks, dim)
        """
        return self._encode_labels(self.model(labels), texts)

    def _encode_labels(self, model: MatchingModel, texts: Sequence[LabelText]) -> torch.Tensor:
        """The vectors of label texts, (F, masks, dim)."""
        if self.config.method.label_source == "verbalizer":
            with torch.no_grad():
                return model.word_vectors(self.words(texts))
        with evaluating(model):
            return self.read_prompts(
                self.label_prompts(texts), model.label_prompt_vectors, doing="reading labels", unit="label"
            )

    def words(self, texts: Sequence[LabelText]) -> list[list[int]]:
        """The token ids of labels that are words."""
        return self._tokenizer.words([str(text) for text in texts])

    def label_vector_key(self, texts: Sequence[LabelText]) -> str:
        """What label vectors hang on besides the weights and the label's words."""
        method, config = self.config.method, self.config
        prompts = "/".join(map(str, config.label_prompts))
        freed = "/freed of its empty state" if config.debias in ("labels", "both") else ""
        key = f"{method.label_source}/{method.label_readout}/{config.max_length}/{prompts}{freed}"
        return key if all(isinstance(text, str) for text in texts) else f"{key}/{config.prompt}"

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
                self.label_texts(labels),
                vectors.to(self.encoder.model.device),
                weights=self._weights_version(model),
                key=key,
            )


def _reads_alike(one: MatcherConfig, other: MatcherConfig) -> bool:
    """Whether two configs read the same vectors: by one method, with the same prompts, debiased alike."""
    first, second = ((each.method, each.prompts, each.label_prompts, each.debias) for each in (one, other))
    return first == second
