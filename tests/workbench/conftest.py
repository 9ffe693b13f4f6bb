"""Projects on a tiny encoder, on SQLite and on PostgreSQL."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlalchemy

from maskmatch.data.tables import write_table
from maskmatch.labels import LabelSet
from maskmatch.workbench.project import Project
from toy_data import LABELS
from workbench_tools import ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Tiny = Callable[[str], Path]


@pytest.fixture(scope="session")
def texts_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("texts") / "texts.csv", ["id", "text"], ROWS)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of an empty database of a server on loopback."""
    places = os.pathsep.join([os.environ["PATH"], *map(str, Path("/usr/lib/postgresql").glob("*/bin"))])  # Debian's
    initdb, server = (shutil.which(name, path=places) for name in ("initdb", "postgres"))
    if initdb is None or server is None:
        pytest.skip("PostgreSQL is not installed")
    folder = Path(tempfile.mkdtemp(prefix="maskmatch-postgres-"))  # another user must get there
    apart: list[str] = []
    if os.getuid() == 0:  # it refuses to run as root
        shutil.chown(folder, "postgres")
        apart = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    data = folder / "data"
    how = ["-U", "tester", "--auth=trust", "--no-sync", "--encoding=UTF8"]
    done = subprocess.run(
        [*apart, initdb, "-D", str(data), *how], capture_output=True, text=True, cwd=folder, check=False
    )
    if done.returncode:
        pytest.skip(f"PostgreSQL cannot be started here: {done.stderr[-200:]}")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [*apart, server, "-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", str(folder), "-F"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        yield f"postgresql+psycopg://tester@127.0.0.1:{port}/postgres"
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """The database that a test is for: None for SQLite in the folder of the project."""
    if getattr(request, "param", "sqlite") == "sqlite":
        yield None
        return
    url = request.getfixturevalue("postgres")
    engine = sqlalchemy.create_engine(url)
    for _ in range(100):
        try:
            with engine.begin() as connection:
                connection.execute(sqlalchemy.text("drop schema public cascade"))
                connection.execute(sqlalchemy.text("create schema public"))
            break
        except sqlalchemy.exc.OperationalError:
            time.sleep(0.1)
    engine.dispose()
    yield url


@pytest.fixture
def project(tiny: Tiny, tmp_path: Path, texts_file: Path, database: str | None) -> Iterator[Project]:
    """A project with texts and labels."""
    made = Project(tmp_path / "project", model=str(tiny("bert")), database=database)
    made.start_labels(LabelSet.of(LABELS))
    made.import_rows(str(texts_file))
    made.engine.wait(60)
    yield made
    made.close()
