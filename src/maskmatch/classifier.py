"""MaskMatcher: the classifier that users meet."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from tqdm.auto import tqdm

from maskmatch.config import MatcherConfig, TrainingConfig
from maskmatch.data import Examples, is_table, load_examples
from maskmatch.encoder import Encoder, find_model, length_groups, pad
from maskmatch.errors import MaskMatchError
from maskmatch.evaluation import EvaluationReport, best_threshold, evaluate_predictions, multi_label_micro_f1
from maskmatch.label_vectors import LabelLayout, LabelVectorStore
from maskmatch.labels import LabelSet, LabelsLike
from maskmatch.model import MatchingModel
from maskmatch.prompts import FieldText, PromptTokenizer, TokenizedPrompts, field_texts
from maskmatch.saving import HEAD_FILE, SavedModel, is_saved, push_model, read_model, write_model
from maskmatch.targets import check_trainable, has_several, labels_in, plain_labels, target_array
from maskmatch.whole_folder import recover

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from transformers import TrainerCallback

    from maskmatch.config import TrainingSummary
    from maskmatch.methods import Method
    from maskmatch.similarity import SimilarityConfig, SimilarityKind
    from maskmatch.tasks import Task
    from maskmatch.training import TrainingData

logger = logging.getLogger("maskmatch")

BATCH_SIZE = 64


class MaskMatcher:
    """Classifies texts by the names of labels. Make one with :meth:`from_pretrained`.

    Attributes:
        encoder: The pretrained encoder with its tokenizer.
        config: Task, prompts, method, similarity.
        labels: The labels, in the order of ``predict_proba``'s columns; None before they are known.
        training_: What the last ``fit`` did.
        report_: The last evaluation; the model card tells its figures while the classifier stays as it is.
        cut_: How many texts of the last call were longer than the model reads, and were shortened.
    """

    def __init__(self, encoder: Encoder, config: MatcherConfig, labels: LabelSet | None = None) -> None:
        self.encoder = encoder
        self.config = config
        self.labels = labels
        self.training_: TrainingSummary | None = None
        self.report_: EvaluationReport | None = None
        self.cut_ = 0
        self._figures: Mapping[str, Any] | None = None  # of the last evaluation, while they hold
        self._store = LabelVectorStore()
        self._tokenizer = PromptTokenizer(encoder.tokenizer, config.max_length)
        self._model: MatchingModel | None = None

    @classmethod
    def from_pretrained(
        cls,
        model: str | Path | None = None,
        labels: LabelsLike | None = None,
        *,
        task: str | Task | None = None,
        prompt: str | None = None,
        label_prompt: str | None = None,
        method: str | Method | None = None,
        similarity: SimilarityKind | SimilarityConfig | None = None,
        max_length: int | None = None,
        multi_label: bool | None = None,
        device: str | None = None,
    ) -> MaskMatcher:
        """Load a classifier: a saved one, or a new one on a pretrained encoder.

        Args:
            model: None for the embedded default; the folder of a saved classifier or of an encoder; or the id
                of either on the hub.
            labels: Names, ``{name: description}``, ``{name: [phrases]}``, or a LabelSet. May be left out when
                ``fit`` follows.
            task: A preset ("topic", "intent", "sentiment", …), or a Task. It brings the fields and prompts.
            prompt: An input prompt instead of the task's.
            label_prompt: A label prompt instead of the task's.
            method: "mask-matching", or one of the methods it is compared with.
            similarity: "cosine" or "dot", or a SimilarityConfig with its temperature.
            max_length: The most tokens of a prompted text; longer texts are shortened, and counted.
            multi_label: Whether a text may have several labels. None: as the training data shows.
            device: Where to compute; None: on a GPU if there is one.
        """
        if model is not None:
            recover(Path(model).expanduser())
        folder, source = find_model(model)
        options = {
            "task": task,
            "prompt": prompt,
            "label_prompt": label_prompt,
            "method": method,
            "similarity": similarity,
            "multi_label": multi_label,
        }
        if is_saved(folder):
            saved = read_model(folder, source)
            _move(saved.encoder, device)
            matcher = cls._from_saved(saved)
            length = None if max_length is None else matcher.encoder.max_length(max_length)
            matcher._reconfigure(matcher.config.changed(**options, max_length=length))
            if labels is not None:
                matcher._replace_labels(LabelSet.of(labels))
        else:
            encoder = Encoder.load(folder, source)
            _move(encoder, device)
            config = MatcherConfig.make(**options, max_length=encoder.max_length(max_length))  # type: ignore[arg-type]
            matcher = cls(encoder, config, None if labels is None else LabelSet.of(labels))
        return matcher

    # -- training --------------------------------------------------------------------------------------------

    def fit(
        self,
        texts: Any,
        labels: Any = None,
        *,
        dev: Any = None,
        training: TrainingConfig | None = None,
        callbacks: Sequence[TrainerCallback] = (),
        **options: Any,
    ) -> MaskMatcher:
        """Train on examples. A second call trains on from where the first one ended.

        Args:
            texts: Strings or dicts of fields; or a data frame or a Dataset that holds the labels too.
            labels: One label a text, or a list of labels a text; with a data frame, the name of its column.
            dev: Texts and labels, ``(texts, labels)``, or a data frame that holds both, to choose the best
                weights by (and the threshold, with several labels a text).
            training: How to train.
            callbacks: Callbacks of transformers' Trainer.
            **options: Fields of TrainingConfig, such as ``epochs``, ``learning_rate``, ``seed``.
        """
        config = _training_config(training or TrainingConfig(), options)
        examples = self._examples(texts, labels, want_labels=True)
        before = self.labels, self.config, self._model
        try:
            self._fit(examples, dev, config, callbacks)
        except MaskMatchError:  # nothing was trained, so nothing is taken from rows that were refused
            self.labels, self.config, self._model = before
            raise
        return self

    def _fit(
        self, examples: Examples, dev: Any, config: TrainingConfig, callbacks: Sequence[TrainerCallback]
    ) -> None:
        from transformers import set_seed

        from maskmatch.training import train

        rows = self._take_labels(examples)
        set_seed(config.seed)  # before anything is drawn, such as a label matrix
        if self.training_ is None:
            self._model = None  # what an earlier call may have drawn does not follow the seed
        model = self._ready_model()
        data = self._training_data(examples.texts, rows)
        self._report_cut(data.texts)
        evaluate = None
        if dev is not None:
            dev_texts, dev_labels = (dev, None) if is_table(dev) else dev
            dev_examples = self._examples(dev_texts, dev_labels, want_labels=True)
            dev_rows = plain_labels(dev_examples.labels or [], self.config.multi_label)
            prompts = self._tokenize(dev_examples.texts)

            def evaluate() -> dict[str, float]:
                self._store = LabelVectorStore()
                return self._dev_figures(prompts, dev_rows)

        try:
            self.training_ = train(model, data, config, evaluate, callbacks)
        finally:  # a fused optimizer changes weights without counting their versions up
            self._store = LabelVectorStore()
        self._figures = None
        if self.config.multi_label and self.training_.dev is not None:
            self._reconfigure(replace(self.config, threshold=self.training_.dev["threshold"]))

    def _take_labels(self, examples: Examples) -> list[Any]:
        """The labels of training rows, checked; they are the classifier's label set if it has none."""
        assert examples.labels is not None
        several = has_several(examples.labels)
        if several and not self.config.multi_label:
            if self.training_ is not None:
                raise MaskMatchError(
                    "This classifier was trained with one label a text; these rows have several."
                )
            self._reconfigure(replace(self.config, multi_label=True))
        rows = plain_labels(examples.labels, self.config.multi_label)
        check_trainable(rows, self.labels, self.config.multi_label)
        if self.labels is None:
            found = labels_in(rows, self.config.multi_label)
            names = examples.label_names or {}
            self.labels = LabelSet.of({id_: names[id_] for id_ in found} if names else found)
        return rows

    def _training_data(self, texts: Sequence[Any], rows: Sequence[Any]) -> TrainingData:
        from maskmatch.training import TrainingData

        assert self.labels is not None
        layout = LabelLayout.of(self.labels)
        source = self.config.method.label_source
        return TrainingData(
            texts=self._tokenize(texts),
            targets=target_array(rows, self.labels, self.config.multi_label),
            layout=layout,
            label_prompts=self._label_prompts(layout.texts) if source == "prompt" else None,
            label_words=self._tokenizer.words(layout.texts) if source == "verbalizer" else (),
            pad_id=self._pad_id,
        )

    def _dev_figures(self, prompts: TokenizedPrompts, rows: Sequence[Any]) -> dict[str, float]:
        assert self.labels is not None
        if not self.config.multi_label:
            right = 0
            for batch, probabilities in self._probabilities(prompts):
                best = probabilities.argmax(dim=1).tolist()
                right += sum(self.labels[place] == rows[row] for place, row in zip(best, batch, strict=True))
            return {"score": right / len(rows), "accuracy": right / len(rows)}
        matrix = np.zeros((len(prompts), len(self.labels)), dtype=np.float32)
        for batch, probabilities in self._probabilities(prompts):
            matrix[batch] = probabilities.numpy()
        threshold = best_threshold(target_array(rows, self.labels, multi_label=True), matrix)
        found = _above(torch.from_numpy(matrix), threshold)
        micro = multi_label_micro_f1(rows, [[self.labels[place] for place in places] for places in found])
        return {"score": micro, "micro_f1": micro, "threshold": threshold}

    # -- prediction ------------------------------------------------------------------------------------------

    def predict(self, texts: Any, *, batch_size: int = BATCH_SIZE) -> list[Any]:
        """The best label of each text, as the user gave it; with several labels a text, a list of them."""
        prompts = self._read(texts)
        labels = self._known_labels()
        found: list[Any] = [None] * len(prompts)
        for rows, probabilities in self._probabilities(prompts, batch_size):
            if self.config.multi_label:
                for row, chosen in zip(rows, _above(probabilities, self.config.threshold), strict=True):
                    found[row] = [labels[place] for place in chosen]
            else:
                for row, place in zip(rows, probabilities.argmax(dim=1).tolist(), strict=True):
                    found[row] = labels[place]
        return found

    def predict_proba(self, texts: Any, *, batch_size: int = BATCH_SIZE) -> NDArray[np.float32]:
        """The probability of each label: (n, K), columns in the order of ``labels``."""
        prompts = self._read(texts)
        matrix = np.zeros((len(prompts), len(self._known_labels())), dtype=np.float32)
        for rows, probabilities in self._probabilities(prompts, batch_size):
            matrix[rows] = probabilities.numpy()
        return matrix

    def top_k(
        self, texts: Any, k: int = 5, *, batch_size: int = BATCH_SIZE
    ) -> list[list[tuple[Hashable, float]]]:
        """The k best labels of each text with their probabilities, best first."""
        _check_count(k, "k")
        prompts = self._read(texts)
        labels = self._known_labels()
        found: list[list[tuple[Hashable, float]]] = [[] for _ in range(len(prompts))]
        for rows, probabilities in self._probabilities(prompts, batch_size):
            best = probabilities.topk(min(k, len(labels)), dim=1)
            for row, values, places in zip(rows, best.values.tolist(), best.indices.tolist(), strict=True):
                found[row] = [(labels[place], value) for place, value in zip(places, values, strict=True)]
        return found

    def evaluate(self, texts: Any, labels: Any = None, *, batch_size: int = BATCH_SIZE) -> EvaluationReport:
        """Measure the classifier on labelled texts. A label it does not have counts as wrong."""
        examples = self._examples(texts, labels, want_labels=True)
        assert examples.labels is not None
        multi_label = self.config.multi_label
        if has_several(examples.labels) and not multi_label:
            raise MaskMatchError("These rows have several labels each, but the classifier gives one a text.")
        truth = plain_labels(examples.labels, multi_label)
        started = time.perf_counter()
        probabilities = confidence = None
        if multi_label:
            probabilities = self.predict_proba(examples.texts, batch_size=batch_size)
            known = self._known_labels()
            predicted: list[Any] = [
                [known[place] for place in chosen]
                for chosen in _above(torch.from_numpy(probabilities), self.config.threshold)
            ]
        else:
            best = [pairs[0] for pairs in self.top_k(examples.texts, 1, batch_size=batch_size)]
            predicted, confidence = [id_ for id_, _ in best], np.array([value for _, value in best])
        self.report_ = evaluate_predictions(
            examples.texts,
            truth,
            predicted,
            labels=list(self._known_labels()),
            confidence=confidence,
            probabilities=probabilities,
            multi_label=multi_label,
            threshold=self.config.threshold if multi_label else None,
            cut=self.cut_,
            seconds=time.perf_counter() - started,
        )
        self._figures = _headline(self.report_)
        return self.report_

    def _probabilities(
        self, prompts: TokenizedPrompts, batch_size: int = BATCH_SIZE
    ) -> Iterator[tuple[NDArray[np.int64], torch.Tensor]]:
        """The one prediction path: row numbers and their probabilities (rows, K), batch by batch."""
        _check_count(batch_size, "batch_size")
        model = self._ready_model()
        was_training = model.training
        model.eval()
        labels, present = self._label_vectors()
        groups = length_groups(prompts.lengths, batch_size)
        with tqdm(total=len(prompts), desc="classifying", unit="text", delay=2, leave=False) as bar:
            for rows in groups:
                with torch.inference_mode():
                    batch = pad(prompts, rows, self._pad_id).to(self._device)
                    scores = model.similarity(model.input_vectors(batch), labels, present)
                    probabilities = scores.sigmoid() if self.config.multi_label else scores.softmax(dim=1)
                yield rows, probabilities.float().cpu()
                bar.update(len(rows))
        model.train(was_training)

    def _label_vectors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The label vectors (K, phrases, masks, dim) and which phrases there are (K, phrases).

        They are computed only where labels, prompt or weights changed.
        """
        model = self._ready_model()
        if model.matrix is not None:
            if self.training_ is None:
                raise MaskMatchError(
                    f"The method {self.config.method.name} learns its labels: call fit before predicting."
                )
            vectors = model.matrix().detach()  # (K, 1, 1, dim), whatever phrases a label has
            return vectors, torch.ones(vectors.shape[:2], dtype=torch.bool, device=vectors.device)
        layout = LabelLayout.of(self._known_labels())
        flat = self._store.look_up(
            layout.texts,
            weights=self._weights_version,
            key=self._label_vector_key,
            encode=self._encode_labels,
        )
        return layout.arrange(flat), layout.present.to(self._device)

    def _encode_labels(self, texts: Sequence[str]) -> torch.Tensor:
        """The vectors of label texts, (F, masks, dim)."""
        model = self._ready_model()
        with torch.no_grad():
            if self.config.method.label_source == "verbalizer":
                return model.word_vectors(self._tokenizer.words(texts))
            prompts = self._label_prompts(texts)
            vectors: torch.Tensor | None = None
            with tqdm(total=len(prompts), desc="reading labels", unit="label", delay=2, leave=False) as bar:
                for rows in length_groups(prompts.lengths, BATCH_SIZE):
                    part = model.label_prompt_vectors(pad(prompts, rows, self._pad_id).to(self._device))
                    if vectors is None:
                        vectors = part.new_empty(len(prompts), *part.shape[1:])
                    vectors[torch.from_numpy(rows)] = part
                    bar.update(len(rows))
        assert vectors is not None
        return vectors

    # -- labels ----------------------------------------------------------------------------------------------

    def add_labels(self, labels: LabelsLike) -> MaskMatcher:
        """Add labels, which can be predicted at once: only the new names are read."""
        if not self.config.method.reads_labels:
            raise MaskMatchError(
                f"The method {self.config.method.name} learns a vector per label, so a label cannot be added "
                "without training; mask-matching can."
            )
        self._set_labels(LabelSet.of(labels) if self.labels is None else self.labels.added(labels))
        return self

    def rename_label(self, old: Hashable, new: Hashable) -> MaskMatcher:
        """Give a label another name."""
        self._set_labels(self._known_labels().renamed(old, new))
        return self

    def remove_labels(self, labels: Sequence[Hashable]) -> MaskMatcher:
        """Take labels away."""
        old = self._known_labels()
        new = old.removed(labels)
        if self._model is not None and self._model.matrix is not None:
            self._model.matrix.select([old.position(id_) for id_ in new])
        self._set_labels(new)
        return self

    def _replace_labels(self, labels: LabelSet) -> None:
        if not self.config.method.reads_labels:
            raise MaskMatchError(
                f"The method {self.config.method.name} learns a vector per label, so its labels cannot be "
                "replaced."
            )
        self._set_labels(labels)

    def _set_labels(self, labels: LabelSet) -> None:
        self.labels = labels
        self._figures = None

    def _known_labels(self) -> LabelSet:
        if self.labels is None:
            raise MaskMatchError("There are no labels yet: give them to from_pretrained, or call fit first.")
        return self.labels

    # -- saving ----------------------------------------------------------------------------------------------

    def save_pretrained(self, folder: str | Path) -> Path:
        """Save the classifier in a folder, whole or not at all."""
        return write_model(self._saved(), Path(folder).expanduser())

    def push_to_hub(self, repo_id: str, *, private: bool = False, token: str | None = None) -> str:
        """Upload the classifier with its model card to the hub; returns the address of the commit."""
        return push_model(self._saved(), repo_id, private=private, token=token)

    def _saved(self) -> SavedModel:
        vectors, present = self._label_vectors()  # (K, phrases, masks, dim)
        return SavedModel(
            encoder=self.encoder,
            config=self.config,
            labels=self._known_labels(),
            label_vectors=vectors[present],  # (F, masks, dim)
            label_vector_key=self._label_vector_key,
            head=_head(self._ready_model()),
            training=self.training_,
            evaluation=self._figures,
        )

    @classmethod
    def _from_saved(cls, saved: SavedModel) -> MaskMatcher:
        matcher = cls(saved.encoder, saved.config, saved.labels)
        matcher.training_ = saved.training
        matcher._figures = saved.evaluation
        model = matcher._ready_model()
        shapes, expected = (
            {name: tensor.shape for name, tensor in head.items()} for head in (saved.head, _head(model))
        )
        if shapes != expected:
            raise MaskMatchError(
                f"{HEAD_FILE} is damaged: it does not hold what the method {saved.config.method.name} learns."
            )
        model.load_state_dict(dict(saved.head), strict=False)
        if model.matrix is not None and saved.label_vectors is not None:
            model.matrix.load(saved.label_vectors)
        elif saved.label_vectors is not None:
            matcher._store.keep(
                LabelLayout.of(saved.labels).texts,
                saved.label_vectors.to(matcher._device),
                weights=matcher._weights_version,
                key=saved.label_vector_key,
            )
        return matcher

    # -- the way in ------------------------------------------------------------------------------------------

    @property
    def _label_vector_key(self) -> str:
        """What label vectors hang on besides the weights and the label's words."""
        method, prompt = self.config.method, self.config.label_prompt
        return f"{method.label_source}/{method.label_readout}/{self.config.max_length}/{prompt}"

    @property
    def _weights_version(self) -> int:
        # A change in place counts a tensor's version up, so the sum tells whether any was changed by hand.
        return sum(parameter._version for parameter in self._ready_model().parameters())

    @property
    def _device(self) -> torch.device:
        return self.encoder.model.device

    @property
    def _pad_id(self) -> int:
        return int(self.encoder.tokenizer.pad_token_id or 0)

    def _ready_model(self) -> MatchingModel:
        if self._model is None:
            config = self.config
            self._model = MatchingModel(
                self.encoder.model,
                config.method,
                config.similarity,
                len(self._known_labels()),
                config.multi_label,
            ).to(self._device)
            self._model.eval()
        return self._model

    def _reconfigure(self, config: MatcherConfig) -> None:
        """Take another config; the model is built anew where it has to be, on the same encoder.

        What the method has learned is kept; another method has not been trained yet.
        """
        if config == self.config:
            return
        old, self.config = self.config, config
        self._figures = None
        if config.max_length != old.max_length:
            self._tokenizer = PromptTokenizer(self.encoder.tokenizer, config.max_length)
        if config.method != old.method:
            self._model = self.training_ = None
        elif (config.similarity, config.multi_label) != (old.similarity, old.multi_label):
            learned, self._model = self._model, None
            if learned is not None:
                kept = ("matrix.", "transform.")
                state = {name: value for name, value in learned.state_dict().items() if name.startswith(kept)}
                self._ready_model().load_state_dict(state, strict=False)

    def _examples(self, texts: Any, labels: Any, want_labels: bool) -> Examples:
        """Texts and labels in whatever form they come, as lists of equal length."""
        fields = self.config.prompt.fields
        if is_table(texts):
            if labels is None or isinstance(labels, str):
                return load_examples(texts, fields, label_field=labels, want_label=want_labels)
            texts = load_examples(texts, fields, want_label=False).texts
        if isinstance(texts, (str, dict)) or not isinstance(texts, Iterable):
            raise MaskMatchError(
                f"Texts come as a list, even a single one: [text]; this is a {type(texts).__name__}."
            )
        texts = list(texts)
        if not texts:
            raise MaskMatchError("There are no texts.")
        if not want_labels:
            return Examples(texts, None)
        if labels is None:
            raise MaskMatchError("The labels are missing: give one for each text.")
        if isinstance(labels, str) or not isinstance(labels, Iterable):
            raise MaskMatchError(f"Labels come as a list, one for each text, not as {labels!r}.")
        labels = list(labels)
        if len(labels) != len(texts):
            raise MaskMatchError(
                f"There are {len(texts)} texts but {len(labels)} labels; each text needs one."
            )
        return Examples(texts, labels)

    def _read(self, texts: Any) -> TokenizedPrompts:
        """Texts to classify, tokenised, with a word about those that had to be shortened."""
        prompts = self._tokenize(self._examples(texts, None, want_labels=False).texts)
        self._report_cut(prompts)
        return prompts

    def _tokenize(self, texts: Sequence[Any]) -> TokenizedPrompts:
        fields = self.config.prompt.fields
        return self._tokenizer(
            self.config.prompt, [field_texts(text, fields, row) for row, text in enumerate(texts)]
        )

    def _label_prompts(self, texts: Sequence[str]) -> TokenizedPrompts:
        return self._tokenizer(self.config.label_prompt, [{"label": FieldText(text)} for text in texts])

    def _report_cut(self, prompts: TokenizedPrompts) -> None:
        self.cut_ = int(prompts.cut.sum())
        if self.cut_:
            logger.warning(
                "%d of %d texts were longer than %d tokens and were shortened.",
                self.cut_,
                len(prompts),
                self.config.max_length,
            )


def _move(encoder: Encoder, device: str | None) -> None:
    """Put an encoder where it should compute."""
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        encoder.model.to(device)  # type: ignore[arg-type]
    except (RuntimeError, AssertionError) as error:  # no such kind of device, or none in this machine
        reason = str(error).partition("\n")[0]
        raise MaskMatchError(f"The device {device!r} cannot be used: {reason}") from error


def _head(model: MatchingModel) -> dict[str, torch.Tensor]:
    """What a method learns besides the encoder and a matrix of label vectors."""
    state = model.state_dict()
    return {name: tensor for name, tensor in state.items() if not name.startswith(("encoder.", "matrix."))}


def _check_count(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise MaskMatchError(f"{name} is {value!r}; it has to be a whole number of at least 1.")


def _headline(report: EvaluationReport) -> dict[str, Any]:
    """The figures of a report that the model card tells."""
    names = ("rows", "accuracy", "macro_f1", "micro_f1", "expected_calibration_error", "cut")
    values = {name.replace("_", " "): getattr(report, name) for name in names}
    return {name: round(value, 4) for name, value in values.items() if value is not None}


def _above(probabilities: torch.Tensor, threshold: float) -> list[list[int]]:
    """Per row, the places of the labels at or above a threshold, best first."""
    order = probabilities.argsort(dim=1, descending=True).tolist()
    counts = (probabilities >= threshold).sum(dim=1).tolist()
    return [places[:count] for places, count in zip(order, counts, strict=True)]


def _training_config(training: TrainingConfig, options: dict[str, Any]) -> TrainingConfig:
    unknown = set(options) - set(training.__dataclass_fields__)
    if unknown:
        raise MaskMatchError(
            f"fit takes no {', '.join(sorted(unknown))}; it takes {', '.join(training.__dataclass_fields__)}."
        )
    return replace(training, **options)
