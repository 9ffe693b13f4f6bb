"""Rows of files, data frames and datasets, and the texts and labels in them."""

from maskmatch.data.columns import Columns, guess_columns
from maskmatch.data.draws import draw_fraction, draw_shots
from maskmatch.data.examples import Examples, iter_examples, load_examples
from maskmatch.data.label_sets import LabelledTexts, load_label_sets
from maskmatch.data.readers import Row, Source, read_rows
from maskmatch.data.tables import is_table

__all__ = [
    "Columns",
    "Examples",
    "LabelledTexts",
    "Row",
    "Source",
    "draw_fraction",
    "draw_shots",
    "guess_columns",
    "is_table",
    "iter_examples",
    "load_examples",
    "load_label_sets",
    "read_rows",
]
