"""A folder is written whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from maskmatch.errors import MaskMatchError
from maskmatch.whole_folder import recover, whole_folder


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


def write(folder: Path) -> None:
    with whole_folder(folder, ours=["weights", "stale"]) as scratch:
        (scratch / "weights").write_text("new")
        (scratch / "sub").mkdir()
        (scratch / "sub" / "file").write_text("new")


def test_a_new_folder_is_made_with_those_above_it(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    write(folder)
    assert contents(folder) == {"weights": "new", "sub/file": "new"}
    assert [path.name for path in folder.parent.iterdir()] == ["b"], "nothing is left over"


def test_others_may_read_it_as_far_as_the_umask_lets_them(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write(tmp_path / "model")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o755


def is_new_with_the_users_files(folder: Path) -> None:
    assert contents(folder) == {
        "weights": "new",
        "sub/file": "new",
        "mine.txt": "the user's",
        "notes/deep.txt": "the user's",
    }
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_the_users_files_are_carried_over_and_ours_are_replaced(tmp_path: Path) -> None:
    folder = old_folder(tmp_path)
    write(folder)
    is_new_with_the_users_files(folder)


def test_a_file_that_is_written_anew_wins_over_the_users(tmp_path: Path) -> None:
    folder = old_folder(tmp_path)
    with whole_folder(folder) as scratch:
        (scratch / "mine.txt").write_text("new")
    assert contents(folder)["mine.txt"] == "new"
    assert contents(folder)["weights"] == "old"


def test_links_of_the_user_stay_links(tmp_path: Path) -> None:
    folder = old_folder(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (folder / "to-folder").symlink_to("../elsewhere")
    (folder / "to-nothing").symlink_to("nowhere")
    write(folder)
    assert (folder / "to-folder").readlink() == Path("../elsewhere")
    assert (folder / "to-nothing").readlink() == Path("nowhere")
    assert contents(folder)["weights"] == "new"


def test_a_link_to_a_folder_leads_to_the_new_one(tmp_path: Path) -> None:
    folder = old_folder(tmp_path / "disk")
    link = tmp_path / "link"
    link.symlink_to(folder)
    for _ in range(2):
        write(link)
        assert link.is_symlink()
        assert contents(folder)["weights"] == "new"
        assert contents(folder)["mine.txt"] == "the user's"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "link"]
    assert [path.name for path in (tmp_path / "disk").iterdir()] == ["model"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MaskMatchError])
def test_a_failure_on_the_way_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    folder = old_folder(tmp_path)
    before = contents(folder)

    def fail() -> None:
        with whole_folder(folder, ours=["weights"]) as scratch:
            (scratch / "weights").write_text("half")
            raise error("in the middle")

    with pytest.raises(error, match="in the middle"):
        fail()
    assert contents(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_full_disk_is_told_in_a_sentence(tmp_path: Path) -> None:
    folder = old_folder(tmp_path)
    before = contents(folder)

    def fail() -> None:
        with whole_folder(folder):
            raise OSError(28, "No space left on device")

    with pytest.raises(MaskMatchError, match="No space left on device; what was there before is as it was"):
        fail()
    assert contents(folder) == before


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(MaskMatchError, match="cannot be written"):
        write(file / "model")
    with pytest.raises(MaskMatchError, match="could not be written"):
        write(file)
    assert file.read_text() == "x"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def fail_second_rename(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let the rename that puts the new folder into place fail."""
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if self.name.endswith(".writing"):
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)


def test_if_the_new_folder_cannot_be_put_into_place_the_old_one_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = old_folder(tmp_path)
    before = contents(folder)
    with monkeypatch.context() as patch:
        fail_second_rename(patch, OSError("no"))
        with pytest.raises(MaskMatchError, match="could not be written: no"):
            write(folder)
    assert contents(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def crashed(parent: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as a crash between the two renames leaves it."""
    folder = old_folder(parent)
    with monkeypatch.context() as patch:
        fail_second_rename(patch, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            write(folder)
    assert not folder.exists()
    return folder


def test_a_crash_between_the_renames_is_recovered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = crashed(tmp_path, monkeypatch)
    recover(folder)
    assert contents(folder) == {
        "weights": "old",
        "stale": "old",
        "mine.txt": "the user's",
        "notes/deep.txt": "the user's",
    }
    recover(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_writing_after_a_crash_keeps_the_users_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = crashed(tmp_path, monkeypatch)
    write(folder)
    is_new_with_the_users_files(folder)


def test_there_is_nothing_to_recover_where_nothing_was(tmp_path: Path) -> None:
    recover(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_relative_folder_is_written_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("model"))
    assert contents(tmp_path / "model")["weights"] == "new"


class TestLeftOver:
    """Scratch folders of saves that were killed."""

    def killed(self, folder: Path) -> None:
        code = (
            "import os, sys\nfrom pathlib import Path\nfrom maskmatch.whole_folder import whole_folder\n"
            "with whole_folder(Path(sys.argv[1])) as scratch:\n"
            "    (scratch / 'weights').write_text('half')\n"
            "    os.kill(os.getpid(), 9)\n"
        )
        subprocess.run([sys.executable, "-c", code, str(folder)], check=False, timeout=60)

    def test_the_next_save_removes_them(self, tmp_path: Path) -> None:
        folder = tmp_path / "model[1]"
        self.killed(folder)
        assert len(list(tmp_path.iterdir())) == 1
        write(folder)
        assert [path.name for path in tmp_path.iterdir()] == ["model[1]"]

    def test_one_that_is_being_written_stays(self, tmp_path: Path) -> None:
        folder = tmp_path / "model"
        with whole_folder(folder) as other:
            (other / "weights").write_text("mine")
            write(folder)
            assert (other / "weights").read_text() == "mine"

    def test_those_of_other_machines_stay_for_a_day(self, tmp_path: Path) -> None:
        fresh, old, foreign = (
            tmp_path / name
            for name in (".model.a.elsewhere-1.writing", ".model.b.elsewhere-1.writing", ".other.c.elsewhere-1.writing")
        )
        for path in (fresh, old, foreign):
            path.mkdir()
        for path in (old, foreign):
            os.utime(path, (0, 0))
        write(tmp_path / "model")
        assert (fresh.exists(), old.exists(), foreign.exists()) == (True, False, True)
