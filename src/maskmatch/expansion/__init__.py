"""Further phrases and examples for labels, from the encoder's vocabulary, from texts, or from what the user brings."""

from maskmatch.expansion.expand import expand_labels
from maskmatch.expansion.ground import Ground
from maskmatch.expansion.phrases import Expansion, ScoredPhrase

__all__ = ["Expansion", "Ground", "ScoredPhrase", "expand_labels"]
