"""Power loss: a disk that loses what was not synced. When a save has returned, its content stays.

The simulated disk knows, per file, the content at its last fsync, and per folder, the names at its last fsync. After a
power loss it holds, for every file and folder, either that or what was written since. Three such states are tried at
every step: nothing unsynced survives; all names survive, but no unsynced content; a random mixture.
"""

from __future__ import annotations

import json
import os
import random
from typing import TYPE_CHECKING, Any

from maskmatch import MaskMatchError
from maskmatch_lab.torture.kills import Action, actions
from maskmatch_lab.torture.processes import WritePoints, forked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from maskmatch_lab.torture.campaign import Tally
    from maskmatch_lab.torture.material import Material

Tree = dict[str, Any]
"""A folder as a value: names → the content of a file, or the tree of a folder."""


def power_loss(material: Material, tally: Tally) -> None:
    """A power loss at every step of a save, an edit, an export and a text file."""
    scratch = material.room("power-loss-states")
    for action in actions(material):
        room = material.room("power-loss")
        place = action.prepare(room)
        states: list[dict[str, Any]] = []
        with tally.guarded(f"{action.name}, simulated"):
            states = _simulated(action, place, room, scratch, seed=tally.seed)
        tally.figures[f"states, {action.name}"] = len(states)
        step = max(1, len(states) // tally.share(1 / 4))
        some = {*range(0, len(states), step), *(number for number, each in enumerate(states) if each["returned"])}
        for number, _ in zip(sorted(some), tally.trials(len(some)), strict=False):
            state = states[number]
            with tally.guarded(f"{action.name}, power lost before {state['step']}, {state['kind']}"):
                _check(action, state, material.room("power-loss-after"), place.name, tally)


def _check(action: Action, state: dict[str, Any], room: Path, name: str, tally: Tally) -> None:
    _materialise(state["tree"], room)
    try:
        found = action.content(room / name)
    except (MaskMatchError, OSError) as error:
        found = f"unreadable: {error}"
    allowed = ("new",) if state["returned"] else ("old", "new")
    outcome = f"{found} content, {'after' if state['returned'] else 'before'} the save returned"
    wrong = f"{action.name}, power lost before {state['step']}, {state['kind']}: {found}"
    tally.ended(outcome, unless=None if found in allowed else wrong)


def _simulated(action: Action, place: Path, room: Path, scratch: Path, seed: int) -> list[dict[str, Any]]:
    """The states of the disk after a power loss at each step of an action."""
    report = scratch / "states.json"

    def work() -> None:
        disk = Disk(room, random.Random(seed))
        fsync = os.fsync
        WritePoints(disk.before_step)

        watched = os.fsync

        def recorded(fd: Any) -> None:
            watched(fd)
            disk.synced(fd)

        os.fsync = recorded
        action.act(place)
        os.fsync = fsync
        disk.before_step("nothing: the save has returned", returned=True)
        disk.close()
        report.write_text(json.dumps(disk.states))

    if forked(work, seconds=300) != 0:
        raise MaskMatchError(f"{action.name} fails without a power loss")
    states: list[dict[str, Any]] = json.loads(report.read_text())
    return states


class Disk:
    """What a disk would hold after a power loss, for one folder and all below it.

    Args:
        root: The folder.
        random: Draws mixtures of what survives.
    """

    def __init__(self, root: Path, random: random.Random) -> None:
        self.states: list[dict[str, Any]] = []
        self._root, self._random = root, random
        self._contents: dict[int, str] = {}  # by inode: the content at the last sync
        self._names: dict[int, dict[str, int]] = {}  # by inode of a folder: its names at the last sync
        self._folders: set[int] = set()
        self._open: dict[int, int] = {}  # an inode that is open is not given to another file
        self._seen: set[str] = set()
        for place, _, files in os.walk(root):  # what was there before is on the disk
            self._sync_folder(place)
            for name in files:
                self._sync_file(os.path.join(place, name))

    def synced(self, file: int) -> None:
        """An open file or folder was synced."""
        path = os.readlink(f"/proc/self/fd/{file}")
        if path.startswith(str(self._root)):
            self._sync_folder(path) if os.path.isdir(path) else self._sync_file(path)

    def before_step(self, step: str, *, returned: bool = False) -> None:
        """Record what a power loss would leave now."""
        current = self._walk(str(self._root))
        root = os.stat(self._root).st_ino
        survives: dict[str, Callable[[], bool]] = {
            "nothing unsynced survives": lambda: False,
            "a mixture survives": lambda: self._random.random() < 0.5,
        }
        for kind, chance in survives.items():
            self._record(step, kind, returned, self._tree(root, current, chance, chance))
        names_only = self._tree(root, current, lambda: True, lambda: False)
        self._record(step, "names survive, unsynced content does not", returned, names_only)

    def close(self) -> None:
        """Close all files."""
        for file in self._open.values():
            os.close(file)

    def _record(self, step: str, kind: str, returned: bool, tree: Tree) -> None:
        key = json.dumps([tree, returned], sort_keys=True)
        if key not in self._seen:
            self._seen.add(key)
            self.states.append({"step": step, "kind": kind, "returned": returned, "tree": tree})

    def _walk(self, place: str) -> dict[int, Any]:
        """By inode: the current names of each folder, the current content of each file."""
        found: dict[int, Any] = {}
        for folder, _, _ in os.walk(place):
            found[self._hold(folder)] = {name: self._hold(os.path.join(folder, name)) for name in os.listdir(folder)}
            for name in os.listdir(folder):
                path = os.path.join(folder, name)
                if not os.path.isdir(path):
                    found[os.stat(path).st_ino] = _content(path)
        return found

    def _tree(
        self, inode: int, current: dict[int, Any], names: Callable[[], bool], contents: Callable[[], bool]
    ) -> Tree:
        """A folder after a power loss.

        Args:
            inode: The folder.
            current: What is written, synced or not.
            names: Whether the unsynced names of a folder survive.
            contents: Whether the unsynced content of a file survives.
        """
        known = self._names.get(inode, {})
        own = current.get(inode, known) if names() else known
        tree: Tree = {}
        for name, child in own.items():
            if child in self._folders:
                tree[name] = self._tree(child, current, names, contents)
            else:
                synced = self._contents.get(child, "")  # never synced: the file has its name and no content
                tree[name] = current.get(child, synced) if contents() else synced
        return tree

    def _hold(self, path: str) -> int:
        inode = os.stat(path).st_ino
        if inode not in self._open:
            self._open[inode] = os.open(path, os.O_RDONLY)
        if os.path.isdir(path):
            self._folders.add(inode)
        return inode

    def _sync_file(self, path: str) -> None:
        self._contents[self._hold(path)] = _content(path)

    def _sync_folder(self, path: str) -> None:
        inode = self._hold(path)
        self._names[inode] = {name: self._hold(os.path.join(path, name)) for name in os.listdir(path)}


def _content(path: str) -> str:
    with open(path, "rb") as file:
        return file.read().decode("latin-1")


def _materialise(tree: Tree, folder: Path) -> None:
    for name, child in tree.items():
        if isinstance(child, dict):
            (folder / name).mkdir()
            _materialise(child, folder / name)
        else:
            (folder / name).write_bytes(child.encode("latin-1"))
