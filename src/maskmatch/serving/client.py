"""Clients of the server, sync and async, with the same methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    import httpx

TIMEOUT = 60.0


class ServerError(MaskMatchError):
    """The server refused a request.

    Attributes:
        status: The HTTP status; 0 if there was no response.
        kind: The kind of error.
    """

    def __init__(self, message: str, status: int = 0, kind: str = "connection") -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


class _Base:
    """What both clients have in common: how requests look, and what responses mean.

    Args:
        url: The address of the server, such as ``http://127.0.0.1:8080``.
        token: A bearer token, if the server has tokens.
        model: Which classifier; None: the first one.
        timeout: How many seconds to wait for a response.
    """

    def __init__(
        self, url: str, *, token: str | None = None, model: str | None = None, timeout: float = TIMEOUT
    ) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        if not url.startswith(("http://", "https://")):
            raise MaskMatchError(f"{url} is no address of a server; it begins with http:// or https://.")
        self._options: dict[str, Any] = {"base_url": url, "headers": headers, "timeout": timeout, "trust_env": False}
        self._model = model

    def _classify(self, texts: Any, labels: Any, options: Mapping[str, Any]) -> dict[str, Any]:
        if isinstance(texts, (str, bytes)) or hasattr(texts, "keys"):
            raise MaskMatchError("texts is one text; give a list of texts.")
        body = {"texts": list(texts), "labels": labels, "model": self._model, **options}
        return {name: value for name, value in body.items() if value is not None}

    def _feedback(self, text: Any, label: Any, request_id: str | None) -> dict[str, Any]:
        more = {"model": self._model, "request_id": request_id}
        return {"text": text, "label": label, **{name: value for name, value in more.items() if value is not None}}

    def _query(self) -> dict[str, str]:
        return {} if self._model is None else {"model": self._model}

    @staticmethod
    def _read(response: httpx.Response) -> Any:
        """The JSON of a response; ServerError if it is an error."""
        try:
            data = response.json()
        except ValueError:
            data = {}
        if response.is_success and data:
            return data
        data = data if isinstance(data, dict) else {}
        message = data.get("error") or f"The server answered with status {response.status_code}."
        raise ServerError(message, response.status_code, data.get("error_type", "http"))

    @staticmethod
    def _lost(error: Exception, url: Any) -> ServerError:
        return ServerError(f"{url} gave no answer: {type(error).__name__} {error}".rstrip() + ".")


class Client(_Base):
    """Classifies texts with a server."""

    def __init__(
        self, url: str, *, token: str | None = None, model: str | None = None, timeout: float = TIMEOUT
    ) -> None:
        super().__init__(url, token=token, model=model, timeout=timeout)
        self._http = _httpx().Client(**self._options)

    def classify(self, texts: Sequence[Any], labels: Any = None, **options: Any) -> list[dict[str, Any]]:
        """The answer for each text, as ``POST /v1/classify`` gives it.

        Args:
            texts: Strings, or dicts of fields.
            labels: Labels of this request; None: those of the classifier.
            **options: ``top_k``, ``threshold``, ``abstain``, ``none_label``, ``novelty``.
        """
        found: list[dict[str, Any]] = self._send("POST", "/v1/classify", self._classify(texts, labels, options))[
            "results"
        ]
        return found

    def predict(self, texts: Sequence[Any], labels: Any = None, **options: Any) -> list[Any]:
        """The label of each text; with several labels per text, a list of labels. ServerError for a bad text."""
        return [_label(answer) for answer in self.classify(texts, labels, **{"top_k": 1, **options})]

    def labels(self) -> dict[str, Any]:
        """The labels of the classifier, with the ``etag`` that an edit needs."""
        found: dict[str, Any] = self._send("GET", "/v1/labels", params=self._query())
        return found

    def edit_labels(self, etag: str, **edits: Any) -> dict[str, Any]:
        """Edit labels: ``add``, ``rename``, ``remove``, ``save``; all of it or nothing."""
        found: dict[str, Any] = self._send(
            "PATCH", "/v1/labels", edits, params=self._query(), headers={"If-Match": etag}
        )
        return found

    def feedback(self, text: Any, label: Any, *, request_id: str | None = None) -> None:
        """Tell the server the right label of a text; None: no label fits. The server needs ``--feedback-file``."""
        self._send("POST", "/v1/feedback", self._feedback(text, label, request_id))

    def _send(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        try:
            return self._read(self._http.request(method, path, json=body, **options))
        except (_httpx().HTTPError, _httpx().InvalidURL) as error:
            raise self._lost(error, self._options["base_url"]) from error

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(_Base):
    """Classifies texts with a server, asynchronously."""

    def __init__(
        self, url: str, *, token: str | None = None, model: str | None = None, timeout: float = TIMEOUT
    ) -> None:
        super().__init__(url, token=token, model=model, timeout=timeout)
        self._http = _httpx().AsyncClient(**self._options)

    async def classify(self, texts: Sequence[Any], labels: Any = None, **options: Any) -> list[dict[str, Any]]:
        """The answer for each text, see :meth:`Client.classify`."""
        body = self._classify(texts, labels, options)
        found: list[dict[str, Any]] = (await self._send("POST", "/v1/classify", body))["results"]
        return found

    async def predict(self, texts: Sequence[Any], labels: Any = None, **options: Any) -> list[Any]:
        """The label of each text, see :meth:`Client.predict`."""
        return [_label(answer) for answer in await self.classify(texts, labels, **{"top_k": 1, **options})]

    async def labels(self) -> dict[str, Any]:
        """The labels of the classifier, with the ``etag`` that an edit needs."""
        found: dict[str, Any] = await self._send("GET", "/v1/labels", params=self._query())
        return found

    async def edit_labels(self, etag: str, **edits: Any) -> dict[str, Any]:
        """Edit labels, see :meth:`Client.edit_labels`."""
        found: dict[str, Any] = await self._send(
            "PATCH", "/v1/labels", edits, params=self._query(), headers={"If-Match": etag}
        )
        return found

    async def feedback(self, text: Any, label: Any, *, request_id: str | None = None) -> None:
        """Tell the server the right label of a text, see :meth:`Client.feedback`."""
        await self._send("POST", "/v1/feedback", self._feedback(text, label, request_id))

    async def _send(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        try:
            return self._read(await self._http.request(method, path, json=body, **options))
        except (_httpx().HTTPError, _httpx().InvalidURL) as error:
            raise self._lost(error, self._options["base_url"]) from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _label(answer: Mapping[str, Any]) -> Any:
    if "error" in answer:
        raise ServerError(str(answer["error"]), 422, "validation")
    return answer["labels"] if "labels" in answer else answer["label"]


def _httpx() -> Any:
    try:
        import httpx
    except ImportError as error:
        raise MaskMatchError(
            'A client needs httpx, which is not installed; install it with pip install "maskmatch[serve]".'
        ) from error
    return httpx
