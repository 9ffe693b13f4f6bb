"""Evaluate predictions: metrics, calibration, and a report as text, HTML and JSON."""

from maskmatch.evaluation.calibration import ReliabilityBin, expected_calibration_error, reliability_bins
from maskmatch.evaluation.evaluate import evaluate_predictions
from maskmatch.evaluation.intervals import Interval, wilson
from maskmatch.evaluation.metrics import (
    METRICS,
    Metric,
    directed_macro_f1,
    find_metric,
    mean_f1_of,
    measure,
    micro_f1_without,
)
from maskmatch.evaluation.report import Confusion, EvaluationReport, Example, UnseenLabel
from maskmatch.evaluation.scores import (
    LabelScore,
    accuracy,
    best_threshold,
    confusion_counts,
    label_scores,
    macro_f1,
    micro_f1,
    multi_label_accuracy,
    multi_label_macro_f1,
    multi_label_micro_f1,
    multi_label_scores,
    truth_matrix,
)

__all__ = [
    "METRICS",
    "Confusion",
    "EvaluationReport",
    "Example",
    "Interval",
    "LabelScore",
    "Metric",
    "ReliabilityBin",
    "UnseenLabel",
    "accuracy",
    "best_threshold",
    "confusion_counts",
    "directed_macro_f1",
    "evaluate_predictions",
    "expected_calibration_error",
    "find_metric",
    "label_scores",
    "macro_f1",
    "mean_f1_of",
    "measure",
    "micro_f1",
    "micro_f1_without",
    "multi_label_accuracy",
    "multi_label_macro_f1",
    "multi_label_micro_f1",
    "multi_label_scores",
    "reliability_bins",
    "truth_matrix",
    "wilson",
]
