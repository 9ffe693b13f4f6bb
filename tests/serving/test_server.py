"""The server, as a real process on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maskmatch import ExportedMatcher, MaskMatcher, MaskMatchError, export
from maskmatch.serving import AsyncClient, Client, ServerError
from maskmatch.serving.auth import Tokens
from maskmatch.serving.errors import RequestError
from server_tools import ServerProcess, bearer, metric, token_file
from toy_data import A_LITTLE, LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Tiny = Callable[[str], Path]

JSON = {"Content-Type": "application/json"}
OTHERS = ["weather", "sport", "music"]
CLOSE = 1e-4


@pytest.fixture(scope="module")
def exported(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "bank"
    export(MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False).fit(TEXTS, TRUTH, **A_LITTLE), folder)
    return folder


@pytest.fixture(scope="module")
def server(exported: Path) -> Iterator[ServerProcess]:
    limits = {"max-texts": 50, "max-chars": 2000, "max-labels": 20, "max-bytes": 100_000, "label-sets": 4}
    options = [part for name, value in limits.items() for part in (f"--{name}", str(value))]
    with ServerProcess(str(exported), "--port", "0", *options) as process:
        yield process


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.url) as client:
        yield client


class TestClassify:
    def test_the_answers_are_those_of_predict(self, client: Client, exported: Path) -> None:
        matcher = ExportedMatcher.from_pretrained(exported, verbose=False)
        answers = client.classify(TEXTS, top_k=2, novelty=True)
        assert [answer["label"] for answer in answers] == matcher.predict(TEXTS)
        expected = [value for pairs in matcher.top_k(TEXTS, 2) for _, value in pairs]
        found = [each["probability"] for answer in answers for each in answer["top_k"]]
        np.testing.assert_allclose(found, expected, atol=CLOSE)
        np.testing.assert_allclose([each["novelty"] for each in answers], matcher.novelty(TEXTS), rtol=1e-3)

    def test_one_text_is_enough_and_none_is_none(self, server: ServerProcess, client: Client) -> None:
        answer = httpx.post(f"{server.url}/v1/classify", json={"texts": TEXTS[0]}).json()
        assert answer["model"] == "bank"
        assert answer["results"] == client.classify([TEXTS[0]])
        assert client.predict([]) == []
        with pytest.raises(MaskMatchError, match="a list of texts"):
            client.predict("hello")

    def test_a_bad_text_fails_alone(self, client: Client) -> None:
        good, bad, other = client.classify([TEXTS[0], "  ", {"text": TEXTS[1]}])
        assert "blank" in bad["error"]
        for answer, text in ((good, TEXTS[0]), (other, TEXTS[1])):
            alone = client.classify([text])[0]
            assert answer["label"] == alone["label"]
            assert answer["probability"] == pytest.approx(alone["probability"], abs=CLOSE)
        with pytest.raises(ServerError, match="blank"):
            client.predict([""])

    def test_it_abstains(self, client: Client) -> None:
        assert client.predict(TEXTS[:2], abstain=1.0, none_label="nothing") == ["nothing"] * 2
        assert client.predict(TEXTS[:2], abstain=0.0) == client.predict(TEXTS[:2])

    def test_labels_of_a_request_are_encoded_once(self, server: ServerProcess, client: Client, exported: Path) -> None:
        def encoded() -> float:
            return metric(httpx.get(f"{server.url}/metrics").text, "maskmatch_labels_encoded_total")

        matcher = ExportedMatcher.from_pretrained(exported, OTHERS, verbose=False)
        before = encoded()
        assert client.predict(TEXTS, OTHERS) == matcher.predict(TEXTS)
        assert encoded() == before + len(OTHERS)
        client.predict(TEXTS, OTHERS)
        assert encoded() == before + len(OTHERS)
        described = {"weather": "rain and sun", "sport": ["football", "tennis"], "music": None}
        assert client.classify(TEXTS[:1], described) != client.classify(TEXTS[:1], OTHERS)
        assert client.labels()["labels"][0]["name"] in LABELS, "the classifier's own labels are the same"

    def test_the_cache_of_label_sets_is_bounded(self, client: Client) -> None:
        first = client.classify(TEXTS[:1], ["first", "second"])
        for number in range(30):
            client.classify(TEXTS[:1], [f"a {number}", f"b {number}"])
        assert client.classify(TEXTS[:1], ["first", "second"]) == first

    def test_many_at_once_get_their_own_answers(self, server: ServerProcess, exported: Path) -> None:
        matcher = ExportedMatcher.from_pretrained(exported, verbose=False)
        texts = [f"{text} {number}" for number in range(10) for text in TEXTS]
        expected = matcher.predict_proba(texts).max(axis=1)

        async def ask() -> list[Any]:
            async with AsyncClient(server.url) as client:
                answers = await asyncio.gather(*(client.classify([text]) for text in texts))
            return [answer[0]["probability"] for answer in answers]

        np.testing.assert_allclose(asyncio.run(ask()), expected, atol=CLOSE)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.one_of(st.sampled_from(TEXTS), st.text(max_size=40)), max_size=6),
    broken=st.sampled_from([None, {"top_k": 0}, {"abstain": 2}, {"threshold": 0.5}, {"unknown": 1}, {"labels": ["x"]}]),
)
def test_any_traffic(server: ServerProcess, exported: Path, texts: list[str], broken: dict[str, Any] | None) -> None:
    response = httpx.post(f"{server.url}/v1/classify", json={"texts": texts, **(broken or {})})
    if broken is not None:
        assert response.status_code == 422, response.text
        assert set(response.json()) == {"error", "error_type"}
        return
    results = response.json()["results"]
    assert response.status_code == 200
    assert len(results) == len(texts)
    good = [text for text, answer in zip(texts, results, strict=True) if "error" not in answer]
    matcher = ExportedMatcher.from_pretrained(exported, verbose=False)
    expected = matcher.predict_proba(good).max(axis=1) if good else []
    np.testing.assert_allclose(
        [answer["probability"] for answer in results if "error" not in answer], expected, atol=CLOSE
    )


class TestRefusals:
    @pytest.mark.parametrize(
        ("body", "status", "kind"),
        [
            ({"texts": ["x"] * 51}, 413, "too_many_texts"),
            ({"texts": ["x" * 2001]}, 413, "too_long"),
            ({"texts": ["x"], "labels": [f"label {number}" for number in range(21)]}, 413, "too_many_labels"),
            (
                {"texts": ["x"], "labels": {"a": [f"phrase {number}" for number in range(30)], "b": None}},
                413,
                "too_many_labels",
            ),
            ({"texts": ["x"], "abstain": 1, "none_label": "\ud800"}, 422, "validation"),
            ({"texts": ["x" * 1900] * 49 + ["y" * 99_999]}, 413, "too_large"),
            ({"texts": ["x"], "labels": ["a", "a"]}, 422, "validation"),
            ({"texts": ["x"], "labels": ["only one"]}, 422, "validation"),
            ({"texts": ["x"], "model": "another"}, 404, "unknown_model"),
            ({"texts": 3}, 422, "validation"),
            ({}, 422, "validation"),
        ],
    )
    def test_bounds(self, server: ServerProcess, body: Any, status: int, kind: str) -> None:
        response = httpx.post(f"{server.url}/v1/classify", content=json.dumps(body), headers=JSON)
        assert (response.status_code, response.json()["error_type"]) == (status, kind)

    def test_what_is_not_json_or_not_there(self, server: ServerProcess) -> None:
        response = httpx.post(f"{server.url}/v1/classify", content=b"{not json", headers=JSON)
        assert (response.status_code, response.json()["error_type"]) == (400, "not_json")
        assert httpx.get(f"{server.url}/nothing").status_code == 404
        assert httpx.get(f"{server.url}/v1/classify").status_code == 405
        assert httpx.get(f"{server.url}/../etc/passwd").status_code == 404

    def test_a_dry_run_has_the_same_bounds(self, client: Client) -> None:
        for wrong in ({"texts": ["x"] * 51}, {"texts": ["x" * 2001]}, {"add": [f"label {n}" for n in range(21)]}):
            with pytest.raises(ServerError) as caught:
                client.edit_labels("*", **{"add": ["parcel"], "texts": TEXTS[:1], "dry_run": True, **wrong})
            assert caught.value.status == 413

    def test_without_tokens_nobody_edits(self, client: Client) -> None:
        with pytest.raises(ServerError, match="write token") as caught:
            client.edit_labels(client.labels()["etag"], add=["parcel"])
        assert caught.value.status == 403

    def test_no_origin_is_allowed_unless_listed(self, server: ServerProcess) -> None:
        response = httpx.get(f"{server.url}/health", headers={"Origin": "http://example.org"})
        assert "access-control-allow-origin" not in response.headers

    def test_request_ids_are_passed_through_if_harmless(self, server: ServerProcess) -> None:
        given = httpx.get(f"{server.url}/health", headers={"X-Request-Id": "abc-1"})
        assert given.headers["x-request-id"] == "abc-1"
        assert re.fullmatch(r"[0-9a-f]{32}", httpx.get(f"{server.url}/health").headers["x-request-id"])
        odd = httpx.get(f"{server.url}/health", headers={"X-Request-Id": "a b\tc"})
        assert odd.headers["x-request-id"] != "a b\tc"

    def test_texts_are_not_logged(self, server: ServerProcess, client: Client) -> None:
        client.classify(["a very secret text"])
        assert not any("secret" in line for line in server.log)


class TestOtherDialects:
    def test_text_embeddings_inference(self, server: ServerProcess, client: Client) -> None:
        one = httpx.post(f"{server.url}/predict", json={"inputs": TEXTS[0], "truncate": True}).json()
        assert one[0]["label"] == client.predict(TEXTS[:1])[0]
        assert sum(each["score"] for each in one) == pytest.approx(1, abs=1e-3)
        batch = httpx.post(f"{server.url}/predict", json={"inputs": [[TEXTS[0]], [TEXTS[1]]]}).json()
        assert [each[0]["label"] for each in batch] == client.predict(TEXTS[:2])
        wrong = httpx.post(f"{server.url}/predict", json={"inputs": ""})
        assert (wrong.status_code, wrong.json()["error_type"]) == (422, "validation")

    def test_the_client_of_hugging_face(self, server: ServerProcess, client: Client) -> None:
        code = (
            "import json, sys; from huggingface_hub import InferenceClient\n"
            "url, text, labels = json.loads(sys.argv[1]); client = InferenceClient(model=url)\n"
            "zero = client.zero_shot_classification(text, candidate_labels=labels)\n"
            "own = client.text_classification(text)\n"
            "print(json.dumps([[each.label for each in found] for found in (zero, own)]))"
        )
        given = json.dumps([f"{server.url}/", TEXTS[0], OTHERS])
        # In a process of its own: for the client, any address is elsewhere, and the tests run offline.
        environment = {**os.environ, "HF_HUB_OFFLINE": "0"}
        command = [sys.executable, "-c", code, given]
        done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        zero_shot, own = json.loads(done.stdout)
        assert zero_shot[0] == client.predict(TEXTS[:1], OTHERS)[0]
        assert set(zero_shot) == set(OTHERS)
        assert own[0] == client.predict(TEXTS[:1])[0]

    def test_vllm(self, server: ServerProcess, client: Client) -> None:
        found = httpx.post(f"{server.url}/classify", json={"model": "whatever", "input": TEXTS[:2]}).json()
        assert [each["label"] for each in found["data"]] == client.predict(TEXTS[:2])
        assert all(each["num_classes"] == len(each["probs"]) == len(LABELS) for each in found["data"])


def test_operations(server: ServerProcess) -> None:
    assert httpx.get(f"{server.url}/health").json() == {"status": "ok"}
    assert httpx.get(f"{server.url}/ready").json()["models"] == ["bank"]
    text = httpx.get(f"{server.url}/metrics").text
    for name in ("requests_total", "texts_total", "request_seconds_bucket", "batch_texts_bucket", "queue_texts"):
        assert f"maskmatch_{name}" in text
    document = httpx.get(f"{server.url}/openapi.json").json()
    assert {"/v1/classify", "/v1/labels", "/predict", "/classify", "/"} <= set(document["paths"])


class TestLabels:
    @pytest.fixture
    def editable(self, exported: Path, tmp_path: Path) -> Iterator[tuple[ServerProcess, Path]]:
        folder = ExportedMatcher.from_pretrained(exported, verbose=False).save_pretrained(tmp_path / "own")
        with ServerProcess(str(folder), "--port", "0", "--token-file", str(token_file(tmp_path))) as process:
            yield process, folder

    def test_edits(self, editable: tuple[ServerProcess, Path]) -> None:
        server, folder = editable
        assert httpx.get(f"{server.url}/v1/labels").status_code == 401
        with Client(server.url, token="reader") as reader, Client(server.url, token="writer") as writer:
            etag = reader.labels()["etag"]
            with pytest.raises(ServerError, match="not edit"):
                reader.edit_labels(etag, add=["parcel"])
            preview = reader.edit_labels(etag, add=["parcel"], dry_run=True, texts=TEXTS)
            assert preview["diff"]["rows"] == len(TEXTS)
            assert reader.labels()["etag"] == etag
            edited = writer.edit_labels(etag, add={"parcel": "a box"}, rename={LABELS[0]: "money back"}, save=True)
            assert [label["name"] for label in edited["labels"]][-1] == "parcel"
            with pytest.raises(ServerError, match="changed since"):
                writer.edit_labels(etag, add=["voucher"])
            with pytest.raises(ServerError, match="no label"):  # all of it, or nothing
                writer.edit_labels(edited["etag"], add=["voucher"], remove=["unknown"])
            assert reader.labels()["etag"] == edited["etag"]
            answers = reader.classify(TEXTS, top_k=1)
        response = httpx.patch(f"{server.url}/v1/labels", json={"add": ["x"]}, headers=bearer("writer"))
        assert response.status_code == 428
        loaded = ExportedMatcher.from_pretrained(folder, verbose=False)
        assert loaded.predict(TEXTS) == [answer["label"] for answer in answers]

    def test_a_folder_that_someone_else_saves_is_loaded_again(self, editable: tuple[ServerProcess, Path]) -> None:
        server, folder = editable
        with ExportedMatcher.editing(folder, verbose=False) as matcher:
            matcher.add_labels(["parcel"])
        with Client(server.url, token="reader") as client:
            deadline = time.monotonic() + 30
            while "parcel" not in [label["name"] for label in client.labels()["labels"]]:
                assert time.monotonic() < deadline
                client.predict(TEXTS[:1])
                time.sleep(0.1)
            assert client.predict(TEXTS) == ExportedMatcher.from_pretrained(folder, verbose=False).predict(TEXTS)

    def test_edits_under_load(self, editable: tuple[ServerProcess, Path]) -> None:
        server, _ = editable
        wrong: list[Any] = []
        done = threading.Event()

        def ask() -> None:
            with Client(server.url, token="reader") as client:
                while not done.is_set():
                    labels = [each["label"] for each in client.classify(TEXTS[:1], top_k=50)[0]["top_k"]]
                    if ("one" in labels) != ("two" in labels):  # both are added and removed together
                        wrong.append(labels)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        with Client(server.url, token="writer") as client:
            for _ in range(10):
                client.edit_labels("*", add=["one", "two"])
                client.edit_labels("*", remove=["one", "two"])
        done.set()
        for thread in threads:
            thread.join()
        assert not wrong


class TestOtherClassifiers:
    def test_several_of_all_kinds(self, tiny: Tiny, tmp_path: Path) -> None:
        """An old export, labels that are numbers, several labels per text, labels that are read with each text."""
        old = Path(__file__).parent.parent / "golden" / "format-6" / "calibrated.onnx"
        numbered = MaskMatcher.from_pretrained(tiny("bert"), {3: "refund", 5: "card lost"}, verbose=False)
        export(numbered, tmp_path / "numbered")
        rows = [[label, "urgent"] for label in TRUTH]
        several = MaskMatcher.from_pretrained(tiny("bert"), [*LABELS, "urgent"], verbose=False)
        export(several.fit(TEXTS, rows, **A_LITTLE), tmp_path / "several")
        context = MaskMatcher.from_pretrained(tiny("bert"), LABELS, label_prompt="{text} {label} {mask}", verbose=False)
        export(context, tmp_path / "context")
        folders = [str(old), *(str(tmp_path / name) for name in ("numbered", "several", "context"))]
        with ServerProcess(*folders, "--port", "0", "--token-file", str(token_file(tmp_path))) as server:
            for folder in folders:
                name = Path(folder).name
                direct = ExportedMatcher.from_pretrained(folder, verbose=False)
                with Client(server.url, token="writer", model=name) as client:
                    assert client.predict(TEXTS[:3]) == direct.predict(TEXTS[:3])
                    assert len(client.labels()["labels"]) == len(direct.labels)
                found = httpx.post(
                    f"{server.url}/classify", json={"model": name, "input": TEXTS[0]}, headers=bearer("reader")
                )
                assert len(found.json()["data"][0]["probs"]) == len(direct.labels)
            with Client(server.url, token="writer", model="several") as client:
                assert client.predict(TEXTS[:1], threshold=1.0) == [[]]
            with Client(server.url, token="writer", model="numbered") as client:
                client.edit_labels("*", rename={"3": "money back"})
                assert client.labels()["labels"][0] == {"id": 3, "name": "money back"}
            client = Client(server.url, token="writer", model=old.name)
            with client, pytest.raises(ServerError, match="earlier version"):
                client.edit_labels("*", add=["parcel"])
            assert server.stop() == 0

    def test_an_edit_that_cannot_be_saved_changes_nothing(self, exported: Path, tmp_path: Path) -> None:
        folder = ExportedMatcher.from_pretrained(exported, verbose=False).save_pretrained(tmp_path / "own")
        server = ServerProcess(str(folder), "--port", "0", "--token-file", str(token_file(tmp_path)))
        with server, Client(server.url, token="writer") as client:
            before = client.labels()
            (folder / "model.onnx").rename(folder / "gone")
            with pytest.raises(ServerError, match="Nothing was changed") as caught:
                client.edit_labels(before["etag"], add=["parcel"], save=True)
            assert caught.value.status == 409
            assert client.labels() == before
            assert len(client.classify(TEXTS[:1], top_k=9)[0]["top_k"]) == len(LABELS)

    def test_edits_hold_up_nobody_and_end_even_if_the_editor_goes(self, exported: Path, tmp_path: Path) -> None:
        with ServerProcess(str(exported), "--port", "0", "--token-file", str(token_file(tmp_path))) as server:
            body = {"add": [f"label {number}" for number in range(900)]}
            with pytest.raises(httpx.TimeoutException):
                httpx.patch(
                    f"{server.url}/v1/labels", json=body, headers={**bearer("writer"), "If-Match": "*"}, timeout=0.05
                )
            slowest = 0.0
            with Client(server.url, token="writer") as client:
                while len(client.labels()["labels"]) == len(LABELS):
                    started = time.perf_counter()
                    httpx.get(f"{server.url}/health")
                    slowest = max(slowest, time.perf_counter() - started)
                assert len(client.labels()["labels"]) == len(LABELS) + 900
            assert slowest < 1.0


class TestTokens:
    @pytest.mark.parametrize("line", ["write", "write a b", "two words", ""])
    def test_a_wrong_file_is_refused(self, tmp_path: Path, line: str) -> None:
        path = tmp_path / "tokens"
        path.write_text(f"{line}\n", encoding="utf-8")
        with pytest.raises(MaskMatchError, match="token"):
            Tokens.load(str(path))

    def test_kinds(self, tmp_path: Path) -> None:
        tokens = Tokens.load(str(token_file(tmp_path)))
        tokens.check("Bearer reader")
        tokens.check("bearer writer", write=True)
        for header, write in (("Bearer other", False), ("reader", False), (None, False), ("Bearer reader", True)):
            with pytest.raises(RequestError):
                tokens.check(header, write=write)


class TestProcess:
    def test_sigterm_drains(self, exported: Path) -> None:
        answers: list[Any] = []
        with ServerProcess(str(exported), "--port", "0") as server:
            texts = [f"{text} {number}" for number in range(30) for text in TEXTS]

            def ask() -> None:
                answers.append(httpx.post(f"{server.url}/v1/classify", json={"texts": texts}, timeout=60))

            threads = [threading.Thread(target=ask) for _ in range(4)]
            for thread in threads:
                thread.start()
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline and not metric(
                httpx.get(f"{server.url}/metrics").text, "maskmatch_tokens_total"
            ):
                time.sleep(0.01)
            assert server.stop() == 0
            for thread in threads:
                thread.join()
        assert [answer.status_code for answer in answers] == [200] * 4
        assert all(len(answer.json()["results"]) == len(texts) for answer in answers)
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.url}/health")

    def test_a_client_that_sends_slowly_holds_up_nobody(self, exported: Path) -> None:
        with ServerProcess(str(exported), "--port", "0", "--timeout", "2") as server:
            address = urlsplit(server.url)
            slow = [socket.create_connection((address.hostname or "", address.port or 0)) for _ in range(20)]
            for each in slow:
                each.sendall(b"POST /v1/classify HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
            with Client(server.url) as client:
                assert client.predict(TEXTS[:1])
            slow[0].settimeout(20)
            assert b"408" in slow[0].recv(4096)
            for each in slow:
                each.close()
            with Client(server.url) as client:
                assert client.predict(TEXTS[:1])

    def test_a_killed_worker_is_replaced(self, exported: Path) -> None:
        free = socket.create_server(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        with ServerProcess(str(exported), "--port", str(port), "--workers", "2") as server:
            with Client(server.url) as client:
                _wait_until_ready(server)
                expected = client.predict(TEXTS)
                children = _children(server.process.pid)
                os.kill(children[-1], signal.SIGKILL)
                for _ in range(40):
                    try:
                        assert client.predict(TEXTS) == expected
                    except ServerError as error:
                        if error.status:  # else the connection of the killed worker
                            raise
                    time.sleep(0.1)
            assert server.stop() == 0

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["nowhere"], "nowhere"),
            (["--task", "unknown"], "no task"),
            (["--port", "70000"], "port"),
            (["--token-file", "nowhere"], "token file"),
        ],
    )
    def test_wrong_usage_gets_a_sentence(self, arguments: list[str], sentence: str) -> None:
        with pytest.raises(AssertionError, match="did not start") as caught:
            ServerProcess(*arguments)
        assert sentence in str(caught.value)
        assert "Traceback" not in str(caught.value)

    def test_settings_by_environment(self, exported: Path) -> None:
        with ServerProcess(
            str(exported), "--log-format", "json", MASKMATCH_SERVE_PORT="0", MASKMATCH_SERVE_MAX_TEXTS="1"
        ) as server:
            assert httpx.post(f"{server.url}/v1/classify", json={"texts": ["a", "b"]}).status_code == 413
            assert server.stop() == 0
        logged = json.loads(next(line for line in server.log if line.startswith("{")))
        assert (logged["status"], logged["endpoint"]) == (413, "/v1/classify")


def _children(pid: int) -> list[int]:
    """The worker processes of a supervisor; the first child of multiprocessing tracks resources."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                command = file.read()
        except OSError:
            continue
        if parent == pid and b"spawn_main" in command:
            found.append(int(entry))
    return sorted(found)


def _wait_until_ready(server: ServerProcess) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{server.url}/ready").status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise AssertionError(f"not ready: {server.log}")


def test_the_embedded_default_needs_labels_in_each_request(tmp_path: Path) -> None:
    """The first start makes an int8 export of the default; the second one finds it."""
    for _ in range(2):
        with ServerProcess("--port", "0", "--task", "intent", MASKMATCH_CACHE=str(tmp_path)) as server:
            with Client(server.url) as client:
                with pytest.raises(ServerError, match="no labels"):
                    client.predict(["My card is gone!"])
                labels = ["refund not received", "card swallowed", "exchange rate"]
                assert client.predict(["The machine kept my card."], labels) == ["card swallowed"]
                with pytest.raises(ServerError, match="write token"):
                    client.edit_labels("*", add=["parcel"])
            assert server.stop() == 0
    assert len([folder for folder in tmp_path.iterdir() if folder.is_dir() and folder.name.startswith("default-")]) == 1
