"""The torture campaign in short, and proof that each of its checks can fail."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
import torch

from maskmatch import MaskMatcher
from maskmatch_lab.torture import company, folders, kills, power_loss, prompts, readers
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
    "power-loss": 0.05,
    "full-disk": 0.05,
    "editors": 0.05,
    "threads": 0.05,
    "forks": 0.04,
    "growth": 0.2,
    "same-weights": 0.05,
    "conformance": 0.04,
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


def test_growth_is_found(material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[bytearray] = []
    real = company.load
    monkeypatch.setattr(company, "load", lambda folder: kept.append(bytearray(b"x" * 10**7)) or real(folder))
    assert any("grown" in each for each in failures(company.growth, material, 60))


def test_a_part_that_cannot_run_says_why(material: Material) -> None:
    def absent(material: Material, tally: Any) -> None:
        raise SkippedError("there is no such thing here")

    found = short(Part("absent", "", 1, absent), material, 1.0)
    assert found["skipped"] == "there is no such thing here"
    assert found["tries"] == 0


def test_a_part_stops_when_its_time_is_over(material: Material) -> None:
    found = run_part(PARTS["data-files"], material, scale=1.0, seed=0, seconds=0.2)
    assert 0 < found["tries"] < PARTS["data-files"].tries
