"""Requests that are made from the server's own OpenAPI document: no 5xx, and answers as the document says."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from maskmatch import MaskMatcher, export
from server_tools import ServerProcess, token_file
from toy_data import LABELS

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
CHECKS = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")


@pytest.mark.skipif(not SCHEMATHESIS.exists(), reason="schemathesis is not installed")
def test_requests_made_from_the_document(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    export(MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False), tmp_path / "bank")
    tokens = token_file(tmp_path)
    command = [str(SCHEMATHESIS), "run", "--checks", ",".join(CHECKS), "--max-examples", "15", "--seed", "1"]
    with ServerProcess(str(tmp_path / "bank"), "--port", "0", "--token-file", str(tokens)) as server:
        done = subprocess.run(
            [*command, "-H", "Authorization: Bearer writer", f"{server.url}/openapi.json"],
            check=False,
            capture_output=True,
            text=True,
            timeout=300,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stdout[-4000:]
        assert server.stop() == 0
    shutil.rmtree(tmp_path / ".schemathesis", ignore_errors=True)
    assert not any("Traceback" in line for line in server.log)
