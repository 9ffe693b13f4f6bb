"""Text classification by the names of labels: Mask Matching.

>>> from maskmatch import MaskMatcher                                        # doctest: +SKIP
>>> matcher = MaskMatcher.from_pretrained(labels=["refund", "card lost"])    # doctest: +SKIP
>>> matcher.predict(["Where is my money?"])                                  # doctest: +SKIP
['refund']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maskmatch.alignment import Alignment, AlignmentConfig, align
    from maskmatch.classifier import MaskMatcher
    from maskmatch.comparison import Comparison, compare
    from maskmatch.data import draw_fraction, draw_shots, load_examples
    from maskmatch.errors import MaskMatchError
    from maskmatch.evaluation import EvaluationReport
    from maskmatch.expansion import Expansion, expand_labels
    from maskmatch.exporting import export
    from maskmatch.exports import ExportedMatcher
    from maskmatch.label_check import LabelCheck, check_labels, informativeness
    from maskmatch.labels import Label, LabelSet
    from maskmatch.methods import METHODS, Method
    from maskmatch.prompts import Prompt
    from maskmatch.similarity_config import SimilarityConfig
    from maskmatch.tasks import TASKS, Task
    from maskmatch.training_config import TrainingConfig

__version__ = "0.1.0"

# Public names are imported when they are first used: torch takes seconds to load, and `maskmatch --help` needs none.
_HOMES = {
    "Alignment": "alignment",
    "AlignmentConfig": "alignment",
    "align": "alignment",
    "MaskMatcher": "classifier",
    "Comparison": "comparison",
    "compare": "comparison",
    "TrainingConfig": "training_config",
    "draw_fraction": "data",
    "draw_shots": "data",
    "load_examples": "data",
    "MaskMatchError": "errors",
    "EvaluationReport": "evaluation",
    "Expansion": "expansion",
    "expand_labels": "expansion",
    "ExportedMatcher": "exports",
    "export": "exporting",
    "LabelCheck": "label_check",
    "check_labels": "label_check",
    "informativeness": "label_check",
    "Label": "labels",
    "LabelSet": "labels",
    "METHODS": "methods",
    "Method": "methods",
    "Prompt": "prompts",
    "SimilarityConfig": "similarity_config",
    "TASKS": "tasks",
    "Task": "tasks",
}

__all__ = [
    "METHODS",
    "TASKS",
    "Alignment",
    "AlignmentConfig",
    "Comparison",
    "EvaluationReport",
    "Expansion",
    "ExportedMatcher",
    "Label",
    "LabelCheck",
    "LabelSet",
    "MaskMatchError",
    "MaskMatcher",
    "Method",
    "Prompt",
    "SimilarityConfig",
    "Task",
    "TrainingConfig",
    "align",
    "check_labels",
    "compare",
    "draw_fraction",
    "draw_shots",
    "expand_labels",
    "export",
    "informativeness",
    "load_examples",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'maskmatch' has no attribute {name!r}")
    return getattr(import_module(f"maskmatch.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
