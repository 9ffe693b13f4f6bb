"""``maskmatch export``, and exports in ``predict`` and ``evaluate``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cli_tools import Run, Tiny, fails, is_wrong_usage
from maskmatch import MaskMatcher, export
from toy_data import LABELS, TEXTS, TRUTH


def test_an_export_predicts_and_evaluates_like_its_classifier(run: Run, model: Path, toy: Path, tmp_path: Path) -> None:
    result = run("export", model, "-o", tmp_path / "export", "--texts", toy)
    assert result.code == 0
    assert f"12 texts ({toy})" in result.out
    assert "100.0% of the predicted labels are the same" in result.out
    assert result.err == f"export saved in {tmp_path / 'export'}\n"
    assert run("predict", tmp_path / "export", toy).rows() == run("predict", model, toy).rows()
    report = json.loads(run("evaluate", tmp_path / "export", toy, "--json").out)
    assert report["accuracy"] == 1.0
    assert str(tmp_path / "export") in report["model"]


@pytest.mark.parametrize("exported", [False, True])
def test_the_search_is_a_choice(
    run: Run, own: Path, toy: Path, monkeypatch: pytest.MonkeyPatch, exported: bool
) -> None:
    folder = own
    if exported:
        assert run("export", own).code == 0
        folder = Path(f"{own}-onnx")
    assert run("predict", folder, toy, "--search", "exact").rows() == run("predict", folder, toy).rows()
    is_wrong_usage(run("predict", folder, toy, "--search", "fast"), "--search")
    monkeypatch.setattr("maskmatch.prediction.index.find_spec", lambda _: None)
    fails(run("predict", folder, toy, "--search", "approximate"), "maskmatch[index]")


@pytest.mark.parametrize("exported", [False, True])
def test_all_labels_that_apply_are_printed_however_few_are_listed(
    run: Run, tiny: Tiny, tmp_path: Path, exported: bool
) -> None:
    names = [f"label {number}" for number in range(30)]
    matcher = MaskMatcher.from_pretrained(tiny("bert"), names, multi_label=True, threshold=0.0)
    folder = tmp_path / "model"
    if exported:
        export(matcher, folder)
    else:
        matcher.save_pretrained(folder)
    row = run("predict", folder, "--text", TEXTS[0], "--top-k", "2").rows()[0]
    assert sorted(row["labels"]) == sorted(names)
    assert [each["label"] for each in row["top_k"]] == row["labels"][:2]


def test_int8_is_named_in_json_and_in_the_folder(run: Run, own: Path) -> None:
    data = json.loads(run("export", own, "--int8", "--json").out)
    assert data["folder"] == f"{own}-int8"
    assert data["int8"] is True
    assert data["parity"]["texts"] == 12 + len(LABELS)
    rows = run("predict", f"{own}-int8", "-", stdin="\n".join(TEXTS)).rows()
    assert [row["label"] for row in rows] == TRUTH


def test_refusals(run: Run, model: Path, tiny: Tiny, toy: Path, tmp_path: Path) -> None:
    fails(run("export", tiny("bert"), "-o", tmp_path / "e"), "not a saved classifier")
    fails(run("export", model, "-o", toy), toy, "is not an export")
    fails(run("export", model, "-o", tmp_path / "e", "--texts", "nowhere.csv"), "nowhere.csv")
    assert not (tmp_path / "e").exists()
    assert run("export", model, "-o", tmp_path / "e").code == 0
    fails(run("export", tmp_path / "e"), "export already")
    fails(run("predict", tmp_path / "e", "--text", "x", "--device", "cuda"), "'cuda'", "CPU")
    fails(run("predict", tmp_path / "e", "--text", "x", "--threshold", "0.5"), "several labels")
    classify = ("classify", "--model", tmp_path / "e", "--labels", "a,b", "--text", "x")
    fails(run(*classify, "--adapt"), "is an export", "--adapt")
    fails(run(*classify, "--prompt", "{text} {mask}"), "is an export", "--prompt")
    for command in ("check", "expand"):
        fails(run("labels", command, tmp_path / "e"), "is an export", "the classifier that it was made from")
    is_wrong_usage(run("export"), "Missing argument")


def test_labels_of_an_export_are_edited(run: Run, model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "e"
    assert run("export", model, "-o", folder).code == 0
    assert "parcel" in run("labels", "add", folder, "parcel", "--description", "a box").out
    assert run("labels", "rename", folder, "parcel", "package").code == 0
    assert run("labels", "remove", folder, "card lost").code == 0
    shown = run("labels", "show", folder).out
    assert "package" in shown
    assert "card lost" not in shown
    found = json.loads(run("predict", folder, "--text", "x", "--top-k", "9").out)
    assert {each["label"] for each in found["top_k"]} == {"package", "refund", "exchange rate"}
    found = json.loads(run("classify", "--model", folder, "--labels", "sport, music", "--text", "What a goal!").out)
    assert {each["label"] for each in found["top_k"]} == {"sport", "music"}


def test_a_reader_that_goes_away_while_the_writer_waits(model: Path) -> None:
    """The thread that reads ahead is blocked by the pipe then; it must neither keep the process nor spoil its end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "maskmatch", "predict", str(model), "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin
    assert process.stdout
    assert process.stderr
    process.stdin.write(b"refund\n" * 2048)  # a chunk, and no end of the pipe
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["label"] == "refund"
    process.stdout.close()
    try:
        assert process.wait(60) == 141
        said = process.stderr.read()  # a slow machine sees a bar of progress
        assert not any(word in said for word in (b"Error", b"Traceback", b"Exception")), said
    finally:
        process.kill()


def test_a_broken_row_is_named_behind_the_answers_before_it(run: Run, model: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    lines = [json.dumps({"text": TEXTS[number % 12]}) for number in range(3000)]
    lines[2500] = '{"text": '
    rows.write_text("\n".join(lines))
    result = run("predict", model, rows)
    assert result.code == 1
    assert [row["row"] for row in result.rows()] == list(range(2048))
    assert result.err.count("\n") == 1
    assert "rows.jsonl, line 2501" in result.err


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_memory_stays_the_same_however_long_a_file_is(tiny: Tiny, tmp_path: Path) -> None:
    export(MaskMatcher.from_pretrained(tiny("bert"), LABELS), tmp_path / "export")
    code = (
        "import re, sys\n"
        "from pathlib import Path\n"
        "from maskmatch.cli import main\n"
        "sys.argv[:1] = ['maskmatch', 'predict']\n"
        "sys.stdout = open('/dev/null', 'w')\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    peak = re.search(r'VmHWM:\\s+(\\d+) kB', Path('/proc/self/status').read_text())[1]\n"
        "    sys.stderr.write(f'peak {peak}')\n"
    )
    peaks = []
    for rows in (5_000, 20_000):
        path = tmp_path / f"{rows}.jsonl"
        line = json.dumps({"text": "where is my refund", "x": "y" * 2000})
        path.write_text(f"{line}\n" * rows)
        result = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "export"), str(path)],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        peaks.append(int(result.stderr.rpartition("peak ")[2]))
    assert peaks[1] - peaks[0] < 12_000  # kilobytes; the rows that the longer file has more are 30 megabytes
