"""An install for serving only: without torch and all that training needs, exports predict and are served."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from maskmatch import MaskMatcher, export
from maskmatch.errors import NOT_SERVING
from maskmatch.serving.default_export import default_export_folder
from server_tools import ServerProcess
from toy_data import LABELS, TEXTS

if TYPE_CHECKING:
    from pathlib import Path

    from shared_fixtures import Tiny

LEFT_OUT = (*NOT_SERVING, "datasets", "faiss", "onnx", "pandas", "polars", "pyarrow", "sentencepiece")
"""What is not installed in an install for serving only."""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH that makes Python start as if these packages were not installed."""
    folder = tmp_path_factory.mktemp("bare")
    names = repr(LEFT_OUT)
    (folder / "sitecustomize.py").write_text(f"import sys\nsys.modules.update(dict.fromkeys({names}))\n")
    return folder


@pytest.fixture(scope="module")
def exported(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "export"
    export(MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False), folder, int8=True)
    return folder


class Bare:
    """Starts processes that find only what an install for serving has."""

    def __init__(self, blocked: Path, cache: Path) -> None:
        paths = [str(blocked), *(path for path in sys.path if path)]
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "MASKMATCH_CACHE": str(cache),
            "OMP_NUM_THREADS": "2",  # a second session is started
        }

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=self.environment,
            timeout=120,
            check=False,
        )

    def maskmatch(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.python("-m", "maskmatch", *arguments)


@pytest.fixture
def run(bare: Path, tmp_path: Path) -> Bare:
    return Bare(bare, tmp_path / "cache")


def sentence(done: subprocess.CompletedProcess[str], code: int = 1) -> str:
    """The only line that a failed command writes."""
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_the_packages_are_missing_indeed(run: Bare) -> None:
    done = run.python("-c", "import torch")
    assert "ModuleNotFoundError" in done.stderr


def test_an_export_predicts_and_its_labels_are_edited(run: Bare, exported: Path) -> None:
    done = run.maskmatch("predict", str(exported), "--text", TEXTS[0])
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["label"] in LABELS
    done = run.maskmatch("classify", "--labels", "parcel, card", "--model", str(exported), "--text", TEXTS[0])
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["label"] in ("parcel", "card")
    for command in (["add", str(exported), "parcel"], ["remove", str(exported), "parcel"], ["show", str(exported)]):
        done = run.maskmatch("labels", *command)
        assert done.returncode == 0, done.stderr


def test_python_predicts(run: Bare, exported: Path) -> None:
    code = (
        "from maskmatch import ExportedMatcher\n"
        f"m = ExportedMatcher.from_pretrained({str(exported)!r}, ['parcel', 'card'], verbose=False)\n"
        "print(m.predict(['my card is gone'])[0], len(m.novelty(['hello'])), m.explain('my card is gone').labels[0])\n"
    )
    done = run.python("-c", code)
    assert done.returncode == 0, done.stderr


def test_an_export_is_served(run: Bare, exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from maskmatch.serving import Client

    for name, value in run.environment.items():
        monkeypatch.setenv(name, value)
    with ServerProcess(str(exported)) as server, Client(server.url) as client:
        assert {*client.predict(TEXTS[:2])} <= {*LABELS}
        assert client.predict(TEXTS[:1], labels=["parcel", "card"])[0] in ("parcel", "card")
        assert server.stop() == 0


@pytest.mark.parametrize(
    "command",
    [
        ["train", "{rows}", "-o", "{new}"],
        ["adapt", "one, two", "{rows}", "-o", "{new}"],
        ["export", "{saved}", "-o", "{new}"],
        ["predict", "{saved}", "--text", "hello"],
        ["classify", "--labels", "one, two", "--text", "hello", "--device", "cpu"],
        ["classify", "--labels", "one, two", "--text", "hello", "--task", "nli", "--max-length", "64"],
        ["serve", "{saved}"],
        ["labels", "add", "{saved}", "parcel"],
        ["labels", "check", "one, two"],
        ["explain", "{saved}", "--text", "hello"],
    ],
    ids=" ".join,
)
def test_what_needs_torch_says_so_in_one_sentence(run: Bare, saved: Path, tmp_path: Path, command: list[str]) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\nhello,one\nbye,two\n")
    names = {"saved": saved, "rows": rows, "new": tmp_path / "new"}
    said = sentence(run.maskmatch(*(word.format(**names) for word in command)))
    assert "pip install maskmatch" in said
    assert "not installed (an install for serving only leaves it out)" in said
    assert not (tmp_path / "new").exists()


@pytest.fixture(scope="module")
def saved(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "classifier"
    MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False).save_pretrained(folder)
    return folder


def test_reports_need_scikit_learn(run: Bare, exported: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"text": "hello", "label": label}) + "\n" for label in LABELS))
    said = sentence(run.maskmatch("evaluate", str(exported), str(rows), "--quiet"))
    assert re.search("needs (scikit-learn|scipy), which", said)


@pytest.mark.parametrize("name", ["MaskMatcher", "align", "export"])
def test_python_gets_an_error_of_both_kinds(run: Bare, name: str) -> None:
    code = (
        "import maskmatch\n"
        f"try:\n    maskmatch.{name}\n"
        "except ImportError as error:\n"
        "    assert isinstance(error, maskmatch.MaskMatchError)\n"
        "    print(error)\n"
    )
    done = run.python("-c", code)
    assert done.stdout.startswith("This needs torch, which is not installed"), done.stderr


def test_the_default_is_used_once_its_export_is_there(
    run: Bare, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made where torch is installed; without it, the sentence says where it is expected."""
    classify = ("classify", "--labels", "one, two", "--text", "hello")
    monkeypatch.setenv("MASKMATCH_CACHE", run.environment["MASKMATCH_CACHE"])
    folder = default_export_folder("topic")
    for command in (classify, ("serve",)):
        assert str(folder) in sentence(run.maskmatch(*command))
    folder.parent.mkdir()
    exported.rename(folder)
    try:
        done = run.maskmatch(*classify)
    finally:
        folder.rename(exported)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["label"] in ("one", "two")
