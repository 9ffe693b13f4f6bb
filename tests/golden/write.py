"""Write the golden folders of this version: ``python -m golden.write VERSION``, with tests/ on PYTHONPATH.

Folders of earlier versions are never written again: they show that this version still reads them.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from golden.cases import CASES, NEW_CASES, Case
from maskmatch import ExportedMatcher, MaskMatcher, export

HERE = Path(__file__).parent
ANSWERS = "answers.json"


def answers(matcher: Any, asked: list[Any]) -> dict[str, Any]:
    """What a classifier answers: its probabilities, and the best labels."""
    return {
        "texts": asked,
        "probabilities": np.asarray(matcher.predict_proba(asked), dtype=np.float64).tolist(),
        "best": [str(label) for label in matcher.predict(asked)],
        "processor": torch.backends.cpu.get_cpu_capability(),
    }


def write_case(name: str, case: Case, target: Path, scratch: Path) -> None:
    """Save a classifier and its exports, and what they answer once they are loaded again."""
    matcher = case.make(scratch)
    folder = matcher.save_pretrained(target / name)
    loaded = MaskMatcher.from_pretrained(folder)
    np.testing.assert_allclose(loaded.predict_proba(case.asked), matcher.predict_proba(case.asked), atol=1e-6)
    _keep(folder, answers(loaded, case.asked))
    for kind in case.exports:
        exported = target / f"{name}.{kind}"
        export(loaded, exported, int8=kind == "int8")
        _keep(exported, answers(ExportedMatcher.from_pretrained(exported), case.asked))


def _keep(folder: Path, found: dict[str, Any]) -> None:
    (folder / ANSWERS).write_text(json.dumps(found, ensure_ascii=False) + "\n", encoding="utf-8")


def main(version: str) -> None:
    """Write the cases that came with a format; or all cases, under another name."""
    target = HERE / version
    if target.exists():
        raise SystemExit(f"{target} is there already; golden folders are written once.")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        later = {name: case for cases in NEW_CASES.values() for name, case in cases.items()}
        for name, case in NEW_CASES.get(version, {**CASES, **later}).items():
            write_case(name, case, work / "folders", work)
        for path in (work / "folders").rglob("*.json"):  # encoders are called by a name, not by a scratch folder
            path.write_text(path.read_text(encoding="utf-8").replace(f"{work}/", ""), encoding="utf-8")
        for path in (work / "folders").rglob("README.md"):
            path.write_text(path.read_text(encoding="utf-8").replace(f"{work}/", ""), encoding="utf-8")
        (work / "folders").rename(target)


if __name__ == "__main__":
    main(sys.argv[1])
