"""Requests that are made from the OpenAPI document of the server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from maskmatch_lab.torture.campaign import SkippedError
from maskmatch_lab.torture.serving import running_server

if TYPE_CHECKING:
    from maskmatch.testing.server import ServerProcess
    from maskmatch_lab.torture.campaign import Tally
    from maskmatch_lab.torture.material import Material

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
REQUESTS_PER_EXAMPLE = 10
"""How many requests schemathesis makes, over all operations, for each example that it is asked for."""

MOST_SEEDS = 8
"""How many runs of schemathesis, each with a seed of its own, it may take to make the requests."""


def made_requests(material: Material, tally: Tally) -> None:
    """Requests that schemathesis makes from the OpenAPI document."""
    command = Path(sys.executable).with_name("schemathesis")
    if not command.exists():
        raise SkippedError("schemathesis is not installed")
    room = material.room("schemathesis")
    with running_server(material, room, "--feedback-file", str(room / "feedback.jsonl")) as server:
        for seed in range(1, MOST_SEEDS + 1):  # it stops earlier where an operation has few different requests
            if not _made_with(str(command), server, room, tally, seed) or tally.tries >= tally.wanted:
                break
        tally.outcomes["answered or refused, as the document says"] = tally.tries
        if any("Traceback" in line for line in server.log):
            tally.fail("the log has a traceback")


def _made_with(command: str, server: ServerProcess, room: Path, tally: Tally, seed: int) -> bool:
    """One run of schemathesis; whether all went well."""
    examples = max(2, tally.wanted // REQUESTS_PER_EXAMPLE)
    options = ["--checks", CHECKS, "--max-examples", str(examples), "--seed", str(seed)]
    options += ["-H", "Authorization: Bearer writer", f"{server.url}/openapi.json"]
    done = subprocess.run([command, "run", *options], check=False, capture_output=True, text=True, cwd=room)
    counted = httpx.get(f"{server.url}/metrics").text.splitlines()
    tally.tries = round(sum(float(line.split()[-1]) for line in counted if "requests_total{" in line))
    if done.returncode:
        tally.fail(done.stdout[-3000:])
    return not done.returncode
