"""Methods compared: datasets by methods by regimes by seeds, with paired tests, tables and a page."""

from maskmatch.comparison.cells import Cell
from maskmatch.comparison.comparing import compare
from maskmatch.comparison.label_changes import LabelChange, LabelContext
from maskmatch.comparison.regimes import Regime
from maskmatch.comparison.results import Comparison
from maskmatch.comparison.splits import Rows, Splits
from maskmatch.comparison.statistics import PairedDifference, Spread, paired_bootstrap, spread
from maskmatch.comparison.tuning import Setting, Tuning, tune
from maskmatch.comparison.variants import Variant, usual_methods

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
    "Variant",
    "compare",
    "paired_bootstrap",
    "spread",
    "tune",
    "usual_methods",
]
