"""Labels of a served classifier are edited; classifiers of all kinds; tokens."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from maskmatch import ExportedMatcher, MaskMatcher, MaskMatchError, export
from maskmatch.serving import Client, ServerError
from maskmatch.serving.auth import Tokens
from maskmatch.serving.errors import RequestError
from server_tools import ServerProcess, bearer, token_file
from toy_data import A_LITTLE, LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Tiny = Callable[[str], Path]


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

    def test_labels_are_added_and_removed(self, editable: tuple[ServerProcess, Path]) -> None:
        server, folder = editable
        url, writer = f"{server.url}/v1/labels", bearer("writer")
        shown = httpx.get(url, headers=writer)
        assert (shown.json()["task"], shown.json()["fields"]) == ("topic", ["text"])
        assert httpx.post(url, json={"labels": ["parcel"]}, headers=writer).status_code == 428
        added = httpx.post(url, json={"labels": ["parcel"]}, headers={**writer, "If-Match": shown.headers["etag"]})
        assert [label["name"] for label in added.json()["labels"]] == [*LABELS, "parcel"]
        stale = {**writer, "If-Match": shown.headers["etag"]}
        assert httpx.delete(url, params={"label": "parcel"}, headers=stale).status_code == 412
        now = {**writer, "If-Match": added.headers["etag"]}
        assert httpx.delete(url, params={"label": "unknown"}, headers=now).status_code == 422
        assert httpx.delete(url, headers=now).status_code == 422
        assert httpx.delete(url, params={"label": "parcel"}, headers={**now, **bearer("reader")}).status_code == 403
        removed = httpx.delete(url, params={"label": ["parcel", LABELS[0]], "save": "true"}, headers=now)
        assert removed.json()["saved"] is True
        assert list(ExportedMatcher.from_pretrained(folder, verbose=False).labels) == LABELS[1:]

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
                    f"{server.url}/v1/labels",
                    json=body,
                    headers={**bearer("writer"), "If-Match": "*"},
                    timeout=httpx.Timeout(5, read=0.01),
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
