"""Test with the lowest versions of libraries that pyproject.toml promises: ``make lowest``.

It makes an environment of its own under build/, with the lowest version of each requirement, and runs the tests there.
torch has no wheels for every Python everywhere: ``--torch`` names another version, and ``--serving-only`` tries what
needs no torch, with the exports that ``make release-check`` has left.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEST_TOOLS = ("pytest>=8.2", "pytest-xdist>=3.6", "hypothesis>=6.100", "pyyaml>=6", "schemathesis>=4,<5")
TESTS = (
    "config",
    "files",
    "data",
    "labels",
    "prompts",
    "model",
    "storage",
    "prediction",
    "cli",
    "evaluation",
    "matcher",
    "serving",
    "training",
    "golden",
)
"""The rooms whose tests touch other libraries."""


def run(*command: str | Path, **environment: str) -> None:
    """Run a command; end if it fails."""
    words = [str(word) for word in command]
    print("+", " ".join(words), flush=True)
    code = subprocess.run(words, cwd=ROOT, env={**os.environ, **environment}, check=False).returncode
    if code != 0:
        sys.exit(f"lowest: FAILED: {' '.join(words)} ended with {code}")


def uv(folder: Path) -> Path:
    """uv, which knows how to choose lowest versions."""
    home = folder / "uv"
    if not home.exists():
        run(sys.executable, "-m", "venv", home)
        run(home / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv")
    return home / "bin" / "uv"


def install_lowest(
    folder: Path,
    python: str,
    source: str,
    *,
    extras: tuple[str, ...] = (),
    pins: tuple[str, ...] = (),
    tools: tuple[str, ...] = (),
) -> Path:
    """An environment with the lowest versions of what a file requires; its Python."""
    program, listed, pinned = uv(folder), folder / "lowest.txt", folder / "pins.txt"
    pinned.write_text("".join(f"{pin}\n" for pin in pins), encoding="utf-8")
    run(program, "venv", "--quiet", "--clear", "--python", python, folder / "env")
    inside = folder / "env" / "bin" / "python"
    chosen = [word for extra in extras for word in ("--extra", extra)]
    lowest = ("--resolution", "lowest-direct", "--no-build", "--python", inside, "--no-header", "--no-annotate")
    run(program, "pip", "compile", "--quiet", source, *chosen, *lowest, "-c", pinned, "-o", listed)
    run(program, "pip", "install", "--quiet", "--python", inside, "-r", listed, *tools)
    return inside


def main() -> None:
    """Make the environment and run the tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="the Python to test with")
    parser.add_argument("--torch", help="this version of torch instead of the lowest")
    parser.add_argument("--serving-only", action="store_true", help="try only what needs no torch")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "lowest", help="where to work")
    parser.add_argument(
        "--scratch", type=Path, default=ROOT / "build" / "release-check" / "scratch", help="where the exports are"
    )
    parser.add_argument("tests", nargs="*", help="folders of tests; default: those that touch other libraries")
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if options.serving_only:
        if not (options.scratch / "int8").is_dir():
            parser.error(f"there is no export in {options.scratch}: run make release-check first.")
        requirements = str(ROOT / "deploy" / "requirements-serve.txt")
        python = install_lowest(folder, options.python, requirements)
        source = Path(tempfile.mkdtemp(dir=folder)) / "source"  # so that building leaves nothing in the checkout
        shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "build", "dist", "lab", "tests", "docs"))
        run(uv(folder), "pip", "install", "--quiet", "--no-deps", "--python", python, source)
        cache = str(options.scratch.resolve() / "cache")
        run(python, "-I", ROOT / "tools" / "smoke.py", "serving", options.scratch.resolve(), MASKMATCH_CACHE=cache)
    else:
        pins = (f"torch=={options.torch}",) if options.torch else ()
        python = install_lowest(
            folder, options.python, str(ROOT / "pyproject.toml"), extras=("all",), pins=pins, tools=TEST_TOOLS
        )
        run(uv(folder), "pip", "install", "--quiet", "--no-deps", "--python", python, "-e", ROOT, "-e", ROOT / "lab")
        tests = options.tests or [f"tests/{name}" for name in TESTS]
        run(python, "-m", "pytest", "-q", "-o", "addopts=", "-n", "auto", *tests)  # without the examples in docstrings
    print("lowest: all is well with the lowest versions")


if __name__ == "__main__":
    main()
