"""A lock that an object carries with it, and methods that hold it."""

from __future__ import annotations

import threading
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Lock:
    """A reentrant lock. A copy of its object, also in another process, gets a lock of its own."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> Any:
        return Lock, ()


class Locked(Protocol):
    """An object with a lock."""

    lock: Lock


Owner = TypeVar("Owner", bound=Locked)


def exclusive(
    method: Callable[Concatenate[Owner, Parameters], Result],
) -> Callable[Concatenate[Owner, Parameters], Result]:
    """The method, held by one thread at a time."""

    @wraps(method)
    def locked(owner: Owner, /, *args: Parameters.args, **options: Parameters.kwargs) -> Result:
        with owner.lock:
            return method(owner, *args, **options)

    return locked
