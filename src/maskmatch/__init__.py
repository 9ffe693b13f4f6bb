"""Text classification by the names of labels: Mask Matching.

>>> from maskmatch import MaskMatcher                                        # doctest: +SKIP
>>> matcher = MaskMatcher.from_pretrained(labels=["refund", "card lost"])    # doctest: +SKIP
>>> matcher.predict(["Where is my money?"])                                  # doctest: +SKIP
['refund']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maskmatch.config.methods import METHODS, Method
    from maskmatch.config.similarity import SimilarityConfig
    from maskmatch.config.tasks import TASKS, Task
    from maskmatch.config.training import TrainingConfig
    from maskmatch.data import draw_fraction, draw_shots, load_examples
    from maskmatch.errors import MaskMatchError, MissingPackageError
    from maskmatch.evaluation import EvaluationReport
    from maskmatch.label_tools.check import LabelCheck, check_labels, informativeness
    from maskmatch.label_tools.expansion import Expansion, expand_labels
    from maskmatch.label_tools.leave_out import LeftOutReport, leave_labels_out
    from maskmatch.labels import Label, LabelSet
    from maskmatch.matcher import MaskMatcher
    from maskmatch.prompts import Prompt
    from maskmatch.storage.export.exporter import export
    from maskmatch.storage.export.matcher import ExportedMatcher
    from maskmatch.training.alignment import Alignment, AlignmentConfig, align

__version__ = "0.2.0"

# Public names are imported when they are first used: torch takes seconds to load, and `maskmatch --help` needs none.
_HOMES = {
    "Alignment": "training.alignment",
    "AlignmentConfig": "training.alignment",
    "align": "training.alignment",
    "MaskMatcher": "matcher",
    "TrainingConfig": "config.training",
    "draw_fraction": "data",
    "draw_shots": "data",
    "load_examples": "data",
    "MaskMatchError": "errors",
    "MissingPackageError": "errors",
    "EvaluationReport": "evaluation",
    "Expansion": "label_tools.expansion",
    "expand_labels": "label_tools.expansion",
    "LeftOutReport": "label_tools.leave_out",
    "leave_labels_out": "label_tools.leave_out",
    "ExportedMatcher": "storage.export.matcher",
    "export": "storage.export.exporter",
    "LabelCheck": "label_tools.check",
    "check_labels": "label_tools.check",
    "informativeness": "label_tools.check",
    "Label": "labels",
    "LabelSet": "labels",
    "METHODS": "config.methods",
    "Method": "config.methods",
    "Prompt": "prompts",
    "SimilarityConfig": "config.similarity",
    "TASKS": "config.tasks",
    "Task": "config.tasks",
}

__all__ = [
    "METHODS",
    "TASKS",
    "Alignment",
    "AlignmentConfig",
    "EvaluationReport",
    "Expansion",
    "ExportedMatcher",
    "Label",
    "LabelCheck",
    "LabelSet",
    "LeftOutReport",
    "MaskMatchError",
    "MaskMatcher",
    "Method",
    "MissingPackageError",
    "Prompt",
    "SimilarityConfig",
    "Task",
    "TrainingConfig",
    "align",
    "check_labels",
    "draw_fraction",
    "draw_shots",
    "expand_labels",
    "export",
    "informativeness",
    "leave_labels_out",
    "load_examples",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'maskmatch' has no attribute {name!r}")
    from maskmatch.errors import packages_needed

    with packages_needed():
        return getattr(import_module(f"maskmatch.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
