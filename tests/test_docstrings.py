"""The examples in docstrings run."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

WITH_EXAMPLES = (
    "prompts.template",
    "prompts.fields",
    "prompts.tokens",
    "labels",
    "batches",
    "expansion.ground",
    "label_check.suggestions",
)
WITHOUT = (
    "encoder",
    "kept_labels",
    "search",
    "label_files",
    "readout",
    "similarity",
    "label_vectors",
    "mlm_head",
    "methods",
    "tasks",
    "config",
    "targets",
    "model",
    "whole_folder",
)


@pytest.mark.parametrize("name", [*WITH_EXAMPLES, *WITHOUT])
def test_the_examples_in_docstrings_run(name: str) -> None:
    result = doctest.testmod(import_module(f"maskmatch.{name}"))
    assert result.failed == 0
    assert result.attempted > 0 or name in WITHOUT
