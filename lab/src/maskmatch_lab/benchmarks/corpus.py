"""Check that the project's corpus has no text and no label name of the datasets that results are reported on.

python -m maskmatch_lab.benchmarks.corpus --data FOLDER
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

from maskmatch.data import load_label_sets
from maskmatch_lab.benchmarks.common import parser
from maskmatch_lab.paths import CORPUS
from maskmatch_lab.studies.learned_from import LEARNED_FROM


def main() -> None:
    """Print texts and names that occur in both, and fail if there are any."""
    texts, names = _held_out(Path(parser(__doc__ or "").parse_args().data))
    shared = []
    for labelled in load_label_sets(CORPUS):
        shared += [f"{labelled.name}: name {name!r}" for own in labelled.names for name in own if _key(name) in names]
        for own in labelled.texts:
            shared += [f"{labelled.name}: text {text!r}" for text in own if _key(_text(text)) in texts]
    print("\n".join(shared) or "no text and no name in common")
    sys.exit(bool(shared))


def _held_out(data: Path) -> tuple[set[str], set[str]]:
    """The texts and label names of all datasets that the adapter is not trained on."""
    texts: set[str] = set()
    names: set[str] = set()
    for file in sorted(data.glob("*/*.jsonl.gz")):
        if file.parent.name in LEARNED_FROM:
            continue
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                texts.add(_key(row["text"]))
                names.add(_key(row["label"]))
    return texts, names


def _text(text: Any) -> str:
    return text if isinstance(text, str) else str(text["text"])


def _key(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text.lower()).strip()


if __name__ == "__main__":
    main()
