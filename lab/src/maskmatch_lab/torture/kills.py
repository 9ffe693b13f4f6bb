"""Kills: at every step that writes, and at random times. The old or the new content is there, whole."""

from __future__ import annotations

import os
import shutil
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch import MaskMatcher, MaskMatchError, export
from maskmatch.files import write_text
from maskmatch_lab.torture.material import A_LITTLE, LABELS, TEXTS, TRUTH, load, same
from maskmatch_lab.torture.processes import WritePoints, forked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from maskmatch_lab.torture.campaign import Tally
    from maskmatch_lab.torture.material import Material

NEW = [*LABELS, "parcel"]
TRAINING: dict[str, Any] = {**A_LITTLE, "epochs": 6}


@dataclass(frozen=True)
class Action:
    """Something that replaces a folder or a file.

    Attributes:
        name: What it is called.
        prepare: Writes the old content, and returns its place.
        act: Replaces it by the new content.
        content: Identifies the content: "old" or "new".
    """

    name: str
    prepare: Callable[[Path], Path]
    act: Callable[[Path], None]
    content: Callable[[Path], str]


def kills(material: Material, tally: Tally) -> None:
    """Kills while classifiers, exports and files are replaced."""
    every = list(actions(material))
    for action in every:
        room = material.room("kills")
        steps, seconds = _steps(action, action.prepare(room))
        tally.figures[f"write points, {action.name}"] = steps
        points = _points(steps, tally.share(1 / len(every)))
        for point, random in zip(points, tally.trials(len(points)), strict=False):
            room = material.room("kills")
            place = action.prepare(room)
            with tally.guarded(f"{action.name}, killed {'at random' if point is None else f'at step {point}'}"):
                late = None if point is not None else random.uniform(0, 1.2 * seconds)
                code = forked(lambda: _until(action, place, point), kill_after=late)  # noqa: B023
                _check(action, place, "finished" if code == 0 else "killed", tally)


def killed_training(material: Material, tally: Tally) -> None:
    """Training that is killed and resumed ends with the weights of training that was not."""
    encoder = material.encoder
    room = material.room("training")

    def train(folder: Path, resume: bool) -> None:
        matcher = MaskMatcher.from_pretrained(encoder, LABELS, verbose=False)
        matcher.fit(TEXTS, TRUTH, **TRAINING, checkpoints=folder / "checkpoints", resume=resume)
        write_text(folder / "weights.txt", weights_digest(matcher))

    def work(folder: Path, resume: bool) -> Callable[[], None]:
        return lambda: train(folder, resume)

    started = time.monotonic()
    if forked(work(room / "whole", False)) != 0:
        tally.fail("training fails without a kill")
        return
    seconds = time.monotonic() - started
    expected = (room / "whole" / "weights.txt").read_text()
    for random in tally.trials():
        folder = room / "killed"
        shutil.rmtree(folder, ignore_errors=True)
        with tally.guarded("training, killed and resumed"):
            code = forked(work(folder, False), kill_after=random.uniform(0.2, 1.0) * seconds)
            kept = (folder / "checkpoints").exists()
            if forked(work(folder, kept)) != 0:
                tally.fail(f"it cannot go on after a kill (exit code {code})")
                continue
            if (folder / "weights.txt").read_text() != expected:
                tally.fail("other weights after a kill")
            tally.ended("killed" if code else "finished before the kill")


def weights_digest(matcher: MaskMatcher) -> str:
    """A digest of all weights of a classifier."""
    import hashlib

    digest = hashlib.sha256()
    for _, tensor in sorted(matcher.model.state_dict().items()):
        digest.update(np.ascontiguousarray(tensor.detach().cpu().numpy()).tobytes())
    return digest.hexdigest()


def actions(material: Material) -> Iterator[Action]:
    """All that replaces a folder or a file."""
    old, new = material.matcher(), material.matcher(NEW)
    answers = {"old": old.predict_proba(TEXTS), "new": new.predict_proba(TEXTS)}

    def content(place: Path) -> str:
        found = load(place).predict_proba(TEXTS)
        return next((name for name, expected in answers.items() if same(found, expected)), "something else")

    def saved(room: Path) -> Path:
        return old.save_pretrained(room / "model")

    def exported(room: Path) -> Path:
        export(old, room / "model")
        return room / "model"

    def edit(place: Path) -> None:
        with MaskMatcher.editing(place, verbose=False) as matcher:
            matcher.add_labels(["parcel"])

    def written(room: Path) -> Path:
        write_text(room / "report.json", "old" * 1000)
        return room / "report.json"

    def text(place: Path) -> str:
        found = place.read_text()
        return found[:3] if found in ("old" * 1000, "new" * 1000) else "something else"

    yield Action("save", saved, lambda place: _done(new.save_pretrained(place, overwrite=True)), content)
    yield Action("edit", saved, edit, content)
    yield Action("export", exported, lambda place: _done(export(new, place)), content)
    yield Action("text file", written, lambda place: write_text(place, "new" * 1000), text)


def _points(steps: int, tries: int) -> list[int | None]:
    """Where to kill: at every step that writes, then at random times (None); a few of both if there are few tries.

    >>> _points(3, 5)
    [0, 1, 2, None, None]
    >>> _points(100, 4)
    [0, 50, None, None]
    """
    if tries >= steps:
        return [*range(steps), *[None] * (tries - steps)]
    some = max(1, tries // 2)
    return [*range(0, steps, -(-steps // some)), *[None] * (tries - some)]


def _done(_: object) -> None:
    """Nothing more to do."""


def _steps(action: Action, place: Path) -> tuple[int, float]:
    """How many steps of an action write, and how long it takes."""
    report = place.parent / "steps"
    started = time.monotonic()

    def count() -> None:
        steps = 0

        def step(_: str) -> None:
            nonlocal steps
            steps += 1

        WritePoints(step)
        action.act(place)
        report.write_text(str(steps))

    if forked(count) != 0:
        raise MaskMatchError(f"{action.name} fails without a kill")
    return int(report.read_text()), time.monotonic() - started


def _until(action: Action, place: Path, point: int | None) -> None:
    """Act until a step that writes, and die there."""
    steps = -1

    def step(_: str) -> None:
        nonlocal steps
        steps += 1
        if steps == point:
            os.kill(os.getpid(), signal.SIGKILL)

    if point is not None:
        WritePoints(step)
    action.act(place)


def _check(action: Action, place: Path, how: str, tally: Tally) -> None:
    """The content is old or new, it can be replaced again, and nothing is left beside it."""
    found = action.content(place)
    if found not in ("old", "new") or (how == "finished" and found != "new"):
        tally.fail(f"{action.name}, {how}: {found}")
        return
    if place.is_dir():  # files that killed writers of single files left are removed by nobody: they are small
        action.act(place) if found == "old" else load(place)
        left = [path.name for path in place.parent.iterdir() if path != place and found == "old"]
        if left:
            tally.fail(f"{action.name}, {how}: left behind {left}")
    tally.ended(f"{how}, {found} content")
