"""Many at once: editors, threads with edits, forks; and a disk that is full, and memory that must not grow."""

from __future__ import annotations

import gc
import json
import resource
import sys
import threading
import time
from itertools import pairwise
from typing import TYPE_CHECKING

from maskmatch import ExportedMatcher, MaskMatcher, MaskMatchError, export
from maskmatch.testing import ConformanceError, check_predictor
from maskmatch.testing.tiny_encoders import FAMILIES, write_tiny_encoder
from maskmatch_lab.torture.kills import actions, weights_digest
from maskmatch_lab.torture.material import A_LITTLE, LABELS, TEXTS, TRUTH, load, same
from maskmatch_lab.torture.processes import forked, start, wait

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from maskmatch_lab.torture.campaign import Tally
    from maskmatch_lab.torture.material import Material

PAIRS_PER_FOLDER = 20
GROWTH = 8 * 1024 * 1024
"""By how many bytes a process may grow in a third of the rounds: allocators keep some."""

OBJECTS = 2
"""How many more classifiers may be alive at the end than after a third of the rounds."""

MANY = TEXTS * 3


def editors(material: Material, tally: Tally) -> None:
    """Two processes that edit one folder at the same time: both edits are there."""
    place = material.home
    for number, _ in enumerate(tally.trials()):
        if number % PAIRS_PER_FOLDER == 0:
            place = material.matcher().save_pretrained(material.room("editors") / "model")
        names = f"red {number}", f"blue {number}"
        go = time.time() + 0.05
        with tally.guarded("two editors"):
            codes = [wait(child) for child in [start(_editor(place, name, go)) for name in names]]
            found = set(load(place).labels or ())
            wrong = codes != [0, 0] or not set(names) <= found
            lost = f"exit codes {codes}, lost {sorted(set(names) - found)}"
            tally.ended("both edits kept", unless=lost if wrong else None)


def _editor(place: Path, name: str, go: float) -> Callable[[], None]:
    def edit() -> None:
        time.sleep(max(0.0, go - time.time()))
        with MaskMatcher.editing(place, verbose=False) as matcher:
            matcher.add_labels([name])

    return edit


def threads(material: Material, tally: Tally) -> None:
    """Answers of several threads while another one edits labels: those of some label set, never a mixture."""
    matcher = material.matcher()
    expected = {frozenset(LABELS): dict(matcher.top_k(TEXTS[:1], 9)[0])}
    for name in ("red", "blue"):
        expected[frozenset([*LABELS, name])] = dict(material.matcher([*LABELS, name]).top_k(TEXTS[:1], 9)[0])
    stopped, lock = threading.Event(), threading.Lock()
    trials = tally.trials()

    def read() -> None:
        while True:
            with lock:
                if next(trials, None) is None:
                    return
            with tally.guarded("an answer while labels are edited"):
                found = dict(matcher.top_k(TEXTS[:1], 9)[0])
                right = expected.get(frozenset(map(str, found)))
                wrong = right is None or any(abs(found[name] - right[name]) > 1e-5 for name in right)
                with lock:
                    tally.ended("an answer of one label set", unless=f"{found}" if wrong else None)

    def edit() -> None:
        edits = 0
        while not stopped.is_set():
            name = ("red", "blue")[edits % 2]
            matcher.add_labels([name])
            matcher.remove_labels([name])
            edits += 1
            tally.figures["edits"] = 2 * edits

    readers, editor = [threading.Thread(target=read) for _ in range(3)], threading.Thread(target=edit)
    for thread in (*readers, editor):
        thread.start()
    for thread in readers:
        thread.join()
    stopped.set()
    editor.join()
    if not tally.figures.get("edits"):
        tally.fail("no label was edited")


def forks(material: Material, tally: Tally) -> None:
    """A process that is forked while threads predict answers like its parent, in few batches and in many."""
    for predictor in (material.trained, load(material.export)):
        stopped, rounds = threading.Event(), [0]

        def predict(predictor: Any = predictor, stopped: Any = stopped, rounds: list[int] = rounds) -> None:
            while not stopped.is_set():
                predictor.predict_proba(MANY, batch_size=2)
                rounds[0] += 1

        busy = [threading.Thread(target=predict) for _ in range(2)]
        for thread in busy:
            thread.start()
        try:
            for _ in tally.trials(tally.share(0.5)):
                with tally.guarded("a forked process"):
                    code = forked(_answers(predictor, material.answers))
                    wrong = f"{type(predictor).__name__}: exit code {code}"
                    tally.ended(type(predictor).__name__, unless=wrong if code else None)
        finally:
            stopped.set()
            for thread in busy:
                thread.join()
        if not rounds[0]:
            tally.fail(f"{type(predictor).__name__}: no thread has predicted meanwhile")


def _answers(predictor: Any, expected: Any) -> Callable[[], None]:
    def check() -> None:
        for size in (32, 1):  # the first is one batch, the second is many, which an export computes at once
            if not same(predictor.predict_proba(MANY, batch_size=size)[: len(TEXTS)], expected):
                raise AssertionError("other answers")

    return check


def full_disk(material: Material, tally: Tally) -> None:
    """A disk that takes no more bytes: one clear error, and the old content stays."""
    every = list(actions(material))
    for random in tally.trials():
        action = random.choice(every)
        place = action.prepare(material.room("full-disk"))
        sizes = [path.stat().st_size for path in place.iterdir()] if place.is_dir() else [place.stat().st_size]
        limit = random.randrange(round(1.3 * max(sizes)))  # sometimes it fits
        with tally.guarded(f"{action.name} with at most {limit} bytes per file"):

            def work(action: Any = action, place: Path = place, limit: int = limit) -> None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
                try:
                    action.act(place)
                except MaskMatchError:
                    return
                sys.exit(3)

            code, found = forked(work), action.content(place)
            right = (code, found) in ((0, "old"), (3, "new"))
            wrong = f"{action.name} with at most {limit} bytes per file: exit code {code}, {found} content"
            tally.ended("refused" if code == 0 else "it fits", unless=None if right else wrong)


def growth(material: Material, tally: Tally) -> None:
    """Predictions, edits and loads do not make a process grow."""
    report = material.room("growth") / "bytes"

    def work() -> None:
        matcher, sizes, alive = material.matcher(), [], []
        for number in range(tally.wanted):
            matcher.predict([f"{text} {number}" for text in TEXTS])
            matcher.add_labels([f"label {number}"])
            matcher.remove_labels([f"label {number}"])
            if number % 10 == 0:
                load(material.classifier)
            if number in (tally.wanted // 3, 2 * tally.wanted // 3, tally.wanted - 1):
                sizes.append(_resident())
                alive.append(sum(isinstance(each, MaskMatcher) for each in gc.get_objects()))
        # A leak grows in both thirds; an allocator that takes one more arena grows in one of them.
        grown = min(later - earlier for earlier, later in pairwise(sizes))
        report.write_text(json.dumps([grown, alive[-1] - alive[0]]))

    for _ in tally.trials():  # all of them in one process
        tally.ended("a round of predictions, edits and loads")
    with tally.guarded("growth"):
        code = forked(work, seconds=max(60.0, tally.deadline - time.monotonic()))
        grown, more = json.loads(report.read_text()) if code == 0 else (-1, -1)
        tally.figures["grown by MB"] = round(grown / 2**20, 1)
        tally.figures["more classifiers alive"] = more
        if code != 0 or grown > GROWTH or more > OBJECTS:
            tally.fail(f"grown by {grown} bytes and {more} classifiers, exit code {code}")


def _resident() -> int:
    """The bytes of the process' own memory, without pages of files, which a fork maps only as it uses them."""
    gc.collect()
    with open("/proc/self/status", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["RssAnon"].split()[0]) * 1024


def conformance(material: Material, tally: Tally) -> None:
    """Classifiers and exports of every encoder family pass all checks of ``maskmatch.testing``."""
    room = material.room("conformance")
    for number, _ in enumerate(tally.trials()):
        family, kind = FAMILIES[number % len(FAMILIES)], ("classifier", "trained", "export", "int8")[number // 7 % 4]
        encoder = write_tiny_encoder(family, room / family)
        matcher = MaskMatcher.from_pretrained(encoder, LABELS, verbose=False)
        predictor: Any = matcher.fit(TEXTS, TRUTH, **A_LITTLE) if kind == "trained" else matcher
        with tally.guarded(f"{kind} of {family}"):
            if kind in ("export", "int8"):
                export(matcher, room / "export", int8=kind == "int8")
                predictor = ExportedMatcher.from_pretrained(room / "export", verbose=False)
            wrong = None
            try:
                check_predictor(predictor, TEXTS, reload=_reloaded(room, kind))
            except ConformanceError as error:
                wrong = f"{kind} of {family}: {error}"
            tally.ended(kind, unless=wrong)


def _reloaded(room: Path, kind: str) -> Callable[[Any], Any]:
    """Saves a predictor and loads it again."""
    if kind in ("export", "int8"):
        return lambda predictor: ExportedMatcher.from_pretrained(room / "export", verbose=False)
    return lambda predictor: load(predictor.save_pretrained(room / "saved", overwrite=True))


def same_weights(material: Material, tally: Tally) -> None:
    """The same seed and data give the same weights."""
    expected = weights_digest(material.matcher().fit(TEXTS, TRUTH, **A_LITTLE))
    for _ in tally.trials():
        with tally.guarded("training again"):
            found = weights_digest(material.matcher().fit(TEXTS, TRUTH, **A_LITTLE))
            tally.ended("the same weights", unless=None if found == expected else "other weights")
