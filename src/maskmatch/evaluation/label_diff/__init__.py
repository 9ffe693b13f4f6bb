"""Label diff: which predictions change when labels change."""

from maskmatch.evaluation.label_diff.compare import diff_predictions
from maskmatch.evaluation.label_diff.result import ChangedText, LabelCount, LabelDiff, Move, PairedAccuracy

__all__ = ["ChangedText", "LabelCount", "LabelDiff", "Move", "PairedAccuracy", "diff_predictions"]
