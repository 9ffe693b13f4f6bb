"""Read files, data frames and datasets as rows, and rows as texts and labels; write rows to files."""

from maskmatch.data.columns import Columns, guess_columns
from maskmatch.data.examples import Examples, iter_examples, load_examples, take_examples, take_texts
from maskmatch.data.formats import read_rows
from maskmatch.data.in_memory import is_table
from maskmatch.data.labelled_texts import LabelledTexts, load_label_sets
from maskmatch.data.rows import Row, TableRows
from maskmatch.data.sampling import draw_fraction, draw_shots
from maskmatch.data.streams import Source
from maskmatch.data.tables import write_table
from maskmatch.data.values import blank_message, is_blank, is_missing

__all__ = [
    "Columns",
    "Examples",
    "LabelledTexts",
    "Row",
    "Source",
    "TableRows",
    "blank_message",
    "draw_fraction",
    "draw_shots",
    "guess_columns",
    "is_blank",
    "is_missing",
    "is_table",
    "iter_examples",
    "load_examples",
    "load_label_sets",
    "read_rows",
    "take_examples",
    "take_texts",
    "write_table",
]
