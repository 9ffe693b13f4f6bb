"""Forked processes and copies in other processes give the same answers."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskmatch import ExportedMatcher, MaskMatcher, export
from refusals import refusal
from toy_data import A_LITTLE, LABELS, TEXTS, TRUTH

Tiny = Callable[..., Path]


@pytest.fixture(params=["classifier", "trained", "export", "int8"])
def predictor(request: pytest.FixtureRequest, tiny: Tiny, tmp_path: Path) -> Any:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    if request.param == "trained":
        return matcher.fit(TEXTS, TRUTH, **A_LITTLE)
    if request.param == "classifier":
        return matcher
    export(matcher, tmp_path / "export", int8=request.param == "int8")
    return ExportedMatcher.from_pretrained(tmp_path / "export")


def answers(predictor: Any) -> Any:
    return predictor.predict_proba(TEXTS)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_answers_after_its_parent_has(predictor: Any) -> None:
    expected = answers(predictor)  # which starts threads
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for found in pool.map_async(answers, [predictor] * 2).get(60):
            np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_uses_what_it_inherits(predictor: Any, tmp_path: Path) -> None:
    expected = answers(predictor)
    child = os.fork()
    if child == 0:
        try:
            np.save(tmp_path / "found.npy", answers(predictor))
        finally:
            os._exit(0)
    for _ in range(600):
        if os.waitpid(child, os.WNOHANG)[0]:
            break
        multiprocessing.Event().wait(0.1)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the forked process hangs")
    np.testing.assert_allclose(np.load(tmp_path / "found.npy"), expected, atol=1e-5)


def test_another_process_gets_a_copy(predictor: Any) -> None:
    expected = answers(predictor)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        np.testing.assert_allclose(pool.apply_async(answers, (predictor,)).get(120), expected, atol=1e-5)


def test_copies_answer_alike(predictor: Any) -> None:
    for twin in (pickle.loads(pickle.dumps(predictor)), copy.deepcopy(predictor)):
        np.testing.assert_allclose(answers(twin), answers(predictor), atol=1e-6)
        assert list(twin.labels) == LABELS


def test_a_copy_holds_no_pickled_modules(tiny: Tiny) -> None:
    data = pickle.dumps(MaskMatcher.from_pretrained(tiny("bert"), LABELS))
    assert b"torch" not in data.partition(b"PK")[0]


def test_a_copy_knows_nothing_of_the_folder_of_the_original(tiny: Tiny, tmp_path: Path) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    matcher.save_pretrained(tmp_path / "model")
    twin = MaskMatcher.from_bytes(matcher.to_bytes()).add_labels(["parcel"])
    assert "other labels" in refusal(twin.save_pretrained, tmp_path / "model")


def test_a_copy_of_an_export_that_was_replaced_is_refused(tiny: Tiny, tmp_path: Path) -> None:
    export(MaskMatcher.from_pretrained(tiny("bert"), LABELS), tmp_path / "export")
    data = pickle.dumps(ExportedMatcher.from_pretrained(tmp_path / "export"))
    export(MaskMatcher.from_pretrained(tiny("bert"), LABELS[:2]), tmp_path / "export")
    assert "was changed" in refusal(pickle.loads, data)


@pytest.mark.parametrize("data", [b"", b"junk", "text"])
def test_bytes_of_something_else(data: Any) -> None:
    assert "not those of a saved classifier" in refusal(MaskMatcher.from_bytes, data)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_while_another_thread_reads_labels(tiny: Tiny, tmp_path: Path) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    matcher.predict(TEXTS)
    with matcher.bank.lock:
        thread = threading.Thread(target=matcher.predict, args=(TEXTS,))
        child = os.fork()  # holds the lock, too, were it not freed
        if child == 0:
            thread.start()
            thread.join(20)
            os._exit(int(thread.is_alive()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_export_whose_files_were_replaced_is_refused(tiny: Tiny, tmp_path: Path) -> None:
    export(MaskMatcher.from_pretrained(tiny("bert"), LABELS), tmp_path / "export")
    matcher = ExportedMatcher.from_pretrained(tmp_path / "export")
    matcher.predict(TEXTS)
    export(MaskMatcher.from_pretrained(tiny("bert"), LABELS[:2]), tmp_path / "export")
    child = os.fork()
    if child == 0:
        os._exit(int("was replaced" not in refusal(matcher.predict, TEXTS)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_folder_is_known_after_a_change_of_the_working_directory(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    mine.save_pretrained("model")
    with MaskMatcher.editing("model") as other:
        other.add_labels(["red"])
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert "changed by someone else" in refusal(mine.save_pretrained, tmp_path / "model")
