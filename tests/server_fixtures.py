"""A trained export of a tiny encoder, and a server that has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from maskmatch import MaskMatcher, export
from maskmatch.serving import Client
from server_tools import ServerProcess
from toy_data import A_LITTLE, LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Tiny = Callable[[str], Path]


@pytest.fixture(scope="session")
def exported(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "bank"
    export(MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False).fit(TEXTS, TRUTH, **A_LITTLE), folder)
    return folder


@pytest.fixture(scope="session")
def server(exported: Path) -> Iterator[ServerProcess]:
    limits = {"max-texts": 50, "max-chars": 2000, "max-labels": 20, "max-bytes": 100_000, "label-sets": 4}
    options = [part for name, value in limits.items() for part in (f"--{name}", str(value))]
    with ServerProcess(str(exported), "--port", "0", *options) as process:
        yield process


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.url) as client:
        yield client
