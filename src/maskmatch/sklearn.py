"""The estimators for scikit-learn: ``from maskmatch.sklearn import MaskMatchClassifier, MaskMatchVectorizer``."""

from maskmatch.integrations.sklearn import MaskMatchClassifier
from maskmatch.integrations.sklearn_common import clear_cache
from maskmatch.integrations.sklearn_vectorizer import MaskMatchVectorizer

__all__ = ["MaskMatchClassifier", "MaskMatchVectorizer", "clear_cache"]
