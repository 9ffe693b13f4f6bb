"""Atomic writes: a folder or a file is replaced completely, or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from maskmatch.errors import MaskMatchError
from maskmatch.files import recover, write_folder, write_text


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def old_folder(parent: Path) -> Path:
    folder = parent / "model"
    (folder / "notes").mkdir(parents=True)
    (folder / "weights").write_text("old")
    (folder / "stale").write_text("old")
    (folder / "mine.txt").write_text("the user's")
    (folder / "notes" / "deep.txt").write_text("the user's")
    return folder


def save(folder: Path) -> None:
    with write_folder(folder, ours=["weights", "stale"]) as scratch:
        (scratch / "weights").write_text("new")
        (scratch / "sub").mkdir()
        (scratch / "sub" / "file").write_text("new")


def test_new_folder_is_created_with_its_parents(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    save(folder)
    assert contents(folder) == {"weights": "new", "sub/file": "new"}
    assert [path.name for path in folder.parent.iterdir()] == ["b"], "no scratch folder is left"


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        save(tmp_path / "model")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o755


def assert_new_with_user_files(folder: Path) -> None:
    assert contents(folder) == {
        "weights": "new",
        "sub/file": "new",
        "mine.txt": "the user's",
        "notes/deep.txt": "the user's",
    }
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_user_files_are_kept_and_ours_are_replaced(tmp_path: Path) -> None:
    folder = old_folder(tmp_path)
    save(folder)
    assert_new_with_user_files(folder)


def test_new_file_replaces_a_user_file_of_the_same_name(tmp_path: Path) -> None:
    folder = old_folder(tmp_path)
    with write_folder(folder) as scratch:
        (scratch / "mine.txt").write_text("new")
    assert contents(folder)["mine.txt"] == "new"
    assert contents(folder)["weights"] == "old"


def test_symbolic_links_of_the_user_are_kept(tmp_path: Path) -> None:
    folder = old_folder(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (folder / "to-folder").symlink_to("../elsewhere")
    (folder / "to-nothing").symlink_to("nowhere")
    save(folder)
    assert (folder / "to-folder").readlink() == Path("../elsewhere")
    assert (folder / "to-nothing").readlink() == Path("nowhere")
    assert contents(folder)["weights"] == "new"


def test_symbolic_link_to_the_folder_points_to_the_new_one(tmp_path: Path) -> None:
    folder = old_folder(tmp_path / "disk")
    link = tmp_path / "link"
    link.symlink_to(folder)
    for _ in range(2):
        save(link)
        assert link.is_symlink()
        assert contents(folder)["weights"] == "new"
        assert contents(folder)["mine.txt"] == "the user's"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "link"]
    assert [path.name for path in (tmp_path / "disk").iterdir()] == ["model"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MaskMatchError])
def test_failure_leaves_the_previous_content(tmp_path: Path, error: type[BaseException]) -> None:
    folder = old_folder(tmp_path)
    before = contents(folder)

    def fail() -> None:
        with write_folder(folder, ours=["weights"]) as scratch:
            (scratch / "weights").write_text("half")
            raise error("in the middle")

    with pytest.raises(error, match="in the middle"):
        fail()
    assert contents(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_full_disk_raises_one_sentence(tmp_path: Path) -> None:
    folder = old_folder(tmp_path)
    before = contents(folder)

    def fail() -> None:
        with write_folder(folder):
            raise OSError(28, "No space left on device")

    with pytest.raises(MaskMatchError, match="No space left on device; the previous content is unchanged"):
        fail()
    assert contents(folder) == before


def test_folder_that_cannot_be_created_raises(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(MaskMatchError, match="cannot be written"):
        save(file / "model")
    with pytest.raises(MaskMatchError, match="could not be written"):
        save(file)
    assert file.read_text() == "x"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def fail_second_rename(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Make the rename from the scratch folder to the target fail, on a system that cannot swap in one step."""
    rename = Path.rename
    monkeypatch.setattr("maskmatch.files.writing._exchange", lambda one, other: False)

    def failing(self: Path, target: Path) -> Path:
        if self.name.endswith(".writing"):
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)


def test_failed_rename_restores_the_old_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = old_folder(tmp_path)
    before = contents(folder)
    with monkeypatch.context() as patch:
        fail_second_rename(patch, OSError("no"))
        with pytest.raises(MaskMatchError, match="could not be written: no"):
            save(folder)
    assert contents(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_an_interruption_restores_the_old_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = old_folder(tmp_path)
    before = contents(folder)
    with monkeypatch.context() as patch:
        fail_second_rename(patch, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            save(folder)
    assert contents(folder) == before


KILLED_BETWEEN_RENAMES = """
import os, sys
from pathlib import Path
from maskmatch.files import writing as files
rename = Path.rename
def killed(self, target):
    if self.name.endswith(".writing"):
        os.kill(os.getpid(), 9)
    return rename(self, target)
Path.rename = killed
files._exchange = lambda one, other: False
with files.write_folder(Path(sys.argv[1])) as scratch:
    (scratch / "weights").write_text("new")
"""


def crashed(parent: Path) -> Path:
    """A folder whose process was killed between the two renames."""
    folder = old_folder(parent)
    subprocess.run([sys.executable, "-c", KILLED_BETWEEN_RENAMES, str(folder)], check=False, timeout=60)
    assert not folder.exists()
    return folder


def test_recover_after_a_crash_between_the_renames(tmp_path: Path) -> None:
    folder = crashed(tmp_path)
    recover(folder)
    assert contents(folder) == {
        "weights": "old",
        "stale": "old",
        "mine.txt": "the user's",
        "notes/deep.txt": "the user's",
    }
    recover(folder)
    save(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_saving_after_a_crash_keeps_user_files(tmp_path: Path) -> None:
    folder = crashed(tmp_path)
    save(folder)
    assert_new_with_user_files(folder)


def test_a_folder_that_the_user_deleted_does_not_come_back(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    (tmp_path / ".model.previous").mkdir()  # of a process that was killed after its swap
    recover(folder)
    assert not folder.exists()


def test_a_reader_always_finds_a_whole_folder(tmp_path: Path) -> None:
    """Two folders are swapped in one step where the system can."""
    folder = tmp_path / "model"
    save(folder)
    stopped = threading.Event()
    missing = []

    def read() -> None:
        while not stopped.is_set():
            if not (folder / "weights").exists():
                missing.append(1)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(50):
        save(folder)
    stopped.set()
    reader.join()
    if sys.platform == "linux":
        assert not missing


def test_a_folder_is_on_the_disk_before_it_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    sync = os.fsync

    def note(file: int) -> None:
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{file}")))
        sync(file)

    monkeypatch.setattr(os, "fsync", note)
    save(tmp_path / "model")
    assert "weights" in synced[:-2]
    assert synced[-2].endswith(".writing")  # the list of its files
    assert synced[-1] == tmp_path.name  # its new name


def test_recover_without_a_folder_does_nothing(tmp_path: Path) -> None:
    recover(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_relative_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save(Path("model"))
    assert contents(tmp_path / "model")["weights"] == "new"


class TestAbandonedScratchFolders:
    """Scratch folders of processes that were killed while saving."""

    def save_and_kill(self, folder: Path) -> None:
        code = (
            "import os, sys\nfrom pathlib import Path\nfrom maskmatch.files import write_folder\n"
            "with write_folder(Path(sys.argv[1])) as scratch:\n"
            "    (scratch / 'weights').write_text('half')\n"
            "    os.kill(os.getpid(), 9)\n"
        )
        subprocess.run([sys.executable, "-c", code, str(folder)], check=False, timeout=60)

    def test_next_save_removes_them(self, tmp_path: Path) -> None:
        folder = tmp_path / "model[1]"
        self.save_and_kill(folder)
        assert len(list(tmp_path.glob("*.writing"))) == 1
        save(folder)
        assert [path.name for path in tmp_path.iterdir()] == ["model[1]"]

    def test_folder_in_use_is_kept(self, tmp_path: Path) -> None:
        folder = tmp_path / "model"
        with write_folder(folder) as other:
            (other / "weights").write_text("mine")
            save(folder)
            assert (other / "weights").read_text() == "mine"

    def test_folders_of_other_machines_are_kept_for_a_day(self, tmp_path: Path) -> None:
        fresh, old, foreign = (
            tmp_path / name
            for name in (".model.a.elsewhere-1.writing", ".model.b.elsewhere-1.writing", ".other.c.elsewhere-1.writing")
        )
        for path in (fresh, old, foreign):
            path.mkdir()
        for path in (old, foreign):
            os.utime(path, (0, 0))
        save(tmp_path / "model")
        assert (fresh.exists(), old.exists(), foreign.exists()) == (True, False, True)


class TestFiles:
    def test_file_is_written_with_its_parents_and_replaced(self, tmp_path: Path) -> None:
        path = tmp_path / "a" / "b.txt"
        for text in ("first \U0001f642\n", "second"):
            write_text(path, text)
            assert path.read_bytes() == text.encode()
        assert list(path.parent.iterdir()) == [path]

    def test_characters_without_a_utf_8_form(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        write_text(path, "old")
        with pytest.raises(UnicodeEncodeError):
            write_text(path, "half \ud83d")
        assert path.read_text() == "old"
        write_text(path, "half \ud83d", errors="replace")
        assert path.read_text() == "half ?"
        assert list(tmp_path.iterdir()) == [path]

    def test_failure_keeps_the_previous_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "file"
        write_text(path, "old")

        def fail(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", fail)
            with pytest.raises(MaskMatchError, match="file cannot be written: No space left on device"):
                write_text(path, "new")
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]
