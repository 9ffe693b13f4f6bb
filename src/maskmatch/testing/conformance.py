"""The conformance suite for predictors: one table of checks that every predictor passes.

A predictor is anything with ``predict``, ``predict_proba`` and labels: a classifier, an export, a client of a service,
a scikit-learn estimator. In a test of your own::

    from maskmatch.testing import check_predictor

    def test_my_predictor():
        check_predictor(my_predictor, ["where is my refund?", "I lost my card", "what is the euro at?"])
"""

from __future__ import annotations

import copy
import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

ODD_TEXTS = (
    "[MASK] <mask> [SEP] </s> [PAD]",
    "{mask} {text} {label} {{}}",
    "👩‍👩‍👧 naïve façade — Ünïcödé",
    "שלום עולם مرحبا",
    "日本語のテキスト",
    "a\tb\nc\r\nd",
    "nul \x00 and \x1b[0m",
    "very long " * 3000,
    "x" * 5000,
    "'; DROP TABLE labels; --",
    "=1+1",
)
"""Texts that break careless code. Each of them must get an answer like any other text."""

THREADS = 4
CALLS_PER_THREAD = 5


class ConformanceError(AssertionError):
    """A predictor failed checks; the message names them all."""


@dataclass(frozen=True)
class CheckResult:
    """The result of one check.

    Attributes:
        name: The name of the check.
        status: "passed", "failed" or "skipped".
        reason: Why it failed or was skipped.
    """

    name: str
    status: Literal["passed", "failed", "skipped"]
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.status}{f' ({self.reason})' if self.reason else ''}"


@dataclass(frozen=True)
class Subject:
    """A predictor under test.

    Attributes:
        predictor: The predictor.
        texts: Texts that it can classify.
        reload: Saves the predictor and loads it again; None: this is not checked.
        tolerance: By how much two probabilities of the same text and label may differ.
        seconds: How long another process may take to answer.
    """

    predictor: Any
    texts: list[Any]
    reload: Callable[[Any], Any] | None
    tolerance: float
    seconds: float

    @property
    def labels(self) -> list[Any]:
        """The labels, in the order of columns."""
        found = getattr(self.predictor, "labels", None)
        return list(self.predictor.classes_ if found is None else found)

    @property
    def multi_label(self) -> bool:
        """Whether a text may have several labels."""
        return bool(getattr(getattr(self.predictor, "config", self.predictor), "multi_label", False))

    def same(self, found: Any, expected: Any, what: str) -> None:
        """Fail unless two arrays of probabilities are alike."""
        found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
        _require(found.shape == expected.shape, f"{what}: shape {found.shape}, not {expected.shape}")
        apart = float(np.abs(found - expected).max(initial=0.0))
        _require(apart <= self.tolerance, f"{what}: probabilities differ by {apart:.2g}")


def _require(condition: object, message: str) -> None:
    """Raise unless a condition holds, also where Python leaves out assert statements."""
    if not condition:
        raise AssertionError(message)


class _NotApplicableError(Exception):
    """A check does not apply to this predictor."""


def check_predictor(
    predictor: Any,
    texts: Sequence[Any],
    *,
    reload: Callable[[Any], Any] | None = None,
    skip: Mapping[str, str] | None = None,
    tolerance: float = 1e-4,
    seconds: float = 120.0,
) -> list[CheckResult]:
    """Run all checks on a predictor; ConformanceError names those that fail.

    Args:
        predictor: Something with ``predict``, ``predict_proba``, ``labels`` (or ``classes_``), and perhaps ``top_k``.
        texts: At least three different texts that it can classify.
        reload: Saves the predictor and returns it as loaded again. If given, that must change no answer.
        skip: The names of checks that cannot apply, each with the reason.
        tolerance: By how much two probabilities of the same text and label may differ.
        seconds: How long another process may take to answer.

    Returns:
        The result of every check.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # a spawned process imports the script again
        raise MaskMatchError('In a script, call check_predictor behind if __name__ == "__main__": it starts processes.')
    if not isinstance(skip or {}, dict):
        raise MaskMatchError(f"skip is a dict of checks and reasons, not a {type(skip).__name__}.")
    skip = dict(skip or {})
    unknown = sorted(skip.keys() - CHECKS.keys())
    if unknown:
        raise MaskMatchError(f"There is no check {unknown[0]!r}; the checks are {', '.join(CHECKS)}.")
    for name in ("predict", "predict_proba"):
        if not callable(getattr(predictor, name, None)):
            raise MaskMatchError(f"A {type(predictor).__name__} is no predictor: it has no {name}.")
    if isinstance(texts, (str, dict)):
        raise MaskMatchError(f"Texts come as a list; this is a {type(texts).__name__}.")
    different = len({repr(text) for text in texts})
    if different < 3:
        raise MaskMatchError(f"check_predictor needs at least three different texts; there are {different}.")
    subject = Subject(predictor, list(texts), reload, tolerance, seconds)
    results = [_run(name, subject, skip.get(name)) for name in CHECKS]
    failed = [result for result in results if result.status == "failed"]
    if failed:
        raise ConformanceError(f"{predictor!r} fails {len(failed)} checks: " + "; ".join(map(str, failed)))
    return results


def _run(name: str, subject: Subject, skipped: str | None) -> CheckResult:
    if skipped is not None:
        return CheckResult(name, "skipped", skipped)
    try:
        CHECKS[name](subject)
    except _NotApplicableError as why:
        return CheckResult(name, "skipped", str(why))
    except Exception as error:  # whatever a broken predictor raises is the result
        said = str(error).strip().partition("\n")[0]
        reason = said if isinstance(error, AssertionError) else f"{type(error).__name__}: {said}"
        return CheckResult(name, "failed", reason)
    return CheckResult(name, "passed")


# -- answers -------------------------------------------------------------------------------------------------


def _empty_input(subject: Subject) -> None:
    """No texts: no answers, and no error."""
    _require(len(subject.predictor.predict([])) == 0, "predict([]) is not empty")
    shape = np.asarray(subject.predictor.predict_proba([])).shape
    _require(shape == (0, len(subject.labels)), f"predict_proba([]) has the shape {shape}")
    if hasattr(subject.predictor, "top_k"):
        _require(list(subject.predictor.top_k([], 2)) == [], "top_k([]) is not empty")


def _blank_texts(subject: Subject) -> None:
    """A blank text is an error, not an answer."""
    for blank in (*_like(subject, ("", "  \t\n")), None):
        _must_raise(subject.predictor.predict, [*subject.texts[:2], blank], f"the text {blank!r}")


def _wrong_types(subject: Subject) -> None:
    """What is no list of texts is an error: a bare string is not a list of letters."""
    for wrong in (subject.texts[0], 3, [3.5], [[subject.texts[0]]], object()):
        _must_raise(subject.predictor.predict, wrong, f"the input {wrong!r}")


def _probabilities(subject: Subject) -> None:
    """A number from 0 to 1 per label; with one label per text they sum to 1."""
    found = np.asarray(subject.predictor.predict_proba(subject.texts))
    expected = len(subject.texts), len(subject.labels)
    _require(found.shape == expected, f"predict_proba has the shape {found.shape}, not {expected}")
    _require(np.isfinite(found).all(), "a probability is NaN or inf")
    _require(((found >= 0) & (found <= 1 + 1e-6)).all(), "a probability is not between 0 and 1")
    if not subject.multi_label:
        _require(np.allclose(found.sum(axis=1), 1, atol=1e-3), "the probabilities of a text do not sum to 1")


def _agreement(subject: Subject) -> None:
    """``predict`` and ``top_k`` say what ``predict_proba`` says."""
    labels, chosen = subject.labels, list(subject.predictor.predict(subject.texts))
    matrix = np.asarray(subject.predictor.predict_proba(subject.texts))
    _require(len(chosen) == len(subject.texts), f"{len(chosen)} answers for {len(subject.texts)} texts")
    # If labels have thresholds of their own, one that applies may be less probable than one that does not.
    own_thresholds = bool(getattr(getattr(subject.predictor, "pipeline", None), "thresholds", None))
    for row, answer in enumerate(chosen):
        given = list(answer) if subject.multi_label else [answer]
        _require(all(label in labels for label in given), f"{answer!r} is no label")
        chosen_values = [matrix[row, labels.index(label)] for label in given]
        others = [matrix[row, place] for place, label in enumerate(labels) if label not in given]
        lead = max(others, default=0.0) - min(chosen_values, default=1.0)
        if own_thresholds:
            continue
        _require(lead <= subject.tolerance, f"{answer!r} was predicted, but another label is more probable")
    if not hasattr(subject.predictor, "top_k"):
        return
    for row, pairs in enumerate(subject.predictor.top_k(subject.texts, len(labels))):
        values = [value for _, value in pairs]
        _require(values == sorted(values, reverse=True), "top_k is not in order")
        _require(
            {str(label) for label, _ in pairs} == {str(label) for label in labels}, "top_k does not give all labels"
        )
        subject.same(values, [matrix[row, labels.index(label)] for label, _ in pairs], "top_k and predict_proba")


def _odd_texts(subject: Subject) -> None:
    """Special tokens, control characters and very long texts are texts like others."""
    texts = _like(subject, ODD_TEXTS)
    found = np.asarray(subject.predictor.predict_proba(texts))
    _require(found.shape[0] == len(texts), f"{found.shape[0]} answers for {len(texts)} texts")
    _require(np.isfinite(found).all(), "a probability is NaN or inf")


def _repetition(subject: Subject) -> None:
    """The same call gives the same answer, and changes nothing of its input."""
    before = copy.deepcopy(subject.texts)
    first, second = (np.asarray(subject.predictor.predict_proba(subject.texts)) for _ in range(2))
    subject.same(second, first, "a second call")
    _require(subject.texts == before, "a call changed its input")


def _order(subject: Subject) -> None:
    """Answers are in the order of the texts."""
    forward = np.asarray(subject.predictor.predict_proba(subject.texts))
    backward = np.asarray(subject.predictor.predict_proba(subject.texts[::-1]))
    subject.same(backward[::-1], forward, "the texts in another order")


def _batch_independence(subject: Subject) -> None:
    """The answer for a text is the same alone and beside any other text."""
    together = np.asarray(subject.predictor.predict_proba([*subject.texts, *_like(subject, ODD_TEXTS)]))
    for row, text in enumerate(subject.texts):
        alone = np.asarray(subject.predictor.predict_proba([text]))[0]
        subject.same(alone, together[row], f"{str(text)[:40]!r} alone and beside others")


def _containers(subject: Subject) -> None:
    """A tuple and an array of texts are read like a list."""
    expected = subject.predictor.predict_proba(subject.texts)
    array = np.empty(len(subject.texts), dtype=object)
    array[:] = subject.texts
    for texts in (tuple(subject.texts), array):
        subject.same(subject.predictor.predict_proba(texts), expected, f"the texts as {type(texts).__name__}")


# -- threads and processes -----------------------------------------------------------------------------------


def _threads(subject: Subject) -> None:
    """Several threads at once get the answers that one thread gets."""
    expected = np.asarray(subject.predictor.predict_proba(subject.texts))
    start = threading.Barrier(THREADS)

    def work(_: int) -> list[NDArray[Any]]:
        start.wait()
        return [np.asarray(subject.predictor.predict_proba(subject.texts)) for _ in range(CALLS_PER_THREAD)]

    with ThreadPoolExecutor(THREADS) as pool:
        for found in (each for calls in pool.map(work, range(THREADS)) for each in calls):
            subject.same(found, expected, "several threads at once")


def _fork(subject: Subject) -> None:
    """A forked process answers, also after its parent has answered."""
    if not hasattr(os, "fork"):
        raise _NotApplicableError("this system has no fork")
    subject.same(_elsewhere(subject, "fork"), subject.predictor.predict_proba(subject.texts), "a forked process")


def _copies(subject: Subject) -> None:
    """A deep copy and a copy in another process answer alike."""
    expected = subject.predictor.predict_proba(subject.texts)
    subject.same(copy.deepcopy(subject.predictor).predict_proba(subject.texts), expected, "a deep copy")
    subject.same(_elsewhere(subject, "spawn"), expected, "a copy in another process")


def _round_trip(subject: Subject) -> None:
    """Saved and loaded again, it gives the same answers for the same labels."""
    if subject.reload is None:
        raise _NotApplicableError("no reload was given")
    again = subject.reload(subject.predictor)
    own = Subject(again, subject.texts, None, subject.tolerance, subject.seconds)
    _require(own.labels == subject.labels, "the loaded predictor has other labels")
    expected = subject.predictor.predict_proba(subject.texts)
    subject.same(again.predict_proba(subject.texts), expected, "saved and loaded again")


CHECKS: dict[str, Callable[[Subject], None]] = {
    "empty input": _empty_input,
    "blank texts": _blank_texts,
    "wrong types": _wrong_types,
    "probabilities": _probabilities,
    "agreement": _agreement,
    "odd texts": _odd_texts,
    "repetition": _repetition,
    "order": _order,
    "batch independence": _batch_independence,
    "containers": _containers,
    "threads": _threads,
    "fork": _fork,
    "copies": _copies,
    "round trip": _round_trip,
}
"""All checks by name."""


def _like(subject: Subject, texts: Sequence[str]) -> list[Any]:
    """Texts in the form of the subject's: with the same fields, if those are dicts."""
    first = subject.texts[0]
    return [dict.fromkeys(first, text) if isinstance(first, dict) else text for text in texts]


def _must_raise(call: Callable[[Any], Any], value: Any, what: str) -> None:
    """Fail unless a call raises ValueError or TypeError with a sentence."""
    try:
        call(value)
    except (ValueError, TypeError) as error:
        said = str(error).strip()
    except Exception as error:
        raise AssertionError(f"{what} raises {type(error).__name__}, not ValueError or TypeError") from error
    else:
        raise AssertionError(f"{what} gets an answer, not an error")
    _require(said, f"{what} raises an error without a message")


def _elsewhere(subject: Subject, how: Literal["fork", "spawn"]) -> NDArray[Any]:
    """The probabilities that another process computes."""
    subject.predictor.predict_proba(subject.texts[:1])  # which starts threads that the process will not have
    context = multiprocessing.get_context(how)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(subject.predictor, subject.texts, theirs), daemon=True)  # type: ignore[attr-defined]
    process.start()
    theirs.close()
    try:
        _require(ours.poll(subject.seconds), f"another process ({how}) gave no answer in {subject.seconds:.0f} s")
        answer = ours.recv()
    except EOFError:
        raise AssertionError(f"another process ({how}) died without an answer") from None
    finally:
        process.kill()
        process.join()
    _require(not isinstance(answer, str), f"another process ({how}) failed: {answer}")
    return np.asarray(answer)


def _answer(predictor: Any, texts: list[Any], connection: Any) -> None:
    """What the other process does: send the probabilities, or why there are none."""
    try:
        connection.send(np.asarray(predictor.predict_proba(texts)))
    except BaseException as error:
        connection.send(f"{type(error).__name__}: {error}")
    finally:
        connection.close()
