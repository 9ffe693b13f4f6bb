"""Ray: on a cluster of several nodes on this machine, each row is answered once, whatever dies."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from cli_tools import Run, fails, is_wrong_usage
from integration_tools import made_texts, write_lines

ray = pytest.importorskip("ray", reason='Ray is not installed: pip install "maskmatch[ray]"')

import psutil  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

from maskmatch import ExportedMatcher, MaskMatchError  # noqa: E402
from maskmatch.integrations.arrow import ArrowPredictor  # noqa: E402
from maskmatch.integrations.ray import classify  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS = 1500


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a cluster of three nodes, two of which compute."""
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_BACKEND_LOG_LEVEL="error")
    node = {"object_store_memory": 80_000_000, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **node})
    for _ in range(2):
        made.add_node(num_cpus=1, **{name: value for name, value in node.items() if name != "include_dashboard"})
    made.wait_for_nodes()
    yield made.address
    made.shutdown()


@pytest.fixture
def connected(cluster: str) -> Iterator[str]:
    """A connection of this process, which the command uses."""
    ray.init(cluster, log_to_driver=False)
    yield cluster
    ray.shutdown()


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of which each 50th is bad."""
    made = [{"text": text, "id": place} for place, text in enumerate(made_texts(ROWS))]
    for place in range(0, ROWS, 50):
        made[place]["text"] = None  # type: ignore[assignment]
    return write_lines(tmp_path_factory.mktemp("rows") / "in" / "rows.jsonl", list(made))


def is_complete(rows: Path, folder: Path, output: Path) -> None:
    """Checks that each row has the answer of one process, once, and that bad rows say why."""
    table = ds.dataset(output, format="parquet").to_table()
    found = sorted(table.to_pylist(), key=lambda row: row["row"])
    assert [row["row"] for row in found] == list(range(ROWS))
    given = [json.loads(line) for line in rows.read_text().splitlines()]
    assert [row["text"] for row in found] == [row["text"] for row in given]
    good = [row for row in found if row["text"] is not None]
    assert [row["error"] for row in found] == [None if row["text"] else "the text is missing" for row in found]
    expected = ExportedMatcher.from_pretrained(folder).top_k([row["text"] for row in good], 3)
    assert [[each["label"] for each in row["top_k"]] for row in good] == [[name for name, _ in row] for row in expected]
    values = [value for row in expected for _, value in row]
    assert [each["probability"] for row in good for each in row["top_k"]] == pytest.approx(values, abs=1e-5)
    manifest = json.loads((output / "_manifest.json").read_text())
    assert (manifest["rows"], manifest["bad_rows"]) == (ROWS, ROWS // 50)


def wait_for(output: Path, partitions: int) -> None:
    deadline = time.monotonic() + 60
    while len(list(output.glob("*.parquet"))) < partitions:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def workers() -> list[psutil.Process]:
    """The processes of actors, which are children of this one's cluster."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if any("MapWorker" in word for word in process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


class TestCommand:
    def test_a_worker_that_is_killed_in_the_middle(
        self, run: Run, connected: str, exported: Path, rows: Path, tmp_path: Path
    ) -> None:
        output, killed = tmp_path / "out", []

        def kill() -> None:
            wait_for(output, 2)
            for process in workers()[:1]:
                process.kill()
                killed.append(len(list(output.glob("*.parquet"))))

        thread = threading.Thread(target=kill)
        thread.start()
        arguments = ["predict", exported, rows, "-o", output, "--engine", "ray", "--partition-rows", 20]
        result = run(*arguments, "--actors", 2, "--ray-address", connected)
        thread.join()
        assert result.code == 0, result.err
        assert killed
        assert killed[0] < ROWS // 20
        is_complete(rows, exported, output)
        printed = json.loads(result.out)
        assert (printed["rows"], printed["partitions"], printed["skipped_partitions"]) == (ROWS, ROWS // 20, 0)
        again = run(*arguments)  # without a cluster: there is nothing to do
        assert json.loads(again.out)["skipped_partitions"] == ROWS // 20
        fails(run(*arguments, "-k", 1), "was made with other options; give --overwrite")

    def test_a_run_that_is_killed_resumes(
        self, run: Run, cluster: str, exported: Path, rows: Path, tmp_path: Path
    ) -> None:
        output = tmp_path / "out"
        arguments = ["predict", exported, rows.parent, "-o", output, "--engine", "ray", "--partition-rows", 20]
        arguments += ["--ray-address", cluster, "--actors", 2]
        process = subprocess.Popen([sys.executable, "-m", "maskmatch", *map(str, arguments)])
        wait_for(output, 3)
        process.kill()
        process.wait()
        before = {path.name: path.stat().st_mtime_ns for path in output.glob("*.parquet")}
        assert not (output / "_manifest.json").exists()
        result = run(*arguments)
        assert result.code == 0, result.err
        assert 3 <= json.loads(result.out)["skipped_partitions"] < ROWS // 20
        after = {path.name: path.stat().st_mtime_ns for path in output.glob("*.parquet")}
        assert {name: after[name] for name in before} == before or len(before) < len(after)
        is_complete(rows, exported, output)

    def test_a_model_that_a_worker_cannot_use_is_one_sentence(
        self, run: Run, connected: str, exported: Path, rows: Path, tmp_path: Path
    ) -> None:
        arguments = ["predict", exported, rows, "-o", tmp_path / "out", "--engine", "ray", "--threshold", 0.5]
        fails_with_progress = run(*arguments)
        assert fails_with_progress.code == 1
        assert "A threshold needs several labels per text" in fails_with_progress.err.splitlines()[-1]

    def test_an_address_where_nothing_is(self, run: Run, exported: Path, rows: Path, tmp_path: Path) -> None:
        arguments = ["predict", exported, rows, "-o", tmp_path / "out", "--engine", "ray", "--ray-address"]
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        fails(run(*arguments, f"127.0.0.1:{port}"), "Ray cannot be reached")
        fails(run(*arguments, "somewhere"), "HOST:PORT")

    def test_wrong_usage(self, run: Run, exported: Path, rows: Path, tmp_path: Path) -> None:
        out = ["-o", tmp_path / "out"]
        is_wrong_usage(run("predict", exported, rows, "--engine", "ray"), "--output")
        is_wrong_usage(run("predict", exported, "--text", "a", *out, "--engine", "ray"), "--text")
        is_wrong_usage(run("predict", exported, rows, *out, "--engine", "ray", "--device", "cpu"), "--device")
        is_wrong_usage(run("predict", exported, rows, "--actors", 2), "--engine ray")
        is_wrong_usage(run("predict", exported, rows, "-o", "out.csv", "--engine", "ray"), "a folder of Parquet files")
        fails(run("predict", tmp_path / "none", rows, *out, "--engine", "ray"), "none")


def test_a_dataset_gets_the_columns_of_answers(connected: str, exported: Path) -> None:
    ray.data.DataContext.get_current().enable_progress_bars = False
    table = pa.table({"text": [*made_texts(99), None], "n": list(range(100))})
    answered: Any = classify(ray.data.from_arrow(table), exported, actors=2, rows=30, top_k=1)
    found = pa.Table.from_pylist(sorted(answered.take_all(), key=lambda row: row["n"]))
    expected = ArrowPredictor(exported, top_k=1)(table)
    assert found["label"].to_pylist() == expected["label"].to_pylist()
    assert found["error"].to_pylist()[-1] == "the text is missing"
    assert set(found.column_names) == set(expected.column_names)


def test_mistakes_are_reported_before_an_actor_starts(connected: str, exported: Path) -> None:
    rows = ray.data.from_arrow(pa.table({"text": ["a"], "body": ["b"], "label": ["c"]}))
    for options, words in (
        ({"topk": 1}, "There is no option 'topk'"),
        ({"actors": 0}, "actors"),
        ({}, "column 'label' already"),
        ({"prefix": "x_", "text_field": "none"}, "There is no column 'none'"),
    ):
        with pytest.raises(MaskMatchError, match=words):
            classify(rows, exported, **options)
