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
        again: Writes the new content, whatever is there.
    """

    name: str
    prepare: Callable[[Path], Path]
    act: Callable[[Path], None]
    content: Callable[[Path], str]
    again: Callable[[Path], None]


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
                _check(action, place, code, tally)


def killed_training(material: Material, tally: Tally) -> None:
    """Training that is killed and resumed ends with the weights of training that was not."""
    encoder = material.encoder
    room = material.room("training")

    def train(folder: Path, resume: bool) -> None:
        matcher = MaskMatcher.from_pretrained(encoder, LABELS, verbose=False)
        options = {**TRAINING, "checkpoints": folder / "checkpoints"}
        try:
            matcher.fit(TEXTS, TRUTH, **options, resume=resume)
        except MaskMatchError as error:
            if not resume or "no checkpoint" not in str(error):
                raise
            matcher.fit(TEXTS, TRUTH, **options)  # killed before the first checkpoint: the user starts again
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
            again = forked(work(folder, True))
            wrong = None
            if code not in (0, -signal.SIGKILL) or again != 0:
                wrong = f"exit code {code}, then {again} when resumed"
            elif (folder / "weights.txt").read_text() != expected:
                wrong = "other weights after a kill"
            tally.ended("killed" if code else "finished before the kill", unless=wrong)


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

    def save(place: Path) -> None:
        new.save_pretrained(place, overwrite=True)

    def export_new(place: Path) -> None:
        export(new, place)

    def write(place: Path) -> None:
        write_text(place, "new" * 1000)

    yield Action("save", saved, save, content, save)
    yield Action("edit", saved, edit, content, save)
    yield Action("export", exported, export_new, content, export_new)
    yield Action("text file", written, write, text, write)


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


def _check(action: Action, place: Path, code: int, tally: Tally) -> None:
    """The content is old or new, it can be replaced again, and nothing is left beside it."""
    found = action.content(place)
    outcome = f"{'finished' if code == 0 else 'killed'}, {found} content"
    if code not in (0, -signal.SIGKILL) or found not in (("new",) if code == 0 else ("old", "new")):
        tally.fail(f"{action.name}: exit code {code}, {found} content")
        return
    wrong = None
    if place.is_dir():  # what killed writers of single files left is removed by nobody: it is small
        action.again(place)
        left = [path.name for path in place.parent.iterdir() if path != place]
        if left or action.content(place) != "new":
            wrong = (
                f"{action.name}, {outcome}: written again, it has {action.content(place)} content, and beside it {left}"
            )
    tally.ended(outcome, unless=wrong)
