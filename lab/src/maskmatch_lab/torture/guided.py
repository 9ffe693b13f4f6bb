"""Coverage-guided fuzzing by atheris: readers, label files and prompts raise MaskMatchError or nothing.

Each target runs in a process of its own: ``python -m maskmatch_lab.torture.guided TARGET -runs=N``.
"""

from __future__ import annotations

import importlib.util
import io
import re
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from maskmatch_lab.torture.campaign import SkippedError
from maskmatch_lab.torture.readers import LABEL_FILES, bases

if TYPE_CHECKING:
    from collections.abc import Callable

    from maskmatch_lab.torture.campaign import Tally
    from maskmatch_lab.torture.material import Material

TARGETS = ("csv", "json", "jsonl", "txt", "labels", "labels.txt", "labels.json", "labels.csv", "prompt")


def guided(_: Material, tally: Tally) -> None:
    """Coverage-guided fuzzing of readers, label files and prompts."""
    if importlib.util.find_spec("atheris") is None:
        raise SkippedError("atheris is not installed: pip install 'maskmatch-lab[torture]'")
    runs = tally.share(1 / len(TARGETS))
    every = {
        **bases(),
        "labels": b"refund, card lost",
        **{f"labels.{kind}": each for kind, each in LABEL_FILES.items()},
    }
    for target in TARGETS:
        with tempfile.TemporaryDirectory() as scratch:
            (Path(scratch) / "seed").write_bytes(every.get(target, b"{text} It is about {mask}."))
            options = [f"-runs={runs}", f"-seed={tally.seed + 1}", "-max_len=400", "-timeout=5", "-rss_limit_mb=4000"]
            command = [sys.executable, "-m", "maskmatch_lab.torture.guided", target, *options, f"{scratch}/"]
            command.append(f"-artifact_prefix={scratch}/failed-")
            left = max(1.0, tally.deadline - time.monotonic())
            command.append(f"-max_total_time={left:.0f}")
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False, timeout=left + 60
            )
            made = re.findall(r"Done (\d+) runs", done.stderr)
            tally.tries += int(made[-1]) if made else 0
            tally.outcomes[target] = int(made[-1]) if made else 0
            covered = re.findall(r"cov: (\d+)", done.stderr)
            tally.figures[f"covered edges, {target}"] = int(covered[-1]) if covered else 0
            if done.returncode or not made:
                found = [path.read_bytes()[:200] for path in Path(scratch).glob("failed-*")]
                tally.fail(f"{target}: {found}: {done.stderr.strip()[-600:]}")


def _main(target: str) -> None:
    import atheris

    with atheris.instrument_imports(include=["maskmatch"]):
        from maskmatch.data import formats  # noqa: F401
        from maskmatch.labels import files  # noqa: F401
        from maskmatch.prompts import template  # noqa: F401
    atheris.Setup([sys.argv[0], *sys.argv[2:]], _target(target))
    atheris.Fuzz()


def _target(target: str) -> Callable[[bytes], None]:
    from maskmatch import MaskMatchError
    from maskmatch.data import load_examples, read_rows
    from maskmatch.labels.files import load_labels
    from maskmatch.prompts import Prompt

    home = Path(tempfile.mkdtemp())

    def labels(data: bytes) -> None:
        load_labels(data.decode("utf-8", "ignore") or "a")

    def label_file(data: bytes) -> None:
        (home / target).write_bytes(data)
        load_labels(home / target)

    def prompt(data: bytes) -> None:
        Prompt(data.decode("utf-8", "surrogateescape"))

    def rows(data: bytes) -> None:
        with suppress(MaskMatchError):
            list(read_rows(io.BytesIO(data), format=target))  # type: ignore[arg-type]
        load_examples(io.BytesIO(data), format=target, skip_bad_rows=True)  # type: ignore[arg-type]

    chosen = {"labels": labels, "prompt": prompt}.get(target, label_file if target.startswith("labels.") else rows)

    def run(data: bytes) -> None:
        with suppress(MaskMatchError):
            chosen(data)

    return run


if __name__ == "__main__":
    _main(sys.argv[1])
