"""LoadedClassifier: a classifier in memory that comes from a folder and can be saved in one."""

from __future__ import annotations

import copy
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from maskmatch.config.matcher import check_options
from maskmatch.errors import MaskMatchError
from maskmatch.files import locked, resolved
from maskmatch.labels import LabelSet
from maskmatch.prediction.editing import EditablePredictor
from maskmatch.prediction.runtimes.torch import torch_pipeline
from maskmatch.storage.copies import folder_bytes, load_bytes
from maskmatch.storage.folder import Classifier, push_classifier, read_classifier, write_classifier
from maskmatch.storage.layout import check_same_labels, check_unchanged
from maskmatch.storage.pretrained import Pretrained

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.config.methods import Method
    from maskmatch.config.tasks import Task
    from maskmatch.config.training import TrainingSummary
    from maskmatch.evaluation import EvaluationReport
    from maskmatch.labels import LabelsLike
    from maskmatch.model.encoder import Encoder
    from maskmatch.model.matching import MatchingModel
    from maskmatch.model.model_bank import ModelBank
    from maskmatch.prediction.pipeline import Pipeline

Own = TypeVar("Own", bound="LoadedClassifier")


class LoadedClassifier(EditablePredictor):
    """A classifier in memory: loaded, new on a pretrained encoder, saved and copied. It predicts and evaluates.

    Attributes:
        training_: The result of the last ``fit``; or of self-training, if there was no ``fit``.
        report_: The last evaluation report; the model card shows its figures until the classifier changes.
        predicted_: The predictions of the last evaluation: a label per text, or a list of labels per text.
        cut_: How many texts of the last call were truncated.
        verbose: Whether long calls show their progress.
    """

    def __init__(self, classifier: Classifier, source: str | None = None, *, verbose: bool = True) -> None:
        super().__init__(verbose=verbose)
        self.encoder: Encoder = classifier.encoder
        self.training_: TrainingSummary | None = classifier.training
        self._bank: ModelBank = classifier.bank
        self._evaluation: Mapping[str, Any] | None = classifier.evaluation  # of the last report, until labels change
        self._source = source  # where it was loaded from or saved to
        self._folder = None if source is None or classifier.revision is None else resolved(Path(source))
        self._revision = classifier.revision  # of the folder at that time

    @classmethod
    def from_pretrained(
        cls: type[Own],
        model: str | Path | Pretrained | None = None,
        labels: LabelsLike | None = None,
        *,
        task: str | Task | None = None,
        prompt: str | Sequence[str] | None = None,
        label_prompt: str | Sequence[str] | None = None,
        method: str | Method | None = None,
        device: str | None = None,
        verify: bool = True,
        verbose: bool = True,
        **options: Any,
    ) -> Own:
        """Load a classifier: a saved one, or a new one on a pretrained encoder.

        What is None or left out comes from the saved classifier, or from the task and the method.

        Args:
            model: None for the embedded default; the folder of a saved classifier or of an encoder; or the id
                of either on the hub; or one that was loaded before, which the classifier takes as its own.
            labels: Names, ``{name: description}``, ``{name: [phrases]}``, or a LabelSet. May be left out if
                ``fit`` follows.
            task: A preset ("topic", "intent", "sentiment", …), or a Task. It brings fields, prompts and a method.
            prompt: An input prompt instead of the task's, or several: a text is read in each and the vectors are
                averaged; with pair-matching, each prompt reads one side of the pair.
            label_prompt: A label prompt instead of the task's, or several.
            method: "mask-matching", or another one. Default: the task's.
            device: Where to compute; None: on a GPU if there is one.
            verify: Whether to check that all files of a saved classifier are as they were saved.
            verbose: Whether long calls show their progress.
            **options: Further settings of MatcherConfig: ``similarity`` ("cosine", "dot" or a SimilarityConfig),
                ``temperature``, ``masks``, ``phrase_join``, ``max_length``, ``multi_label``, ``threshold``,
                ``search``, ``debias``.
        """
        options = {"task": task, "prompt": prompt, "label_prompt": label_prompt, "method": method, **options}
        check_options(options)  # before anything is loaded
        label_set = None if labels is None else LabelSet.of(labels)
        pretrained = model if isinstance(model, Pretrained) else Pretrained.load(model, device=device, verify=verify)
        if pretrained.classifier is not None:
            matcher = cls(pretrained.classifier, pretrained.source, verbose=verbose)
            matcher._reconfigure(options)
            if label_set is not None:
                matcher._bank.replace(label_set)
                matcher._evaluation = None
        else:
            length = options.pop("max_length", None)
            matcher = cls(pretrained.start(length, options), verbose=verbose)
            if label_set is not None:
                matcher._bank.start_with(label_set)
        if options.get("threshold") is not None:
            matcher.check_multi_label()
        return matcher

    def _reconfigure(self, options: Mapping[str, Any]) -> None:
        """Apply other settings to a saved classifier; another method has not been trained yet."""
        length = options.get("max_length")
        length = None if length is None else self.encoder.max_length(length)
        config = self.config.changed({**options, "max_length": length})
        if config == self.config:
            return
        if config.method != self.config.method:
            self.training_ = None
        self._evaluation = None
        self._bank = self._bank.with_config(config)

    @property
    def config(self) -> MatcherConfig:
        """Task, prompts, method, similarity."""
        return self._bank.config

    @property
    def labels(self) -> LabelSet | None:
        """The labels, in the order of ``predict_proba``'s columns; None before they are known."""
        return self._bank.labels

    @property
    def bank(self) -> ModelBank:
        """All that is known of labels: their vectors, centroids, version."""
        return self._bank

    @property
    def model(self) -> MatchingModel:
        """The model that computes vectors."""
        self._check_trained()
        return self._bank.model

    @property
    def pipeline(self) -> Pipeline:
        """The prediction pipeline with labels and weights as they are now."""
        self._check_trained()
        return torch_pipeline(self._bank)

    def pipeline_with(self, bank: ModelBank) -> Pipeline:
        """The prediction pipeline with other labels."""
        return torch_pipeline(bank)

    def _edited(self: Own) -> Own:
        self._evaluation = None  # figures of earlier evaluations no longer hold
        return self

    @property
    def name(self) -> str:
        """What reports call it."""
        return self._source or self.encoder.source

    @property
    def notes(self) -> list[str]:
        """What a reader of its metrics should know, in sentences."""
        return self._bank.notes

    def _check_trained(self) -> None:
        """Raise if there are no labels, or if a method that learns its labels has not been trained."""
        method = self.config.method
        if self._bank.known_labels and not method.reads_labels and self.training_ is None:
            raise MaskMatchError(f"The method {method.name} learns its labels, so it must be trained first.")

    def _evaluated(self, report: EvaluationReport) -> None:
        self._evaluation = report.headline()

    # -- saving ----------------------------------------------------------------------------------------------

    def save_pretrained(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Save the classifier in a folder, whole or not at all.

        Args:
            folder: The folder.
            overwrite: Whether to replace another classifier that has other labels, or what someone else saved since
                this one was loaded.
        """
        path, classifier = Path(folder).expanduser(), self._classifier()
        with locked(path):
            if self._folder == resolved(path) and not overwrite:
                check_unchanged(path, self._revision)
            elif not overwrite:
                check_same_labels(path, self._bank.known_labels)
            self._revision = write_classifier(classifier, path)
        self._source, self._folder = str(folder), resolved(path)
        return path

    def to_bytes(self) -> bytes:
        """The saved classifier as bytes, for another process; :meth:`from_bytes` loads it."""
        with tempfile.TemporaryDirectory(prefix="maskmatch-") as scratch:
            write_classifier(self._classifier(), Path(scratch) / "model", sync=False)
            return folder_bytes(Path(scratch) / "model")

    @classmethod
    def from_bytes(cls: type[Own], data: bytes, *, device: str | None = None, verbose: bool = True) -> Own:
        """Load what :meth:`to_bytes` gave."""
        classifier = load_bytes(data, lambda folder: read_classifier(folder, "a copy", device))
        return cls(replace(classifier, revision=None), verbose=verbose)

    def __reduce__(self) -> Any:
        """Copies for other processes hold no pickled modules."""
        return _copied, (type(self), self.to_bytes(), str(self._bank.model.device), self.verbose)

    def __copy__(self: Own) -> Own:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self: Own, memo: dict[int, Any]) -> Own:
        twin = memo[id(self)] = type(self).__new__(type(self))
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    def push_to_hub(self, repo_id: str, *, private: bool = False, token: str | None = None) -> str:
        """Upload the classifier with its model card to the hub; returns the address of the commit."""
        return push_classifier(self._classifier(), repo_id, private=private, token=token)

    def _classifier(self) -> Classifier:
        self._check_trained()
        return Classifier(self.encoder, self._bank, self.training_, self._evaluation)


def _copied(cls: type[Own], data: bytes, device: str, verbose: bool) -> Own:
    """A copy in another process, on the same kind of device if that process has one."""
    has_device = device == "cpu" or torch.cuda.is_available()
    return cls.from_bytes(data, device=device if has_device else "cpu", verbose=verbose)
