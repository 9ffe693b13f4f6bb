"""Comparisons of methods: datasets by methods by regimes by seeds, with paired tests, tables and a report."""

from maskmatch_lab.comparison.cells import Cell
from maskmatch_lab.comparison.comparing import compare
from maskmatch_lab.comparison.label_changes import LabelChange, LabelContext
from maskmatch_lab.comparison.regimes import Regime
from maskmatch_lab.comparison.results import Comparison
from maskmatch_lab.comparison.splits import Rows, Splits
from maskmatch_lab.comparison.statistics import PairedDifference, Spread, paired_bootstrap, spread
from maskmatch_lab.comparison.tuning import Setting, Tuning, tune
from maskmatch_lab.comparison.unlabelled import Unlabelled
from maskmatch_lab.comparison.variants import Variant, usual_methods

__all__ = [
    "Cell",
    "Comparison",
    "LabelChange",
    "LabelContext",
    "PairedDifference",
    "Regime",
    "Rows",
    "Setting",
    "Splits",
    "Spread",
    "Tuning",
    "Unlabelled",
    "Variant",
    "compare",
    "paired_bootstrap",
    "spread",
    "tune",
    "usual_methods",
]
