"""A served classifier: what happens while a session starts, and while its folder is loaded again."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from maskmatch import ExportedMatcher
from maskmatch.prediction.runtimes import onnx
from maskmatch.serving.config import ServeConfig
from maskmatch.serving.metrics import Metrics
from maskmatch.serving.served import ServedModel, Wanted
from toy_data import TEXTS

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

OTHERS = ["weather", "sport", "music"]


def served_by(exported: Path) -> ServedModel:
    predictor = ExportedMatcher.from_pretrained(exported, verbose=False)
    return ServedModel("bank", predictor, ServeConfig(), Metrics(), folder=exported)


def test_no_text_waits_for_the_session_with_one_thread(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    start, gate, threads = vars(onnx)["_start"], threading.Event(), []

    def slow(path: Path, wanted: int) -> Any:
        threads.append(wanted)
        if wanted == 1:
            assert gate.wait(60)
        return start(path, wanted)

    monkeypatch.setattr(onnx, "_start", slow)
    served = served_by(exported)
    try:
        answered = asyncio.run(served.classify(TEXTS[:2], Wanted(top_k=1)))  # would not end otherwise
        assert len(answered.answers) == 2
        assert threads == [0, 1]
    finally:
        gate.set()
        served.stop()


def test_labels_of_a_request_are_encoded_again_if_the_folder_is_loaded_again(
    exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = served_by(exported)
    old, encode = served.predictor, vars(ServedModel)["_encode"]
    used: list[Any] = []

    async def encode_and_reload(self: ServedModel, labels: Any) -> Any:
        used.append(self.predictor)
        pipeline = await encode(self, labels)
        if self.predictor is old:
            await self._reload()
        return pipeline

    monkeypatch.setattr(ServedModel, "_encode", encode_and_reload)
    try:
        answered = asyncio.run(served.classify(TEXTS[:1], Wanted(top_k=1), OTHERS))
    finally:
        served.stop()
    assert used == [old, served.predictor]
    assert old is not served.predictor
    assert answered.answers[0]["label"] in OTHERS
