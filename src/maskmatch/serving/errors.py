"""Errors of the server, in the shape that clients of text-embeddings-inference know: ``error`` and ``error_type``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class RequestError(Exception):
    """A request that cannot be answered.

    Args:
        status: The HTTP status.
        kind: The kind of error, a word that programs can compare.
        message: One sentence for people.
        headers: Further headers of the response.
    """

    def __init__(self, status: int, kind: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def body(self) -> dict[str, Any]:
        """The JSON object of the response."""
        return {"error": self.message, "error_type": self.kind}


def invalid(message: str) -> RequestError:
    """The error of a request that means nothing."""
    return RequestError(422, "validation", message)


def of_validation(error: Mapping[str, Any]) -> RequestError:
    """The error of a request that does not fit its schema, by the first error of pydantic."""
    where = ".".join(str(part) for part in error["loc"] if part != "body")
    return invalid(f"{where or 'The request'}: {error['msg']}.")


def too_large(message: str) -> RequestError:
    """The error of a request that asks for too much."""
    return RequestError(413, "too_large", message)


def mistake(request_id: str) -> RequestError:
    """The error of a request that the server itself has failed."""
    return RequestError(500, "internal", f"The server made a mistake; its log has more, under {request_id}.")


def overloaded() -> RequestError:
    """The error of a request that comes while too many others wait."""
    return RequestError(503, "overloaded", "Too many texts wait; try again.", Retry_After="1")
