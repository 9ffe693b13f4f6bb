"""Check that the project's corpus holds no text and no label name of the datasets that figures are reported on.

python -m benchmarks.corpus --data FOLDER
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

from benchmarks.common import parser
from maskmatch.data import load_label_sets
from maskmatch.studies.learned_from import LEARNED_FROM

CORPUS = Path(__file__).parents[1] / "corpus" / "label_sets"


def main() -> None:
    """Print what coincides, and fail if anything does."""
    texts, names = _kept_out(Path(parser(__doc__ or "").parse_args().data))
    found = []
    for labelled in load_label_sets(CORPUS):
        found += [f"{labelled.name}: name {name!r}" for own in labelled.names for name in own if _key(name) in names]
        for own in labelled.texts:
            found += [f"{labelled.name}: text {text!r}" for text in own if _key(_text(text)) in texts]
    print("\n".join(found) or "nothing coincides")
    sys.exit(bool(found))


def _kept_out(data: Path) -> tuple[set[str], set[str]]:
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
