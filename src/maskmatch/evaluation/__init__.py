"""How good a model is: metrics, and a report that prints, saves and draws itself."""

from maskmatch.evaluation.metrics import (
    LabelScore,
    ReliabilityBin,
    accuracy,
    best_threshold,
    confusion_counts,
    expected_calibration_error,
    label_scores,
    macro_f1,
    micro_f1,
    multi_label_accuracy,
    multi_label_macro_f1,
    multi_label_micro_f1,
    multi_label_scores,
    reliability_bins,
    truth_matrix,
)
from maskmatch.evaluation.report import (
    Confusion,
    EvaluationReport,
    Example,
    UnseenLabel,
    evaluate_predictions,
)

__all__ = [
    "Confusion",
    "EvaluationReport",
    "Example",
    "LabelScore",
    "ReliabilityBin",
    "UnseenLabel",
    "accuracy",
    "best_threshold",
    "confusion_counts",
    "evaluate_predictions",
    "expected_calibration_error",
    "label_scores",
    "macro_f1",
    "micro_f1",
    "multi_label_accuracy",
    "multi_label_macro_f1",
    "multi_label_micro_f1",
    "multi_label_scores",
    "reliability_bins",
    "truth_matrix",
]
