"""Several processes and threads at once: no edit is lost, no label gets the probability of another."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from maskmatch import MaskMatcher
from refusals import refusal
from toy_data import LABELS, TEXTS

Tiny = Callable[..., Path]

EDITOR = """
import sys
from maskmatch import MaskMatcher
folder, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
for number in range(count):
    with MaskMatcher.editing(folder) as matcher:
        matcher.add_labels([f"{name} {number}"])
"""


def test_two_processes_that_edit_one_folder_lose_nothing(tiny: Tiny, tmp_path: Path) -> None:
    MaskMatcher.from_pretrained(tiny("bert"), LABELS).save_pretrained(tmp_path / "model")
    editors = [
        subprocess.Popen([sys.executable, "-c", EDITOR, str(tmp_path / "model"), name, "8"]) for name in ("red", "blue")
    ]
    assert [editor.wait(120) for editor in editors] == [0, 0]
    labels = set(MaskMatcher.from_pretrained(tmp_path / "model").labels or ())
    assert labels == {*LABELS, *(f"{name} {number}" for name in ("red", "blue") for number in range(8))}
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_two_commands_that_edit_one_folder_lose_nothing(tiny: Tiny, tmp_path: Path) -> None:
    MaskMatcher.from_pretrained(tiny("bert"), LABELS).save_pretrained(tmp_path / "model")
    command = [sys.executable, "-m", "maskmatch", "labels", "add", str(tmp_path / "model")]
    editors = [subprocess.Popen([*command, name], stdout=subprocess.DEVNULL) for name in ("red", "blue")]
    assert [editor.wait(120) for editor in editors] == [0, 0]
    assert {"red", "blue"} <= set(MaskMatcher.from_pretrained(tmp_path / "model").labels or ())


def test_what_someone_else_saved_is_not_replaced_in_silence(tiny: Tiny, tmp_path: Path) -> None:
    mine = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    mine.save_pretrained(tmp_path / "model")
    with MaskMatcher.editing(tmp_path / "model") as other:
        other.add_labels(["red"])
    mine.add_labels(["blue"])
    assert "changed by someone else" in refusal(mine.save_pretrained, tmp_path / "model")
    assert "red" in (MaskMatcher.from_pretrained(tmp_path / "model").labels or ())
    mine.save_pretrained(tmp_path / "model", overwrite=True)
    mine.add_labels(["green"]).save_pretrained(tmp_path / "model")  # it knows what it saved itself
    assert set(MaskMatcher.from_pretrained(tmp_path / "model").labels or ()) == {*LABELS, "blue", "green"}


def test_an_edit_that_fails_changes_nothing(tiny: Tiny, tmp_path: Path) -> None:
    MaskMatcher.from_pretrained(tiny("bert"), LABELS).save_pretrained(tmp_path / "model")

    def edit() -> None:
        with MaskMatcher.editing(tmp_path / "model") as matcher:
            matcher.add_labels(["red"])
            matcher.add_labels(["red"])

    assert "already a label" in refusal(edit)
    assert list(MaskMatcher.from_pretrained(tmp_path / "model").labels or ()) == LABELS


def test_edits_under_threads_give_every_label_its_own_probability(tiny: Tiny) -> None:
    """Readers see the labels from before an edit or from after it, never a mixture."""
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, similarity="dot")
    alone = {
        name: dict(MaskMatcher.from_pretrained(tiny("bert"), [*LABELS, name], similarity="dot").top_k(TEXTS[:1], 9)[0])
        for name in ("red", "blue")
    }
    plain = dict(matcher.top_k(TEXTS[:1], 9)[0])
    stopped = threading.Event()
    wrong: list[object] = []

    def read() -> None:
        while not stopped.is_set():
            found = dict(matcher.top_k(TEXTS[:1], 9)[0])
            expected = next((alone[name] for name in alone if name in found), plain)
            if found.keys() != expected.keys() or any(abs(found[each] - expected[each]) > 1e-5 for each in found):
                wrong.append(found)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(60):
        name = ("red", "blue")[number % 2]
        matcher.add_labels([name])
        matcher.remove_labels([name])
    stopped.set()
    for reader in readers:
        reader.join()
    assert not wrong


def test_threads_that_edit_lose_nothing(tiny: Tiny) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)

    def add(name: str) -> None:
        for number in range(20):
            matcher.add_labels([f"{name} {number}"])

    editors = [threading.Thread(target=add, args=(name,)) for name in ("red", "blue", "green")]
    for editor in editors:
        editor.start()
    for editor in editors:
        editor.join()
    assert len(matcher.labels or ()) == len(LABELS) + 60
