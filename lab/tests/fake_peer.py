"""A peer that answers at once, run as a process like the real ones: ``fake_peer.py COUNTS``.

COUNTS is a file to which a line is added for every work that is prepared.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from maskmatch_lab.benchmarks.peers.worker import serve


class Work:
    def __init__(self, **settings):
        with Path(sys.argv[1]).open("a", encoding="utf-8") as counts:
            counts.write("prepared\n")
        self.settings = settings
        if settings.get("labels") == 666:
            raise ValueError("too many\nlabels")
        if settings.get("labels") == 13:
            os._exit(3)
        print("a library that prints")

    def run(self):
        if self.settings.get("labels") == 777:
            time.sleep(30)
        index = {"index": {"seconds": 0.5, "recall": 1.0}} if self.settings.get("search") == "approximate" else {}
        slow = {"seconds": 50.0} if self.settings.get("slow") else {}
        return {"steps": 3, "operations": 1000, **index, **slow}

    def predict(self, texts):
        names = self.settings.get("names") or ["refund"]
        return [names[0]] * len(texts)


KINDS = ("training", "step", "prediction", "search", "operations", "export", "matrix products")

if __name__ == "__main__":
    serve(dict.fromkeys(KINDS, Work), ["torch", "no-such-package"])
