"""The torture campaign in short, and proof that its checks can fail."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from maskmatch import ExportedMatcher, MaskMatcher, MaskMatchError
from maskmatch.testing.server import ServerProcess
from maskmatch_lab.torture import company, folders, kills, power_loss, prompts, readers, serving
from maskmatch_lab.torture.campaign import Part, SkippedError, run_part
from maskmatch_lab.torture.material import Material
from maskmatch_lab.torture.parts import PARTS

if TYPE_CHECKING:
    from pathlib import Path

    from maskmatch.data import Row

torch.set_num_threads(1)

SHORT = {
    "data-files": 0.02,
    "label-files": 0.02,
    "prompts": 0.03,
    "damaged-classifiers": 0.02,
    "damaged-exports": 0.03,
    "hostile-classifiers": 0.03,
    "hostile-exports": 0.04,
    "kills": 0.05,
    "killed-training": 0.04,
    "power-loss": 0.25,
    "full-disk": 0.05,
    "editors": 0.05,
    "threads": 0.05,
    "forks": 0.04,
    "growth": 0.2,
    "same-weights": 0.05,
    "conformance": 0.04,
    "server-requests": 0.05,
    "server-traffic": 0.05,
    "server-edits": 0.05,
    "server-overload": 0.05,
    "server-label-sets": 0.01,
    "server-kills": 0.05,
    "server-stops": 0.05,
    "server-slow-clients": 0.2,
    "guided": 0.005,
}
"""The share of the tries that the suite makes."""


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    return Material(tmp_path_factory.mktemp("torture"))


def short(part: Part, material: Material, scale: float, seed: int = 1) -> dict[str, Any]:
    return run_part(part, material, scale=scale, seed=seed, seconds=120)


@pytest.mark.parametrize("name", PARTS)
def test_the_campaign_in_short(name: str, material: Material) -> None:
    found = short(PARTS[name], material, SHORT[name])
    if "skipped" in found:
        pytest.skip(found["skipped"])
    assert found["tries"] > 0
    assert not found["failures"], found["first_failures"]
    assert sum(found["outcomes"].values()) == found["tries"], "every try has an outcome"


# -- each check can fail -------------------------------------------------------------------------------------


def failures(run: Any, material: Material, tries: int) -> list[str]:
    found: list[str] = short(Part("broken", "", tries, run), material, 1.0).get("first_failures", [])
    return found


def test_a_lost_row_is_found(material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
    real = readers.read_rows

    def lossy(*arguments: Any, **options: Any) -> list[Row]:
        rows = list(real(*arguments, **options))
        return rows[:-1] if len(rows) > 1 else rows

    monkeypatch.setattr(readers, "read_rows", lossy)
    assert any("rows where a parser gives" in each for each in failures(readers.data_files, material, 200))


def test_an_untyped_exception_is_found(material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "load_labels", lambda path: dict[str, int]()["absent"])
    assert any("KeyError" in each for each in failures(readers.label_files, material, 3))


def test_a_mask_in_another_place_is_found(material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompts.Prompt, "masks", property(lambda self: 99))
    assert any("masks are not where" in each for each in failures(prompts.prompts, material, 50))


def test_a_silent_difference_is_found(material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
    real = folders.load
    monkeypatch.setattr(folders, "load", lambda folder: real(folder, verify=False))
    assert any("other answers" in each for each in failures(folders.damaged_exports, material, 150))


def test_a_save_in_place_is_found_by_kills_and_power_loss(material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text file that is written without a scratch file and a sync."""

    def careless(path: Path, text: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text[:1000])
            os.utime(path)  # a step that a kill can hit
            file.write(text[1000:])

    monkeypatch.setattr(kills, "write_text", careless)
    real = kills.actions
    monkeypatch.setattr(
        kills, "actions", lambda material: [each for each in real(material) if each.name == "text file"]
    )
    monkeypatch.setattr(power_loss, "actions", kills.actions)
    assert any("something else" in each for each in failures(kills.kills, material, 20))
    assert any("power lost" in each for each in failures(power_loss.power_loss, material, 100))


def test_a_folder_that_is_not_synced_is_found(material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maskmatch.files.writing.sync_folder", lambda folder: None)
    real = kills.actions
    monkeypatch.setattr(power_loss, "actions", lambda material: [next(iter(real(material)))])
    found = failures(power_loss.power_loss, material, 400)
    assert any("unreadable" in each for each in found)


def test_a_lost_edit_is_found(material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(place: Path, name: str, go: float) -> Any:
        def edit() -> None:
            matcher = MaskMatcher.from_pretrained(place, verbose=False)
            company.time.sleep(0.3)  # so that both load before one of them saves
            matcher.add_labels([name]).save_pretrained(place, overwrite=True)

        return edit

    monkeypatch.setattr(company, "_editor", careless)
    assert any("lost" in each for each in failures(company.editors, material, 2))


def test_a_failure_that_is_no_kill_is_found(material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(action: Any, place: Path, point: int | None) -> None:
        raise RuntimeError("the action fails by itself")

    monkeypatch.setattr(kills, "_until", fail)
    assert any("exit code 1" in each for each in failures(kills.kills, material, 4))


def test_other_weights_after_a_kill_are_found(material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kills, "weights_digest", lambda matcher: str(os.getpid()))
    assert any("other weights" in each for each in failures(kills.killed_training, material, 1))


def test_other_weights_with_the_same_seed_are_found(material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter(range(9))
    monkeypatch.setattr(company, "weights_digest", lambda matcher: str(next(numbers)))
    assert any("other weights" in each for each in failures(company.same_weights, material, 1))


def test_an_editor_that_does_nothing_is_found(material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any, labels: Any) -> Any:
        raise ValueError("no edits")

    monkeypatch.setattr(MaskMatcher, "add_labels", fail)
    monkeypatch.setattr(threading, "excepthook", lambda arguments: None)
    assert any("no label was edited" in each for each in failures(company.threads, material, 20))


def test_a_mixture_of_label_sets_is_found(material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
    real = MaskMatcher.top_k

    def mixed(self: MaskMatcher, texts: Any, k: int) -> Any:
        """Right in the main thread, which computes what is expected; wrong in the others."""
        found = real(self, texts, k)
        if threading.current_thread() is threading.main_thread():
            return found
        return [[(label, value / 2) for label, value in pairs] for pairs in found]

    monkeypatch.setattr(MaskMatcher, "top_k", mixed)
    assert failures(company.threads, material, 20)


def test_a_fork_with_other_answers_is_found(material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(company, "same", lambda found, expected: False)
    assert any("exit code 1" in each for each in failures(company.forks, material, 2))


def test_a_full_disk_that_goes_unnoticed_is_found(material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(company.resource, "setrlimit", lambda *_: company.sys.exit(0))
    real = company.actions

    def broken(material: Material) -> list[Any]:
        return [replace(each, content=lambda _: "new") for each in real(material)]

    monkeypatch.setattr(company, "actions", broken)
    assert any("exit code 0, new content" in each for each in failures(company.full_disk, material, 2))


def test_wrong_content_that_our_code_stumbles_over_is_found(
    material: Material, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumble(*_: Any, **__: Any) -> Any:
        try:
            exec(compile("None.nothing", "/maskmatch/file.py", "exec"))
        except AttributeError as error:
            raise MaskMatchError("could not be loaded, it is probably damaged") from error

    monkeypatch.setattr(folders, "load", stumble)
    assert any("could not be loaded" in each for each in failures(folders.hostile_exports, material, 2))


def test_growth_is_found(material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[bytearray] = []
    real = company.load
    monkeypatch.setattr(company, "load", lambda folder: kept.append(bytearray(b"x" * 10**7)) or real(folder))
    assert any("grown" in each for each in failures(company.growth, material, 60))


def test_classifiers_that_stay_alive_are_found(material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    real = company.load
    monkeypatch.setattr(company, "load", lambda folder: kept.append(real(folder)))
    assert any("classifiers" in each for each in failures(company.growth, material, 60))


def test_a_part_that_breaks_off_is_a_failure(material: Material) -> None:
    def broken(material: Material, tally: Any) -> None:
        raise RuntimeError("broken")

    assert any("broke off" in each for each in failures(broken, material, 1))


def test_a_part_that_cannot_run_says_why(material: Material) -> None:
    def absent(material: Material, tally: Any) -> None:
        raise SkippedError("there is no such thing here")

    found = short(Part("absent", "", 1, absent), material, 1.0)
    assert found["skipped"] == "there is no such thing here"
    assert found["tries"] == 0


def test_a_part_stops_when_its_time_is_over(material: Material) -> None:
    found = run_part(PARTS["data-files"], material, scale=1.0, seed=0, seconds=0.2)
    assert 0 < found["tries"] < found["planned"] == PARTS["data-files"].tries
    assert any("its time was over" in each for each in found["first_failures"])


class TestTheServersPartsCanFail:
    def test_answers_of_other_texts_are_noticed(self, material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
        top_k = ExportedMatcher.top_k
        monkeypatch.setattr(ExportedMatcher, "top_k", lambda self, texts, k: top_k(self, [*texts[1:], texts[0]], k))
        assert short(PARTS["server-traffic"], material, 0.005)["failures"]
        assert short(PARTS["server-edits"], material, 0.005)["failures"]

    def test_growth_is_noticed(self, material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(serving, "MOST_GROWTH_MB", -1000.0)
        for name in ("server-overload", "server-label-sets"):
            assert "grown" in str(short(PARTS[name], material, 0.005)["first_failures"])

    def test_a_worker_that_stays_away_is_noticed(self, material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
        workers = serving._workers  # noqa: SLF001
        killed: list[int] = []

        def fewer(pid: int) -> list[int]:
            return workers(pid)[:1] if killed else workers(pid)

        kill = os.kill
        monkeypatch.setattr(serving, "_workers", fewer)
        monkeypatch.setattr(serving, "PATIENCE", 0.5)
        monkeypatch.setattr(serving.os, "kill", lambda pid, kind: (killed.append(pid), kill(pid, kind)))
        assert "not replaced" in str(short(PARTS["server-kills"], material, 0.05)["first_failures"])

    def test_a_cut_request_is_noticed(self, material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
        def killed(server: ServerProcess) -> int:
            server.process.kill()
            return server.process.wait()

        monkeypatch.setattr(ServerProcess, "stop", killed)
        assert short(PARTS["server-stops"], material, 0.05)["failures"]
