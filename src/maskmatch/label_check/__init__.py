"""The label doctor: how much names say, and what may be wrong with them."""

from maskmatch.label_check.check import check_labels
from maskmatch.label_check.findings import Finding, FindingKind
from maskmatch.label_check.informativeness import Informativeness, informativeness
from maskmatch.label_check.report import LabelCheck

__all__ = ["Finding", "FindingKind", "Informativeness", "LabelCheck", "check_labels", "informativeness"]
