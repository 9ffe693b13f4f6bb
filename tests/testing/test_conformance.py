"""The conformance suite: our predictors pass it, and one that breaks a promise fails the check of that promise."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskmatch import ExportedMatcher, MaskMatcher, export
from maskmatch.testing import CHECKS, ConformanceError, check_predictor, write_tiny_encoder
from refusals import refusal
from toy_data import A_LITTLE, LABELS, TEXTS, TRUTH

Tiny = Callable[..., Path]
PAIRS = [{"text": text, "text_b": other} for text, other in pairwise(TEXTS)]


def saved(matcher: Any, folder: Path) -> MaskMatcher:
    return MaskMatcher.from_pretrained(matcher.save_pretrained(folder))


@pytest.mark.parametrize(
    ("method", "options", "texts"),
    [
        ("mask-matching", {}, TEXTS),
        ("mask-matching", {"multi_label": True}, TEXTS),
        ("pair-matching", {"task": "paraphrase"}, PAIRS),
    ],
)
def test_classifiers_conform(tiny: Tiny, tmp_path: Path, method: str, options: Any, texts: list[Any]) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, method=method, **options)
    results = check_predictor(matcher, texts, reload=lambda each: saved(each, tmp_path / "model"))
    assert [result.status for result in results] == ["passed"] * len(CHECKS)


def test_a_trained_classifier_conforms(tiny: Tiny, tmp_path: Path) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("roberta"), LABELS).fit(TEXTS, TRUTH, **A_LITTLE)
    check_predictor(matcher, TEXTS, reload=lambda each: saved(each, tmp_path / "model"))


@pytest.mark.parametrize("int8", [False, True])
def test_exports_conform(tiny: Tiny, tmp_path: Path, int8: bool) -> None:
    export(MaskMatcher.from_pretrained(tiny("bert"), LABELS), tmp_path / "export", int8=int8)
    results = check_predictor(
        ExportedMatcher.from_pretrained(tmp_path / "export"),
        TEXTS,
        reload=lambda _: ExportedMatcher.from_pretrained(tmp_path / "export"),
    )
    assert {result.status for result in results} == {"passed"}


class Sound:
    """A predictor by the lengths of texts that keeps all promises."""

    labels = ("short", "long")

    def predict_proba(self, texts: Any) -> Any:
        if isinstance(texts, (str, dict)) or not hasattr(texts, "__len__"):
            raise TypeError("Give a list of texts.")
        for text in texts:
            if not isinstance(text, str) or not text.strip():
                raise ValueError(f"{text!r} is no text.")
        long = np.array([min(len(text), 50) / 100 for text in texts])
        return np.stack([1 - long, long], axis=1)

    def predict(self, texts: Any) -> list[str]:
        return [self.labels[row.argmax()] for row in self.predict_proba(texts)]

    def top_k(self, texts: Any, k: int) -> Any:
        return [
            sorted(zip(self.labels, row.tolist(), strict=True), key=lambda pair: -pair[1])[:k]
            for row in self.predict_proba(texts)
        ]


class NoneForNothing(Sound):
    def predict(self, texts: Any) -> Any:
        return super().predict(texts) or ["short"]


class AnswersBlanks(Sound):
    def predict(self, texts: Any) -> list[str]:
        if isinstance(texts, str):
            raise TypeError("Give a list.")
        return super().predict([text.strip() or "blank" if isinstance(text, str) else text for text in texts])


class SplitsStrings(Sound):
    def predict(self, texts: Any) -> list[str]:
        return super().predict(list(texts))


class SumsToTwo(Sound):
    def predict_proba(self, texts: Any) -> Any:
        return super().predict_proba(texts) + 0.5


class Contradicts(Sound):
    def predict(self, texts: Any) -> list[str]:
        return ["long" if each == "short" else "short" for each in super().predict(texts)]


class FailsOnNul(Sound):
    def predict_proba(self, texts: Any) -> Any:
        if any("\0" in text for text in texts if isinstance(text, str)):
            raise RuntimeError("NUL")
        return super().predict_proba(texts)


class Drifts(Sound):
    calls = 0

    def predict_proba(self, texts: Any) -> Any:
        self.calls += 1
        first, second = super().predict_proba(texts).T
        return np.stack([first - self.calls / 1000, second + self.calls / 1000], axis=1)


class SortsTexts(Sound):
    def predict_proba(self, texts: Any) -> Any:
        return super().predict_proba(sorted(texts) if isinstance(texts, list) and len(texts) > 2 else texts)


class LooksAtNeighbours(Sound):
    def predict_proba(self, texts: Any) -> Any:
        found = super().predict_proba(texts)
        return found if len(found) == 0 else (found + found.mean(axis=0)) / 2


class ListsOnly(Sound):
    def predict_proba(self, texts: Any) -> Any:
        if not isinstance(texts, list):
            raise TypeError("Give a list of texts.")
        return super().predict_proba(texts)


class OneThread(Sound):
    def __init__(self) -> None:
        self.thread = threading.get_ident()

    def predict_proba(self, texts: Any) -> Any:
        if threading.get_ident() != self.thread:
            raise RuntimeError("another thread")
        return super().predict_proba(texts)


class OneProcess(Sound):
    def __init__(self) -> None:
        self.process = os.getpid()

    def predict_proba(self, texts: Any) -> Any:
        if os.getpid() != self.process:
            os._exit(1)
        return super().predict_proba(texts)


class NoCopies(Sound):
    def __deepcopy__(self, memo: Any) -> Any:
        raise RuntimeError("there is only one")


BROKEN = {
    "empty input": NoneForNothing,
    "blank texts": AnswersBlanks,
    "wrong types": SplitsStrings,
    "probabilities": SumsToTwo,
    "agreement": Contradicts,
    "odd texts": FailsOnNul,
    "repetition": Drifts,
    "order": SortsTexts,
    "batch independence": LooksAtNeighbours,
    "containers": ListsOnly,
    "threads": OneThread,
    "fork": OneProcess,
    "copies": NoCopies,
}
SOME = ["a", "a longer text", "a text that is longer still"]
NO_COPIES = {"copies": "it starts a process, which takes seconds"}


def test_a_sound_predictor_passes() -> None:
    results = check_predictor(Sound(), SOME, reload=lambda each: each)
    assert {result.status for result in results} == {"passed"}


@pytest.mark.parametrize("name", BROKEN)
def test_each_check_finds_what_it_is_for(name: str) -> None:
    with pytest.raises(ConformanceError, match=f"{name}: failed"):
        check_predictor(BROKEN[name](), SOME, seconds=20, skip={} if name in NO_COPIES else NO_COPIES)


def test_a_round_trip_that_changes_labels_is_found() -> None:
    class Other(Sound):
        labels = ("brief", "long")

    with pytest.raises(ConformanceError, match=r"round trip: failed .*other labels"):
        check_predictor(Sound(), SOME, reload=lambda _: Other(), skip=NO_COPIES)


def test_skipped_checks_have_a_reason() -> None:
    results = check_predictor(NoCopies(), SOME, skip={"copies": "it is a singleton"})
    assert [str(result) for result in results if result.status == "skipped"] == [
        "copies: skipped (it is a singleton)",
        "round trip: skipped (no reload was given)",
    ]
    assert "no check 'copy'" in refusal(check_predictor, Sound(), SOME, skip={"copy": ""})
    assert "three different texts" in refusal(check_predictor, Sound(), [*SOME[:2], SOME[0]])


def test_several_labels_must_be_the_most_probable_ones() -> None:
    class Wrong(Sound):
        multi_label = True

        def predict(self, texts: Any) -> Any:
            return [["long"] for _ in super().predict(texts)]

    with pytest.raises(ConformanceError, match="agreement: failed"):
        check_predictor(Wrong(), SOME, skip=NO_COPIES)


def test_a_blank_field_of_a_pair_must_be_refused() -> None:
    class AnswersBlankFields(Sound):
        def predict_proba(self, texts: Any) -> Any:
            if isinstance(texts, dict):
                raise TypeError("Give a list of texts.")
            return super().predict_proba([text["text"].strip() or "blank" for text in texts])

    with pytest.raises(ConformanceError, match="blank texts: failed"):
        check_predictor(AnswersBlankFields(), [{"text": text} for text in SOME], skip=NO_COPIES)


@pytest.mark.parametrize(
    ("predictor", "texts", "options", "said"),
    [
        (Sound(), "one text", {}, "come as a list"),
        (Sound(), SOME, {"skip": ["fork"]}, "a dict of checks"),
        (object(), SOME, {}, "no predictor: it has no predict"),
    ],
)
def test_wrong_use(predictor: Any, texts: Any, options: Any, said: str) -> None:
    assert said in refusal(check_predictor, predictor, texts, **options)


def test_a_script_without_a_guard(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from test_conformance import SOME, Sound\n"
        "from maskmatch.testing import check_predictor\n"
        "check_predictor(Sound(), SOME, seconds=30)\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1])]),
    }
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=environment, timeout=100, check=False
    )
    assert "behind if __name__" in done.stderr


def test_a_family_that_there_is_not(tmp_path: Path) -> None:
    assert "choose one of bert" in refusal(write_tiny_encoder, "nope", tmp_path)
