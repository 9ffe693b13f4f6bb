"""Feedback, and predictions by a server on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from maskmatch import MaskMatcher, MaskMatchError, load_examples
from maskmatch.data import tables
from maskmatch.data.tables import TableWriter
from maskmatch.integrations.arrow import model_hash
from maskmatch.serving import Client, ServerError, feedback
from maskmatch.serving.errors import RequestError
from maskmatch.serving.feedback import FeedbackFile
from server_tools import ServerProcess, token_file
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli_tools import Run

    Tiny = Callable[[str], Path]


class TestFeedback:
    def test_classifiers_can_be_trained_on_it(self, exported: Path, tmp_path: Path) -> None:
        file = tmp_path / "feedback.jsonl"
        file.write_text('{"text": "cut o', encoding="utf-8")  # a crash has cut this line off
        with ServerProcess(str(exported), "--port", "0", "--feedback-file", str(file)) as server:
            url = f"{server.url}/v1/feedback"

            def send(text: Any, label: Any, **more: Any) -> httpx.Response:
                return httpx.post(url, json={"text": text, "label": label, **more})

            for text, label in zip(TEXTS, TRUTH, strict=True):
                assert send(text, label).json() == {"model": "bank", "kept": True}
            with Client(server.url) as client:
                client.feedback({"text": "Nice weather"}, None, request_id="abc")
                with pytest.raises(ServerError, match="no label"):
                    client.feedback("x", "unknown")
            for wrong in (send("x", "unknown"), send(" ", LABELS[0]), send("x", LABELS), send("x" * 60_000, LABELS[0])):
                assert wrong.status_code in (413, 422)
        cut, *lines = file.read_text(encoding="utf-8").splitlines()
        assert cut == '{"text": "cut o'
        rows = [json.loads(line) for line in lines]
        assert [(row["text"], row["label"]) for row in rows] == [*zip(TEXTS, TRUTH, strict=True), ("Nice weather", "")]
        assert rows[-1]["request_id"] == "abc"
        file.write_text("\n".join(lines[:-1]), encoding="utf-8")
        assert list(load_examples(file).labels or ()) == TRUTH

    def test_without_a_file_none_is_kept(self, server: ServerProcess) -> None:
        response = httpx.post(f"{server.url}/v1/feedback", json={"text": "x", "label": LABELS[0]})
        assert (response.status_code, response.json()["error_type"]) == (404, "no_feedback")

    def test_a_full_or_wrong_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(feedback, "MOST_BYTES", 50)
        store = FeedbackFile.open(str(tmp_path / "some.jsonl"))
        assert store is not None
        store.append({"text": "one"})
        with pytest.raises(RequestError, match="full"):
            store.append({"text": "x" * 50})
        assert store.path.read_text(encoding="utf-8") == '{"text": "one"}\n'
        for wrong in (tmp_path / "some.txt", tmp_path / "nowhere" / "some.jsonl"):
            with pytest.raises(MaskMatchError, match="feedback file"):
                FeedbackFile.open(str(wrong))

    def test_processes_append_whole_lines(self, tmp_path: Path) -> None:
        store = FeedbackFile.open(str(tmp_path / "some.jsonl"))
        assert store is not None
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: store.append({"text": f"{number} " * 200}), range(60)))
        found = [json.loads(line)["text"].split()[0] for line in store.path.read_text().splitlines()]
        assert sorted(map(int, found)) == list(range(60))


class TestPredictByUrl:
    def test_it_prints_what_predict_prints(self, server: ServerProcess, exported: Path, tmp_path: Path) -> None:
        (tmp_path / "texts.txt").write_text("\n".join([*TEXTS, "", *TEXTS]), encoding="utf-8")

        def predict(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-m", "maskmatch", "predict", *arguments]
            return subprocess.run(
                command, check=False, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **environment}
            )

        local, remote = predict(str(exported), "texts.txt"), predict("--url", server.url, "texts.txt")
        assert remote.returncode == 0, remote.stderr
        ours, theirs = ([json.loads(line) for line in done.stdout.splitlines()] for done in (local, remote))
        assert [(each["row"], each["label"]) for each in theirs] == [(each["row"], each["label"]) for each in ours]
        tables = []
        for name, source in (("local", [str(exported)]), ("remote", ["--url", server.url])):
            done = predict(*source, "texts.txt", "-o", f"{name}.jsonl")
            assert done.returncode == 0, done.stderr
            tables.append([json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()])
        assert list(tables[0][0]) == list(tables[1][0])
        assert [(row["text"], row["label"]) for row in tables[0]] == [(row["text"], row["label"]) for row in tables[1]]
        for wrong, sentence, code in (
            (("--url", server.url, "--served", "other", "texts.txt"), "no classifier of this name", 1),
            (("--url", "http://127.0.0.1:9", "texts.txt"), "gave no answer", 1),
            (("--url", server.url, "--device", "cpu", "texts.txt"), "a server decides this", 2),
            (("--url", server.url, "some", "texts.txt"), "--served", 2),
            ((), "--url", 2),
        ):
            done = predict(*wrong)
            assert (done.returncode, sentence in done.stderr) == (code, True), done.stderr

    def test_with_a_token(self, exported: Path, tmp_path: Path) -> None:
        with ServerProcess(str(exported), "--port", "0", "--token-file", str(token_file(tmp_path))) as server:
            command = [sys.executable, "-m", "maskmatch", "predict", "--url", server.url, "--text", TEXTS[0]]
            for token, code in (("reader", 0), ("wrong", 1)):
                environment = {**os.environ, "MASKMATCH_TOKEN": token}
                done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
                assert done.returncode == code, done.stderr

    def test_another_classifier_with_the_same_labels_does_not_go_on(
        self, tiny: Tiny, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / "bank"
        MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False, abstain=0.5).save_pretrained(folder)
        (tmp_path / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
        with ServerProcess(str(folder), "--port", "0") as server, Client(server.url) as client:
            before = client.labels()
            assert (before["model_hash"], before["abstain"]) == (model_hash(folder), 0.5)
            table = ["predict", "--url", server.url, tmp_path / "texts.txt", "-o", tmp_path / "out.jsonl"]
            with monkeypatch.context() as patch:
                patch.setattr(TableWriter, "finish", interrupted)
                patch.setattr(tables, "SAVE_EVERY", 0.0)
                assert run(*table).code == 130
            MaskMatcher.from_pretrained(folder, verbose=False, abstain=0.6).save_pretrained(folder)
            deadline = time.monotonic() + 30
            while (now := client.labels())["model_hash"] == before["model_hash"] and time.monotonic() < deadline:
                time.sleep(0.1)
            assert (now["etag"], now["model_hash"]) == (before["etag"], model_hash(folder))
            assert "made with another classifier;" in run(*table, "--resume").err
            assert run(*table).code == 0
            columns = list(json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0]))
            assert columns[:4] == ["text", "label", "probability", "label_1"]
            assert run(*table, "--abstain", "0").code == 0
            assert "label_1" not in (tmp_path / "out.jsonl").read_text()


def interrupted(table: TableWriter) -> None:
    raise KeyboardInterrupt
