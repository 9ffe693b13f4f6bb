"""Serving over HTTP: the server, its batcher, and a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maskmatch.serving.client import AsyncClient, Client, ServerError
    from maskmatch.serving.config import ServeConfig

__all__ = ["AsyncClient", "Client", "ServeConfig", "ServerError"]

_HOMES = {"AsyncClient": "client", "Client": "client", "ServeConfig": "config", "ServerError": "client"}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: a client needs no server."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
