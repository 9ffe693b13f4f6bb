"""The data package as a whole: its imports, its public names and its doctests."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest

import maskmatch.data

MODULES = [module.name for module in pkgutil.iter_modules(maskmatch.data.__path__, "maskmatch.data.")]


def test_import_loads_no_heavy_library() -> None:
    program = (
        "import sys, maskmatch.data; "
        "print(*{name.partition('.')[0] for name in sys.modules} & "
        "{'torch', 'transformers', 'pandas', 'polars', 'pyarrow', 'datasets', 'numpy'})"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert result.stdout.strip() == ""


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_public_names() -> None:
    for name in maskmatch.data.__all__:
        assert getattr(maskmatch.data, name) is not None
