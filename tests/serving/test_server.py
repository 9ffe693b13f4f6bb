"""The server, as a real process on loopback: answers, refusals, other dialects."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maskmatch import ExportedMatcher, MaskMatchError
from maskmatch.serving import AsyncClient, Client, ServerError
from server_tools import ServerProcess, metric
from toy_data import LABELS, TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Tiny = Callable[[str], Path]

JSON = {"Content-Type": "application/json"}
OTHERS = ["weather", "sport", "music"]
CLOSE = 1e-4


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
        long = "a " * 900
        assert client.classify([long])[0]["truncated"] is True
        assert "truncated" not in client.classify(TEXTS[:1])[0]
        assert httpx.post(f"{server.url}/predict", json={"inputs": long}).status_code == 200
        refused = httpx.post(f"{server.url}/predict", json={"inputs": long, "truncate": False})
        assert (refused.status_code, refused.json()["error_type"]) == (413, "validation")
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

    def test_vllm(self, server: ServerProcess, client: Client, exported: Path) -> None:
        found = httpx.post(f"{server.url}/classify", json={"model": "whatever", "input": TEXTS[:2]}).json()
        assert [each["label"] for each in found["data"]] == client.predict(TEXTS[:2])
        assert all(each["num_classes"] == len(each["probs"]) == len(LABELS) for each in found["data"])
        prompts = ExportedMatcher.from_pretrained(exported, verbose=False).pipeline.tokenize(TEXTS[:2])
        assert found["usage"]["prompt_tokens"] == int(prompts.tokens.sum())


def test_operations(server: ServerProcess) -> None:
    assert httpx.get(f"{server.url}/health").json() == {"status": "ok"}
    assert httpx.get(f"{server.url}/ready").json()["models"] == ["bank"]
    text = httpx.get(f"{server.url}/metrics").text
    assert metric(text, 'maskmatch_queue_texts{model="bank"}') == 0
    for name in ("requests_total", "texts_total", "request_seconds_bucket", "batch_texts_bucket", "queue_texts"):
        assert f"maskmatch_{name}" in text
    document = httpx.get(f"{server.url}/openapi.json").json()
    assert {"/v1/classify", "/v1/labels", "/predict", "/classify", "/"} <= set(document["paths"])
