"""Where things lie in a checkout. Nothing else is imported here: peers read it in environments of their own."""

from pathlib import Path

LAB = Path(__file__).resolve().parents[2]
ROOT = LAB.parent
RESULTS = LAB / "results"
CORPUS = LAB / "corpus" / "label_sets"
