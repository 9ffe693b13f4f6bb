"""MaskMatchVectorizer: a transformer for scikit-learn that gives the mask states of texts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from maskmatch.config.methods import find_method
from maskmatch.integrations.sklearn_common import encoders, read_texts_only, warning_once
from maskmatch.integrations.sklearn_inputs import check_features, features_of, read_texts, set_features
from maskmatch.integrations.sklearn_parameters import CLASSIFIER_PARAMETERS, classifier_settings, takes
from maskmatch.labels import LabelSet
from maskmatch.matcher import MaskMatcher

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from maskmatch.config.methods import Method
    from maskmatch.config.tasks import Task

NOT_FITTED = "This %(name)s is not fitted yet; call fit first."


class MaskMatchVectorizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Texts → the encoder's states at the mask of their prompt, as features of other estimators: (n, masks x dim).

    Nothing is trained. Every setting of a classifier is a parameter, under its own name.

    Args:
        model: None for the embedded default; the folder of a saved classifier or of an encoder; or a hub id.
        task: A preset, such as "topic" or "intent", or a Task.
        prompt: An input prompt instead of the task's, or several.
        method: "mask-matching", or another one: it says where the state is read.
        device: Where to compute; None: on a GPU if there is one.
        verbose: Whether long calls show their progress.
        **settings: All other settings of MatcherConfig, such as ``max_length`` and ``debias``.

    Attributes:
        matcher_: The MaskMatcher that reads the states.
        n_features_in_: The number of columns of X, if it was a table.
        feature_names_in_: Their names, if they are texts.
    """

    @takes(CLASSIFIER_PARAMETERS)
    def __init__(
        self,
        model: str | Path | None = None,
        *,
        task: str | Task | None = None,
        prompt: str | Sequence[str] | None = None,
        method: str | Method | None = None,
        device: str | None = None,
        verbose: bool = False,
        **settings: Any,
    ) -> None: ...

    def fit(self, X: Any, y: Any = None) -> MaskMatchVectorizer:
        """Load the encoder, and read the first text; ``y`` is ignored."""
        features = features_of(X)
        options = classifier_settings(self)
        if options["method"] is not None:
            options["method"] = _reading_labels(find_method(options["method"]))
        pretrained = encoders.get(self.model, self.device)
        labels = None if pretrained.classifier is not None else LabelSet.of(["text"])  # it can be copied with a label
        matcher = MaskMatcher.from_pretrained(pretrained, labels, verbose=bool(self.verbose), **options)
        texts = read_texts(self, X, matcher.config.fields)
        with warning_once(self, "fit"):
            self._masks, self._dimension = matcher.text_states(texts[:1]).shape[1:]
        self.matcher_ = matcher
        set_features(self, features)
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """The states of texts: (n, masks x dim)."""
        check_is_fitted(self, "matcher_", msg=NOT_FITTED)
        check_features(self, X)
        texts = read_texts(self, X, self.matcher_.config.fields)
        with warning_once(self, "predict"):
            states: NDArray[np.float32] = self.matcher_.text_states(texts)
        return states.reshape(len(texts), -1)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the features, such as mask0_0 and mask0_1."""
        check_is_fitted(self, "matcher_", msg=NOT_FITTED)
        names = [f"mask{mask}_{place}" for mask in range(self._masks) for place in range(self._dimension)]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        read_texts_only(tags)
        tags.transformer_tags.preserves_dtype = []
        return tags


def _reading_labels(method: Method) -> Method:
    """A method that reads texts in the same way, and needs no training: label vectors are not learned."""
    if method.reads_labels:
        return method
    return replace(method, label_source="prompt", label_readout=method.input_state)
