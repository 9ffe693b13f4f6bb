"""Explanations: why a text got its label, as text, JSON and a web page."""

from maskmatch.evaluation.explanation.result import ExplainedLabel, Explanation, MatchedPhrase, SimilarText, TextPart

__all__ = ["ExplainedLabel", "Explanation", "MatchedPhrase", "SimilarText", "TextPart"]
