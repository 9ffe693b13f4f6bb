"""Help for tests of the server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from maskmatch.testing.server import ServerProcess

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ServerProcess", "bearer", "metric", "token_file"]


def token_file(folder: Path) -> Path:
    path = folder / "tokens"
    path.write_text("# of the tests\nreader\nwrite writer\n", encoding="utf-8")
    return path


def metric(text: str, name: str) -> float:
    """The value of a metric without labels."""
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def bearer(token: str) -> dict[str, Any]:
    return {"Authorization": f"Bearer {token}"}
