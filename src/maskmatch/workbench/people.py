"""Who may open a project, where a file of tokens says so."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class People:
    """People, by the digests of their tokens."""

    names: Mapping[str, str]

    @classmethod
    def load(cls, path: str | Path) -> People:
        """The people of a file: a line has a name and a token."""
        try:
            text = Path(path).expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise MaskMatchError(f"The token file {path} cannot be read: {error}.") from error
        lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
        if not lines:
            raise MaskMatchError(f"The token file {path} has no token.")
        found: dict[str, str] = {}
        for line in lines:
            name, _, token = line.replace("\t", " ").rpartition(" ")
            if not name.strip():
                raise MaskMatchError(f"The token file {path} is wrong: a line is a name, a space and a token.")
            if digest(token) in found:
                raise MaskMatchError(f"The token file {path} has a token twice; give each person their own.")
            found[digest(token)] = name.strip()
        return cls(found)

    def find(self, token: str) -> str | None:
        """The digest of a token, if somebody has it; all are compared, in constant time."""
        own = digest(token.strip())
        same = [hmac.compare_digest(own, each) for each in self.names]
        return own if any(same) else None


def digest(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def is_loopback(host: str) -> bool:
    """Whether an address is only reached from this machine.

    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
