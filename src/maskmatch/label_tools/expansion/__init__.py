"""Expand labels: find more phrases and examples in texts, the encoder's vocabulary, or the user's own words."""

from maskmatch.label_tools.expansion.encoded_labels import EncodedLabels
from maskmatch.label_tools.expansion.expand import expand_labels
from maskmatch.label_tools.expansion.result import Expansion, ScoredPhrase

__all__ = ["EncodedLabels", "Expansion", "ScoredPhrase", "expand_labels"]
