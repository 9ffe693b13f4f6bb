"""Check label names: how informative they are, and which are uninformative, too close or confused."""

from maskmatch.label_tools.check.check import NameCheck, check_labels
from maskmatch.label_tools.check.findings import Advice, Finding, FindingKind
from maskmatch.label_tools.check.informativeness import Informativeness, informativeness
from maskmatch.label_tools.check.report import LabelCheck

__all__ = [
    "Advice",
    "Finding",
    "FindingKind",
    "Informativeness",
    "LabelCheck",
    "NameCheck",
    "check_labels",
    "informativeness",
]
