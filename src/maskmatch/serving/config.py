"""The settings of the server, declared once; each is also an environment variable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from maskmatch.config.settings import Settings, setting

ENVIRONMENT = "MASKMATCH_SERVE_"
"""How the environment variables of the settings begin: ``MASKMATCH_SERVE_PORT``."""


@dataclass(frozen=True)
class ServeConfig(Settings):
    """How to serve classifiers over HTTP."""

    host: str = setting("127.0.0.1", help="The address to listen on. 0.0.0.0 lets other machines connect.")
    port: int = setting(8080, at_least=0, at_most=65535, help="The port to listen on; 0: any free one.")
    workers: int = setting(1, at_least=1, at_most=64, help="How many processes serve, each with its own model.")
    token_file: str | None = setting(
        None,
        help="A file with one bearer token per line. A line that begins with 'write ' is a token that may edit labels, "
        "any other line one that may classify. Without this file everyone may classify, and nobody may edit.",
    )
    feedback_file: str | None = setting(
        None,
        help="A file, ending in .jsonl, to which POST /v1/feedback appends texts with their right labels; classifiers "
        "can be trained on it. Default: no feedback is kept.",
    )
    max_batch_tokens: int = setting(2048, at_least=64, help="How many tokens are encoded at once, padding included.")
    max_wait_ms: float = setting(
        2.0, at_least=0, at_most=1000, help="How long a text waits at most for others to be encoded with, under load."
    )
    queue: int = setting(2048, at_least=1, help="How many texts may wait; a request beyond that gets 503 at once.")
    max_texts: int = setting(1000, at_least=1, help="How many texts a request may have.")
    max_chars: int = setting(50_000, at_least=1, help="How many characters a text may have.")
    max_labels: int = setting(1000, at_least=1, help="How many labels a request may bring, their phrases included.")
    max_bytes: int = setting(4_000_000, at_least=1000, help="How many bytes a request may have.")
    timeout: float = setting(30.0, above=0, help="How many seconds a request may take, its arrival included.")
    label_sets: int = setting(
        64, at_least=1, help="How many sets of labels that came with requests are cached, with their vectors."
    )
    cors: str | None = setting(
        None, help="Origins whose pages may call the server, separated by commas. Default: none."
    )
    log_format: Literal["human", "json"] = setting("human", help="How requests are logged, to standard error.")
    log_texts: bool = setting(False, help="Whether logs contain the texts of requests.")
