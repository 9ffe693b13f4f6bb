"""Labels: names, descriptions, phrases and examples, which stay editable text."""

from maskmatch.labels.label import ExampleText, Label, LabelText, label_from_json, label_to_json, readable
from maskmatch.labels.label_set import LabelSet, LabelsLike

__all__ = [
    "ExampleText",
    "Label",
    "LabelSet",
    "LabelText",
    "LabelsLike",
    "label_from_json",
    "label_to_json",
    "readable",
]
