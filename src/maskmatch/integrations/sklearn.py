"""MaskMatchClassifier: a classifier for scikit-learn."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from maskmatch.errors import MaskMatchError
from maskmatch.integrations.sklearn_common import NOT_FITTED, encoders, read_texts_only, warning_once
from maskmatch.integrations.sklearn_inputs import (
    Target,
    check_features,
    columns_of,
    features_of,
    named,
    read_target,
    read_texts,
    read_weights,
    set_features,
    several_labels,
    sorted_classes,
    weighted,
)
from maskmatch.integrations.sklearn_memory import Memory
from maskmatch.integrations.sklearn_parameters import (
    CLASSIFIER_PARAMETERS,
    TRAINING_PARAMETERS,
    classifier_settings,
    takes,
    training_settings,
)
from maskmatch.labels import LabelSet
from maskmatch.matcher import MaskMatcher

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from maskmatch.config.methods import Method
    from maskmatch.config.tasks import Task
    from maskmatch.labels import LabelsLike

logger = logging.getLogger("maskmatch")


class MaskMatchClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifies texts by the names of labels, as an estimator of scikit-learn.

    Every setting of a classifier and of training is a parameter, under its own name; the seed is ``random_state``.

    Args:
        model: None for the embedded default; the folder of a saved classifier or of an encoder; or a hub id.
        labels: All labels, in any form that ``MaskMatcher.from_pretrained`` takes. Default: those in ``y``.
        label_names: Names of the labels in ``y`` if these are codes or numbers: ``{0: "refund"}``, or a list.
        task: A preset, such as "topic" or "intent", or a Task.
        prompt: An input prompt instead of the task's, or several.
        label_prompt: A label prompt instead of the task's, or several.
        method: "mask-matching", or another one.
        device: Where to compute; None: on a GPU if there is one.
        verbose: Whether long calls show their progress.
        class_weight: None, "balanced", or a weight per label.
        random_state: The seed: same seed, same result. None, or a RandomState: a seed is drawn.
        **settings: All other settings of MatcherConfig and TrainingConfig, such as ``temperature``, ``max_length``,
            ``epochs``, ``learning_rate``, ``batch_size``, ``calibrate``.

    Attributes:
        classes_: The labels, sorted: the columns of ``predict_proba``. With several labels per text, in the order in
            which they were given.
        matcher_: The fitted MaskMatcher: ``matcher_.save_pretrained(folder)`` saves it.
        n_features_in_: The number of columns of X, if it was a table.
        feature_names_in_: Their names, if they are texts.

    >>> from maskmatch.sklearn import MaskMatchClassifier                                    # doctest: +SKIP
    >>> classifier = MaskMatchClassifier(task="intent", epochs=5).fit(texts, labels)         # doctest: +SKIP
    >>> classifier.predict(["Where is my money?"])                                           # doctest: +SKIP
    array(['refund'], dtype='<U6')
    """

    @takes(CLASSIFIER_PARAMETERS, TRAINING_PARAMETERS)
    def __init__(
        self,
        model: str | Path | None = None,
        *,
        labels: LabelsLike | None = None,
        label_names: Any = None,
        task: str | Task | None = None,
        prompt: str | Sequence[str] | None = None,
        label_prompt: str | Sequence[str] | None = None,
        method: str | Method | None = None,
        device: str | None = None,
        verbose: bool = False,
        class_weight: str | Mapping[Any, float] | None = None,
        random_state: Any = 0,
        **settings: Any,
    ) -> None: ...

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        dev: Any = None,
    ) -> MaskMatchClassifier:
        """Train on texts with labels, from the pretrained encoder.

        Args:
            X: Strings or dicts of fields, in a list, an array or a series; or a table with one column of texts, or with
                the task's fields.
            y: One label per text. Several per text: a list of labels each, or a matrix of 0 and 1. None: nothing is
                trained, and texts are classified by the names in ``labels`` alone.
            sample_weight: The weight of each text; those with 0 are left out.
            dev: Texts and labels, ``(X, y)``, to choose the best checkpoint by.
        """
        features = features_of(X)
        with warning_once(self, "fit"):
            pretrained = encoders.get(self.model, self.device)
            saved = None if pretrained.classifier is None else pretrained.classifier.bank.labels
            own = self.labels is None and self.label_names is None
            labels = saved if own else self.labels
            target = None if y is None else read_target(y, labels, self.label_names)
            given = self._given_labels() if target is None else target.label_set
            matcher = MaskMatcher.from_pretrained(
                pretrained, None if own and saved else given, verbose=bool(self.verbose), **classifier_settings(self)
            )
            memory = Memory()
            if target is not None:
                texts = read_texts(self, X, matcher.config.fields)
                rows = self._rows(texts, target, sample_weight)
                self._warn_numbers(target.classes, matcher)
                self._train(matcher, *rows, dev=dev)
                if not target.several:
                    memory.add(*rows)
            elif matcher.labels is None:
                raise MaskMatchError(
                    f"This {type(self).__name__} requires y to be passed, but the target y is None; without y, give "
                    "labels=[…], and texts are classified by these names alone."
                )
            assert matcher.model is not None  # raises if the method must be trained
        self.matcher_, self._memory_ = matcher, memory
        self.classes_ = self._classes() if target is None else target.classes
        set_features(self, features)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
    ) -> MaskMatchClassifier:
        """Train further on new rows, and on a sample of earlier ones, so that those are not forgotten.

        A label that is new is added: ``classes_``, and the columns of ``predict_proba`` with it, become longer.

        Args:
            X: Texts, as in :meth:`fit`.
            y: One label per text.
            classes: All labels, those that come later among them. Never required, but a method that learns a vector
                per label (fine-tuning, soft-prompt) cannot take others later.
            sample_weight: The weight of each text; those with 0 are left out.
        """
        first = not hasattr(self, "matcher_")
        more = [] if classes is None else np.asarray(classes).tolist()
        with warning_once(self, "fit"):
            if first:
                matcher, memory = self._first(X, y, more)
            else:
                matcher, memory = self.matcher_, self._memory_
            features = features_of(X)
            if not first:
                check_features(self, X)
            texts = read_texts(self, X, matcher.config.fields)
            known = [] if matcher.labels is None else list(matcher.labels)
            target = read_target(y, None, None, also=[*known, *more])
            if target.several or matcher.config.multi_label:
                raise MaskMatchError("partial_fit needs one label per text; with several, call fit with all rows.")
            rows = self._rows(texts, target, sample_weight, partial=True)
            if len(target.classes) < 2:
                raise MaskMatchError(
                    f"There is only 1 class so far, {target.classes.tolist()[0]!r}; a classifier needs at least two: "
                    "give those that come later as classes."
                )
            new = [label for label in target.classes.tolist() if label not in known]
            if new:
                matcher.add_labels(self._named(new))
            memory = memory.copy()
            all_rows = memory.with_others(*rows)
            try:
                if len(set(all_rows[1])) > 1:  # otherwise there is nothing to tell apart yet
                    self._train(matcher, *all_rows, balanced=True)
            except BaseException:
                if new:
                    matcher.remove_labels(new)
                raise
            memory.add(*rows)
        self.matcher_, self._memory_ = matcher, memory
        self.classes_ = target.classes
        if first:
            set_features(self, features)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each text; with several per text, a matrix of 0 and 1 with the columns of ``classes_``."""
        matcher, texts = self._prepared(X)
        with warning_once(self, "predict"):
            found = matcher.predict(texts)
        if matcher.config.multi_label:
            return self._indicator(found)
        places = {label: place for place, label in enumerate(self.classes_.tolist())}
        if any(label is None for label in found):  # it abstains
            return np.array(found, dtype=object)
        answers: NDArray[Any] = self.classes_[np.array([places[label] for label in found], dtype=np.int64)]
        return answers

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each label: (n, K), columns in the order of ``classes_``."""
        matcher, texts = self._prepared(X)
        with warning_once(self, "predict"):
            found = matcher.predict_proba(texts).astype(np.float64)
        assert matcher.labels is not None
        columns = [matcher.labels.position(label) for label in self.classes_.tolist()]
        if not matcher.config.multi_label and len(found):
            found /= found.sum(axis=1, keepdims=True)
        probabilities: NDArray[np.float64] = found[:, columns]
        return probabilities

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy; with several labels per text, how often all of them are right."""
        check_is_fitted(self, "matcher_", msg=NOT_FITTED)
        if self.matcher_.config.multi_label:
            assert self.matcher_.labels is not None
            rows, known = several_labels(y, self.matcher_.labels), set(self.classes_.tolist())
            unknown = np.array([[not known.issuperset(row)] for row in rows], dtype=np.int64)  # never predicted
            truth = np.concatenate([self._indicator(rows), unknown], axis=1)
            predicted = np.concatenate([self.predict(X), np.zeros_like(unknown)], axis=1)
            return float(accuracy_score(truth, predicted, sample_weight=sample_weight))
        truth = np.asarray(y).ravel()
        predicted = self.predict(X)
        if len(truth) != len(predicted):
            raise MaskMatchError(f"X has {len(predicted)} texts and y has {len(truth)} labels; give one per text.")
        # By equality: where the classifier abstains, the answer is None, which accuracy_score cannot sort.
        right = [one == other for one, other in zip(truth.tolist(), predicted.tolist(), strict=True)]
        return float(np.average(right, weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        read_texts_only(tags)
        tags.classifier_tags.multi_label = True
        tags.target_tags.required = self.labels is None
        return tags

    # -- what fit and partial_fit share ----------------------------------------------------------------------

    def _first(self, X: Any, y: Any, classes: list[Any]) -> tuple[MaskMatcher, Memory]:
        """A classifier for the first call of ``partial_fit``."""
        pretrained = encoders.get(self.model, self.device)
        saved = pretrained.classifier is not None and pretrained.classifier.bank.labels is not None
        labels = self._given_labels()
        if labels is None and not saved:
            target = read_target(y, None, None, also=classes)
            if not target.several:
                labels = self._named(target.classes.tolist())
                self._warn_numbers(target.classes, None)
        return (
            MaskMatcher.from_pretrained(pretrained, labels, verbose=bool(self.verbose), **classifier_settings(self)),
            Memory(),
        )

    def _rows(
        self, texts: list[Any], target: Target, sample_weight: Any, *, partial: bool = False
    ) -> tuple[list[Any], list[Any], list[float] | None]:
        """Texts, labels and weights, without the texts whose weight is 0."""
        if len(texts) != len(target.rows):
            raise MaskMatchError(
                f"X has {len(texts)} texts and y has {len(target.rows)} labels: inconsistent numbers of samples; give "
                "one label per text."
            )
        weights = read_weights(sample_weight, len(texts))
        weights = weighted(target.rows, weights, self.class_weight, None if partial else target.classes.tolist())
        if weights is None:
            return texts, target.rows, None
        kept = [place for place, weight in enumerate(weights) if weight > 0]
        return (
            [texts[place] for place in kept],
            [target.rows[place] for place in kept],
            [weights[place] for place in kept],
        )

    def _train(
        self,
        matcher: MaskMatcher,
        texts: list[Any],
        labels: list[Any],
        weights: list[float] | None,
        dev: Any = None,
        *,
        balanced: bool = False,
    ) -> None:
        if texts and not any(isinstance(label, list) for label in labels) and len(set(labels)) < 2:
            raise MaskMatchError(
                f"y has only 1 class, {labels[0]!r}; a classifier needs texts of at least two classes."
            )
        settings = training_settings(self)
        if balanced and weights is None:  # all new rows count, and do not drown the few that are remembered
            settings = replace(settings, class_weight="balanced")
        matcher.fit(texts, labels, dev=dev, training=settings, sample_weight=weights)

    def _given_labels(self) -> LabelSet | None:
        """The labels that are known without y."""
        if self.labels is not None:
            return LabelSet.of(self.labels)
        if isinstance(self.label_names, Mapping):
            return named(list(self.label_names), self.label_names)
        return None

    def _named(self, ids: list[Any]) -> LabelSet:
        """Labels with the names that they have in the parameters, if any."""
        given = self._given_labels()
        if self.label_names is not None and given is None:
            return named(ids, self.label_names)
        own = LabelSet.of(ids)
        if given is None:
            return own
        return LabelSet(tuple(given.label(id_) if id_ in given else own.label(id_) for id_ in ids))

    def _warn_numbers(self, classes: NDArray[Any], matcher: MaskMatcher | None) -> None:
        """Warn if the names of labels are mere numbers."""
        reads = matcher is None or matcher.config.method.reads_labels
        if reads and self.labels is None and self.label_names is None and classes.dtype.kind in "iuf":
            logger.warning(
                "The labels in y are numbers, which say nothing to the encoder; give their names: "
                "label_names={%r: 'name of the label', …}.",
                classes.tolist()[0],
            )

    def _classes(self) -> NDArray[Any]:
        """The labels of a classifier that was not trained here."""
        matcher: MaskMatcher = self.matcher_
        ids = list(matcher.labels or ())
        return columns_of(ids) if matcher.config.multi_label else sorted_classes(ids)

    def _prepared(self, X: Any) -> tuple[MaskMatcher, list[Any]]:
        """The fitted classifier, and the texts of X."""
        check_is_fitted(self, "matcher_", msg=NOT_FITTED)
        check_features(self, X)
        matcher: MaskMatcher = self.matcher_
        return matcher, read_texts(self, X, matcher.config.fields)

    def _indicator(self, rows: list[list[Any]]) -> NDArray[np.int64]:
        """Lists of labels as a matrix of 0 and 1: (n, K)."""
        places = {label: place for place, label in enumerate(self.classes_.tolist())}
        matrix = np.zeros((len(rows), len(places)), dtype=np.int64)
        for number, row in enumerate(rows):
            matrix[number, [places[label] for label in row if label in places]] = 1
        return matrix
