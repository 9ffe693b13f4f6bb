"""Damaged saved folders and exports: refused by one clear error, or answered as before; never answered otherwise."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch import MaskMatchError
from maskmatch.storage.integrity import KEY, signed
from maskmatch_lab.torture.material import TEXTS, link_folder, load, read_json, replace_file, same
from maskmatch_lab.torture.mutations import mutated

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from maskmatch_lab.torture.campaign import Tally
    from maskmatch_lab.torture.material import Material

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3.5, 1e308, float("nan"), "", "text", "../x", [], [None], {}, {"a": 1}, "9" * 50,
)  # fmt: skip
"""What a value of a JSON file is replaced by."""


def damaged_classifiers(material: Material, tally: Tally) -> None:
    """A saved classifier with one damaged file."""
    _damaged(material, tally, material.classifier, material.other_classifier)


def damaged_exports(material: Material, tally: Tally) -> None:
    """An export with one damaged file."""
    _damaged(material, tally, material.export, material.other_export)


def hostile_classifiers(material: Material, tally: Tally) -> None:
    """A saved classifier with wrong content and right digests, or loaded without the check."""
    _hostile(material, tally, material.classifier)


def hostile_exports(material: Material, tally: Tally) -> None:
    """An export with wrong content and right digests, or loaded without the check."""
    _hostile(material, tally, material.export)


def _damaged(material: Material, tally: Tally, source: Path, other: Path) -> None:
    names = sorted(path.name for path in source.iterdir())
    room = material.room(f"damaged-{source.name}")
    for random in tally.trials():
        name = random.choice(names)
        folder = link_folder(source, room / "folder")
        damage = _damage(folder / name, other / name, random)
        with tally.guarded(f"{damage} of {name}"):
            try:
                found = load(folder).predict_proba(TEXTS)
            except MaskMatchError as error:
                named = name in str(error) or str(folder) in str(error)
                wrong = f"{damage} of {name}: the error names neither file nor folder: {error}"
                tally.ended("refused", unless=None if named else wrong)
                continue
            wrong = f"{damage} of {name}: other answers"
            tally.ended("same answers", unless=None if same(found, material.answers) else wrong)


def _damage(path: Path, other: Path, random: random.Random) -> str:
    """Damage a file; returns what was done."""
    kind = random.choice(("bytes", "bytes", "bytes", "missing", "empty", "of another folder", "value"))
    if kind == "missing":
        path.unlink()
    elif kind == "empty":
        replace_file(path, b"")
    elif kind == "of another folder" and other.exists():
        replace_file(path, other.read_bytes())
    elif kind == "value" and path.suffix == ".json":
        data = read_json(path)
        _change_value(data, random)
        replace_file(path, json.dumps(data).encode())
    else:
        kind = "bytes"
        replace_file(path, mutated(path.read_bytes(), random))
    return kind


def _hostile(material: Material, tally: Tally, source: Path) -> None:
    """Whoever can write a folder can write its digests, too: content that is wrong, in a folder that is whole."""
    own = "export.json" if (source / "export.json").exists() else "maskmatch.json"
    # A damaged graph is read by onnxruntime's own parser, whose limits are not ours.
    names = sorted(path.name for path in source.iterdir() if path.suffix in (".json", ".safetensors"))
    room = material.room(f"hostile-{source.name}")
    for random in tally.trials():
        name = random.choice([own, *names])
        folder = link_folder(source, room / "folder")
        path = folder / name
        if path.suffix == ".json":
            data = read_json(path)
            _change_value(data, random)
            content = json.dumps(data).encode()
        else:
            content = mutated(path.read_bytes(), random)
        replace_file(path, content)
        resigned = random.random() < 0.5
        if resigned:
            _sign_again(folder, own)
        with tally.guarded(f"{name} changed, {'signed again' if resigned else 'not verified'}: {content[:300]!r}"):
            try:
                found = load(folder, verify=resigned).predict_proba(TEXTS)
            except MaskMatchError as error:
                # What a parser of another library raises is a damage; what our own code stumbles over is a bug.
                bug = "probably damaged" in str(error) and _raised_by_us(error.__cause__)
                tally.ended("refused", unless=f"{name}: {error!r} from {error.__cause__!r}" if bug else None)
                continue
            wrong = len(found) != len(TEXTS) or not np.isfinite(found).all()
            tally.ended("answered", unless=f"{name}: {found}" if wrong else None)


def _raised_by_us(cause: BaseException | None) -> bool:
    """Whether an exception that became an error was raised by code of the product, not by a library or a check."""
    if cause is None or not isinstance(cause, (TypeError, AttributeError, IndexError, NameError)):
        return False
    frame = cause.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    deepest = "" if frame is None else frame.tb_frame.f_code.co_filename
    return "/maskmatch/" in deepest


def _sign_again(folder: Path, own: str) -> None:
    """Write digests that fit the files."""
    data = read_json(folder / own)
    if not isinstance(data, dict):
        return
    before = data.pop(KEY, None)
    names = [name for name in before if (folder / name).exists()] if isinstance(before, dict) else []
    replace_file(folder / own, json.dumps(signed(data, folder, own, names)).encode())


def _change_value(data: Any, random: random.Random) -> None:
    """Change, remove or rename one value somewhere in a JSON structure."""
    holders = list(_holders(data))
    if not holders:
        return
    holder, key = random.choice(holders)
    kind = random.random()
    if kind < 0.7:
        holder[key] = random.choice(VALUES)
    elif kind < 0.85 or isinstance(holder, list):
        del holder[key]
    else:
        holder[f"{key}x"] = holder.pop(key)


def _holders(data: Any) -> list[tuple[Any, Any]]:
    """All places of a JSON structure: (dict, key) and (list, position); long lists by their first and last items."""
    keys: list[Any] = list(data) if isinstance(data, dict) else []
    if isinstance(data, list):
        keys = sorted({*range(min(3, len(data))), *range(max(0, len(data) - 2), len(data))})
    return [(data, key) for key in keys] + [each for key in keys for each in _holders(data[key])]
