"""MaskMatcher: the classifier that users meet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.batches import BATCH_SIZE
from maskmatch.encoder import find_model
from maskmatch.errors import MaskMatchError
from maskmatch.exports import is_export
from maskmatch.inputs import take_examples
from maskmatch.labels import LabelSet, LabelsLike
from maskmatch.loading import SavedParts, load_new, load_saved, parts_to_save
from maskmatch.predictor import Predictor
from maskmatch.saving import is_saved, push_model, write_model
from maskmatch.scorer import Scorer
from maskmatch.training_config import TrainingConfig
from maskmatch.whole_folder import recover

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from transformers import TrainerCallback

    from maskmatch.choices import Debias, MaskJoin, PhraseJoin, SearchKind, SimilarityKind
    from maskmatch.config import MatcherConfig
    from maskmatch.encoder import Encoder
    from maskmatch.evaluation import EvaluationReport, Metric
    from maskmatch.label_examples import Centres
    from maskmatch.methods import Method
    from maskmatch.mlm_head import Head
    from maskmatch.model import MatchingModel
    from maskmatch.prediction import Prediction
    from maskmatch.prompts import TokenizedPrompts
    from maskmatch.saving import SavedModel
    from maskmatch.similarity_config import SimilarityConfig
    from maskmatch.tasks import Task
    from maskmatch.training_config import TrainingSummary


class MaskMatcher(Predictor):
    """Classifies texts by the names of labels. Make one with :meth:`from_pretrained`.

    Attributes:
        labels: The labels, in the order of ``predict_proba``'s columns; None before they are known.
        training_: What the last ``fit`` did.
        report_: The last evaluation; the model card tells its figures while the classifier stays as it is.
        predicted_: What the last evaluation predicted: a label a text, or a list of labels a text.
        cut_: How many texts of the last call were longer than the model reads, and were shortened.
    """

    def __init__(
        self, encoder: Encoder, config: MatcherConfig, labels: LabelSet | None = None, head: Head | None = None
    ) -> None:
        super().__init__(labels)
        self.training_: TrainingSummary | None = None
        self._scorer = Scorer(encoder, config, head)
        self._figures: Mapping[str, Any] | None = None  # of the last evaluation, while they hold
        self._source: str | None = None  # where it was loaded from or saved to

    @classmethod
    def from_pretrained(
        cls,
        model: str | Path | None = None,
        labels: LabelsLike | None = None,
        *,
        task: str | Task | None = None,
        prompt: str | Sequence[str] | None = None,
        label_prompt: str | Sequence[str] | None = None,
        method: str | Method | None = None,
        similarity: SimilarityKind | SimilarityConfig | None = None,
        masks: MaskJoin | None = None,
        phrase_join: PhraseJoin | None = None,
        max_length: int | None = None,
        multi_label: bool | None = None,
        threshold: float | None = None,
        search: SearchKind | None = None,
        debias: Debias | None = None,
        device: str | None = None,
    ) -> MaskMatcher:
        """Load a classifier: a saved one, or a new one on a pretrained encoder.

        Args:
            model: None for the embedded default; the folder of a saved classifier or of an encoder; or the id
                of either on the hub.
            labels: Names, ``{name: description}``, ``{name: [phrases]}``, or a LabelSet. May be left out when
                ``fit`` follows.
            task: A preset ("topic", "intent", "sentiment", …), or a Task. It brings the fields, prompts and method.
            prompt: An input prompt instead of the task's. Or several: a text is read in each of them, and its vector
                is the mean; with pair-matching they are those of the sides, behind that of the pair if there is one.
            label_prompt: A label prompt instead of the task's, or several.
            method: "mask-matching", or another one. None: the task's, which is "pair-matching" for pairs unless prompts
                are given, and else "mask-matching".
            similarity: "cosine" or "dot", or a SimilarityConfig with its temperature.
            masks: How several masks are compared: by their "mean", by "concat" (one behind the other, as many on both
                sides), or "late" (each mask of the text with the label's mask that suits it best). None: as the
                similarity says.
            phrase_join: How the scores of a label's several phrases become one: by "mean", "max" or "logsumexp". None:
                as the similarity says.
            max_length: The most tokens of a prompted text; longer texts are shortened, and counted.
            multi_label: Whether a text may have several labels. None: as the training data shows.
            threshold: From which probability on a label applies, where a text may have several. None: 0.5, or what
                the saved classifier has; ``fit`` tunes it if it is given dev data.
            search: How the best labels are found: "exact" compares a text with all labels, "approximate" with those
                that an index proposes (it needs the extra ``index``), "auto" takes the index beyond 50,000 label
                texts, if it can. None: "auto", or what the saved classifier has.
            debias: Whose vectors are freed of what their prompt says by itself: "inputs", "labels", "both" or "none".
                The prompt is read once without a text, before training, and its state taken from all vectors. None:
                "none", or what the saved classifier has.
            device: Where to compute; None: on a GPU if there is one.
        """
        if model is not None:
            recover(Path(model).expanduser())
        folder, source = find_model(model)
        if is_export(folder):
            raise MaskMatchError(f"{source} is an export; load it with ExportedMatcher.from_pretrained.")
        options = {
            "task": task,
            "prompt": prompt,
            "label_prompt": label_prompt,
            "method": method,
            "similarity": similarity,
            "masks": masks,
            "phrase_join": phrase_join,
            "multi_label": multi_label,
            "threshold": threshold,
            "search": search,
            "debias": debias,
        }
        if is_saved(folder):
            saved = load_saved(folder, source, device)
            matcher = cls._of(saved.scorer, saved.labels)
            matcher.training_, matcher._figures, matcher._source = saved.training, saved.figures, source
            length = None if max_length is None else matcher.encoder.max_length(max_length)
            matcher._reconfigure(matcher.config.changed(**options, max_length=length))
            if labels is not None:
                matcher._check_reads_labels("its labels cannot be replaced")
                matcher._replace_labels(LabelSet.of(labels))
        else:
            scorer = load_new(folder, source, device, max_length, options)
            matcher = cls._of(scorer, None if labels is None else LabelSet.of(labels))
        if threshold is not None:
            matcher._check_several()
        return matcher

    @classmethod
    def _of(cls, scorer: Scorer, labels: LabelSet | None) -> MaskMatcher:
        matcher = cls(scorer.encoder, scorer.config, labels)
        matcher._scorer = scorer
        return matcher

    @property
    def encoder(self) -> Encoder:
        """The pretrained encoder with its tokenizer."""
        return self._scorer.encoder

    @property
    def config(self) -> MatcherConfig:
        """Task, prompts, method, similarity."""
        return self._scorer.config

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
        config = (training or TrainingConfig()).changed(options)
        if dev is None and config.patience is not None:
            raise MaskMatchError("patience stops by dev data; give dev as well.")
        from maskmatch.fitting import fit_scorer

        examples = take_examples(texts, labels, self.config.fields)
        fitted = fit_scorer(
            self._scorer,
            self.labels,
            examples,
            dev=dev,
            config=config,
            callbacks=callbacks,
            trained=self.training_ is not None,
        )
        self._scorer, self.labels = fitted.scorer, fitted.labels
        self.training_, self.cut_ = fitted.summary, fitted.summary.cut
        self._figures = None
        return self

    # -- prediction ------------------------------------------------------------------------------------------

    def evaluate(
        self,
        texts: Any,
        labels: Any = None,
        *,
        metric: str | Metric | None = None,
        data: str | None = None,
        batch_size: int = BATCH_SIZE,
    ) -> EvaluationReport:
        """Measure the classifier on labelled texts. A label it does not have counts as wrong.

        Args:
            texts: Strings or dicts of fields; or a data frame or a Dataset that holds the labels too.
            labels: One label a text, or a list of labels a text; with a data frame, the name of its column.
            metric: What the report's score is; None: the task's usual metric, or micro-F1 with several labels a text.
            data: What the report and the model card should call these texts, such as "banking77, test".
            batch_size: Texts a batch; it does not change the result.
        """
        report = super().evaluate(texts, labels, metric=metric, data=data, batch_size=batch_size)
        self._figures = report.headline()
        return report

    @property
    def name(self) -> str:
        """What reports call it."""
        return self._source or self.encoder.source

    @property
    def notes(self) -> list[str]:
        """What a reader of figures should know about how they came to be, in sentences."""
        return self._scorer.notes

    def model(self) -> MatchingModel:
        """The model that computes the vectors of texts."""
        return self._scorer.model(self._ready_labels())

    def prediction(self) -> Prediction:
        """The prediction path with everything as it is now."""
        return self._scorer.prediction(self._ready_labels())

    def text_states(self, texts: Any) -> NDArray[np.float32]:
        """What is read for texts: (n, masks, dim)."""
        prompts = self._read(texts)
        prediction = self._scorer.prediction(LabelSet.of(["any"]) if self.labels is None else self._ready_labels())
        return prediction.all_vectors(prompts)

    def phrase_states(self, phrases: Sequence[str]) -> NDArray[np.float32]:
        """What is read for phrases as if they were names of labels: (n, masks, dim)."""
        self._check_reads_labels("it reads no names")
        labels = LabelSet.of(["any"]) if self.labels is None else self.labels
        read: NDArray[np.float32] = self._scorer.read_labels(labels, list(phrases)).float().cpu().numpy()
        return read

    def centres_of(self, labels: LabelSet) -> Centres:
        """Where the training texts of labels lie, of those that are the classifier's own."""
        return self._scorer.centres.renamed({id_: id_ for id_ in self._same_labels(labels)})

    def _tokenize(self, texts: list[Any]) -> TokenizedPrompts:
        labels = self._known_labels() if self.config.labels_in_context else None
        return self._scorer.tokenize(texts, labels)

    # -- labels ----------------------------------------------------------------------------------------------

    def add_labels(self, labels: LabelsLike) -> MaskMatcher:
        """Add labels, which can be predicted at once: only the new names are read."""
        self._check_reads_labels("a label cannot be added without training; mask-matching can")
        self._set_labels(LabelSet.of(labels) if self.labels is None else self.labels.added(labels))
        return self

    def rename_label(self, old: Hashable, new: Hashable) -> MaskMatcher:
        """Give a label another name.

        A label that is known by its name is known by the new one from then on; one with an id of its own, as in
        ``{3: "refund"}``, keeps the id.
        """
        before = self._known_labels()
        self._set_labels(before.renamed(old, new))
        self._rename_centres(dict(zip(before, self._known_labels(), strict=True)))
        return self

    def remove_labels(self, labels: Sequence[Hashable]) -> MaskMatcher:
        """Take labels away."""
        old = self._known_labels()
        new = old.removed(labels)
        self._scorer.select_labels([old.position(id_) for id_ in new])
        self._rename_centres({id_: id_ for id_ in new})
        self._set_labels(new)
        return self

    def _replace_labels(self, labels: LabelSet) -> None:
        """Take other labels; the training texts of a label count on if it is the same by id and name."""
        self._rename_centres({id_: id_ for id_ in self._same_labels(labels)})
        self._set_labels(labels)

    def _same_labels(self, labels: LabelSet) -> list[Hashable]:
        """The ids of labels that are the classifier's own, by id and name."""
        own = self.labels
        if own is None:
            return []
        return [id_ for id_ in labels if id_ in own and labels.label(id_).name == own.label(id_).name]

    def _rename_centres(self, ids: Mapping[Hashable, Hashable]) -> None:
        """Keep where training texts lie of labels that are still there, by the ids that they have now."""
        self._scorer.take_centres(self._scorer.centres.renamed(ids))

    def _check_reads_labels(self, otherwise: str) -> None:
        method = self.config.method
        if not method.reads_labels:
            raise MaskMatchError(f"The method {method.name} learns a vector per label, so {otherwise}.")

    def _set_labels(self, labels: LabelSet) -> None:
        self.labels = labels
        self._figures = None

    def _known_labels(self) -> LabelSet:
        if self.labels is None:
            raise MaskMatchError("There are no labels yet: give them to from_pretrained, or call fit first.")
        return self.labels

    def _ready_labels(self) -> LabelSet:
        """The labels, if the classifier can tell them apart already."""
        labels, method = self._known_labels(), self.config.method
        if not method.reads_labels and self.training_ is None:
            raise MaskMatchError(f"The method {method.name} learns its labels, so it has to be trained first.")
        return labels

    # -- saving ----------------------------------------------------------------------------------------------

    def save_pretrained(self, folder: str | Path) -> Path:
        """Save the classifier in a folder, whole or not at all."""
        written = write_model(self._saved(), Path(folder).expanduser())
        self._source = str(folder)
        return written

    def push_to_hub(self, repo_id: str, *, private: bool = False, token: str | None = None) -> str:
        """Upload the classifier with its model card to the hub; returns the address of the commit."""
        return push_model(self._saved(), repo_id, private=private, token=token)

    def _saved(self) -> SavedModel:
        return parts_to_save(SavedParts(self._scorer, self._ready_labels(), self.training_, self._figures))

    def _reconfigure(self, config: MatcherConfig) -> None:
        """Take another config on the same encoder; another method has not been trained yet."""
        if config == self.config:
            return
        if config.method != self.config.method:
            self.training_ = None
        self._figures = None
        self._scorer = self._scorer.with_config(config)
