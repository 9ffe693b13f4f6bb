"""Bearer tokens: some may classify, some may also edit labels."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from pathlib import Path

from maskmatch.errors import MaskMatchError
from maskmatch.serving.errors import RequestError

WRITE = "write"
"""How a line with a write token begins."""


@dataclass(frozen=True)
class Tokens:
    """The tokens of a server; None: there is no token file, so everyone may classify and nobody may edit."""

    read: tuple[bytes, ...] | None = None
    write: tuple[bytes, ...] = ()

    @classmethod
    def load(cls, path: str | None) -> Tokens:
        """The tokens of a file, one per line."""
        if path is None:
            return cls()
        try:
            lines = [line.strip() for line in Path(path).expanduser().read_text(encoding="utf-8").splitlines()]
        except (OSError, UnicodeDecodeError) as error:
            raise MaskMatchError(f"The token file {path} cannot be read: {error}.") from error
        lines = [line for line in lines if line and not line.startswith("#")]
        if not lines:
            raise MaskMatchError(f"The token file {path} has no token.")
        words = [line.split() for line in lines]
        if any(len(each) > 2 or (len(each) == 2) != (each[0] == WRITE) for each in words):
            raise MaskMatchError(f"The token file {path} is wrong: a line is a token, or {WRITE!r} and a token.")
        tokens = [(each[-1].encode(), len(each) == 2) for each in words]
        return cls(tuple(token for token, _ in tokens), tuple(token for token, may_write in tokens if may_write))

    def check(self, header: str | None, *, write: bool = False) -> None:
        """Raise unless the header has a token that may do this; tokens are compared in constant time."""
        if self.read is None:
            if write:
                raise RequestError(
                    403,
                    "forbidden",
                    "Only a write token may edit labels; start the server with --token-file.",
                )
            return
        kind, _, given = (header or "").partition(" ")
        token = given.strip().encode() if kind.lower() == "bearer" else b""
        known = [hmac.compare_digest(token, each) for each in self.read]
        if not token or not any(known):
            raise RequestError(401, "unauthorized", "A bearer token is needed.", WWW_Authenticate="Bearer")
        may_write = [hmac.compare_digest(token, each) for each in self.write]
        if write and not any(may_write):
            raise RequestError(403, "forbidden", "This token may classify, but not edit labels.")
