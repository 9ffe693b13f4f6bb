"""Answers of a server, for ``maskmatch predict --url``."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maskmatch.cli import options
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from maskmatch.cli.answers import Answers
    from maskmatch.data import Examples
    from maskmatch.serving import Client

MOST_TEXTS = 100
"""How many texts are sent to a server in one request."""

TRIES = 10
"""How often a request is sent to a server that has too much to do."""


@dataclass(frozen=True)
class Served:
    """A classifier of a server.

    Attributes:
        client: The client.
        described: The classifier: what identifies it, its fields and labels.
        wanted: What answers should have.
    """

    client: Client
    described: dict[str, Any]
    wanted: dict[str, Any]

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that it reads."""
        return tuple(self.described["fields"])

    @property
    def abstains(self) -> bool:
        """Whether the answer may be another than the best label, as was asked for or by its own setting."""
        least = self.wanted.get("abstain", self.described.get("abstain"))
        return bool(least)

    def first(self, texts: Sequence[Any]) -> dict[str, Any]:
        """The answer for the first text, which tells what answers have."""
        return _asked(self.client, texts[:1], self.wanted)[0]

    def answers(self, chunks: Iterable[Examples]) -> Answers:
        """The answers, in the order of the texts."""
        cut = 0
        for chunk in chunks:
            rows = list(range(len(chunk)) if chunk.row_numbers is None else chunk.row_numbers)
            found: list[dict[str, Any]] = []
            for start in range(0, len(rows), MOST_TEXTS):
                answers = _asked(self.client, chunk.texts[start : start + MOST_TEXTS], self.wanted)
                for row, answer in zip(rows[start : start + MOST_TEXTS], answers, strict=True):
                    if "error" in answer:
                        raise MaskMatchError(f"Text {row}: {answer['error']}")
                    cut += bool(answer.get("truncated"))
                    found.append(answer)
            yield chunk, found
        if cut:
            options.note(f"{cut} texts were longer than what the encoder reads and were truncated.")


@contextmanager
def served_classifier(url: str, name: str | None, wanted: dict[str, Any]) -> Iterator[Served]:
    """A classifier of a server; the environment variable MASKMATCH_TOKEN has its token.

    Args:
        url: The address of the server.
        name: The name of the classifier there; None: the only one.
        wanted: What answers should have: top_k, threshold, abstain, none_label, novelty, where they are given.
    """
    from maskmatch.serving import Client

    with Client(url, token=os.environ.get("MASKMATCH_TOKEN"), model=name) as client:
        found = client.labels()
        if "fields" not in found:
            raise MaskMatchError("This server is none of maskmatch's, or of an earlier version.")
        yield Served(client, found, {key: value for key, value in wanted.items() if value is not None})


def _asked(client: Client, texts: Sequence[Any], wanted: dict[str, Any]) -> list[dict[str, Any]]:
    """The answers of a server; if it has too much to do, ask again a little later."""
    from maskmatch.serving import ServerError

    for number in range(1, TRIES + 1):
        try:
            return client.classify(texts, **wanted)
        except ServerError as error:
            if len(texts) > 1 and (error.status == 413 or error.kind == "timeout"):  # too much for one request
                half = len(texts) // 2
                return [*_asked(client, texts[:half], wanted), *_asked(client, texts[half:], wanted)]
            if error.status != 503 or number == TRIES:
                raise
            time.sleep(min(5.0, 0.5 * number))
    raise AssertionError("unreachable")
