"""Check that a release could go out today: build, metadata, contents, and installs into bare environments.

``make release-check`` runs it. It builds from the files that git tracks, so that nothing else gets in, and installs
with the versions of constraints.txt. It ends with one line, and with exit code 1 if something is wrong.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("build>=1.2", "twine>=6")
MOST_MEGABYTES = 300
"""How large an install for serving only may be."""

IN_WHEEL = (
    "maskmatch/py.typed",
    "maskmatch/demo/train.jsonl",
    "maskmatch/labels/background_names.txt",
    "maskmatch/model/default_calibration.json",
    "maskmatch/model/default_adapter/adapter_config.json",
    "maskmatch/model/default_adapter/adapter_model.safetensors",
    "licenses/LICENSE",
    "licenses/NOTICE",
)
IN_SDIST = (
    "LICENSE",
    "NOTICE",
    "README.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "pyproject.toml",
    "constraints.txt",
    "conftest.py",
    "deploy/requirements-serve.txt",
    "tests/storage/test_serving_only.py",
    "tools/smoke.py",
)
JUNK = re.compile(r"__pycache__|\.py[cod]$|\.DS_Store|\.orig$|\.swp$|(^|/)\.(git|venv|cache|env)(/|$)|\.log$")
MACHINE_PATH = re.compile(rb"/(?:home|Users)/(?!me/|ann/)\w+/|/root/|[A-Z]:\\Users\\")
"""Absolute paths of someone's machine; doctests make up folders of "me" and "ann"."""


class CheckError(Exception):
    """What keeps the release from going out."""


@dataclass(frozen=True)
class Release:
    """What was built."""

    version: str
    wheel: Path
    sdist: Path
    lab_wheel: Path
    lab_sdist: Path

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that are uploaded, or kept."""
        return self.wheel, self.sdist, self.lab_wheel, self.lab_sdist


@dataclass(frozen=True)
class Environment:
    """A virtual environment."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its Python."""
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def install(self, *arguments: str | Path) -> None:
        """Install packages at the versions of constraints.txt."""
        pinned: list[str | Path] = ["-c", ROOT / "constraints.txt"]
        run(self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *pinned, *arguments)

    def megabytes(self) -> float:
        """The size of what is installed, in millions of bytes, without pip itself."""
        own = ("pip", "setuptools", "_distutils_hack", "pkg_resources")
        site = Path(run(self.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
        files = (path for path in site.rglob("*") if path.is_file())
        return sum(path.stat().st_size for path in files if not path.relative_to(site).parts[0].startswith(own)) / 1e6


def run(*command: str | Path, cwd: Path | None = None, **more: str) -> str:
    """Run a command; what it prints, or CheckError with it if it fails."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**clean, "HF_HUB_OFFLINE": "1", **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        raise CheckError(f"{' '.join(str(word) for word in command)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def say(message: str) -> None:
    """Report a step."""
    print(message, flush=True)


def make_environment(folder: Path) -> Environment:
    """A new virtual environment with nothing but pip."""
    run(sys.executable, "-m", "venv", "--clear", folder)
    return Environment(folder)


def copy_sources(folder: Path) -> Path:
    """A copy of the files that git tracks, as they are now; of all files outside a repository."""
    tracked = run("git", "-C", ROOT, "ls-files", "-z").split("\0") if (ROOT / ".git").exists() else []
    if not tracked:
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".venv", "build", "dist", ".*", "*.egg-info"))
        return folder
    for name in filter(None, tracked):
        if not name.startswith("lab/results/") and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def build(sources: Path, tools: Environment, output: Path) -> Release:
    """Build source distributions, and the wheels from these."""
    run(tools.python, "-m", "build", "--outdir", output, sources)
    run(tools.python, "-m", "build", "--outdir", output, sources / "lab")
    found = re.search(r'^__version__ = "(.+)"$', (ROOT / "src/maskmatch/__init__.py").read_text(encoding="utf-8"), re.M)
    assert found
    names = [
        f"{name}-{found[1]}{end}" for name in ("maskmatch", "maskmatch_lab") for end in ("-py3-none-any.whl", ".tar.gz")
    ]
    missing = [name for name in names if not (output / name).is_file()]
    if missing:
        built = ", ".join(sorted(path.name for path in output.iterdir()))
        raise CheckError(
            f"{missing[0]} was not built, but {built}: the versions in pyproject.toml and __init__.py differ"
        )
    wheel, sdist, lab_wheel, lab_sdist = (output / name for name in names)
    return Release(found[1], wheel, sdist, lab_wheel, lab_sdist)


def check_metadata(release: Release, tools: Environment) -> None:
    """The metadata is valid, and the version has a dated section in the changelog and in CITATION.cff."""
    run(tools.python, "-m", "twine", "check", "--strict", *release.files)
    dated = rf"^## {re.escape(release.version)} - \d{{4}}-\d{{2}}-\d{{2}}$"
    if not re.search(dated, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M):
        raise CheckError(f"CHANGELOG.md has no section of {release.version} with a date")
    if f"version: {release.version}\n" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8"):
        raise CheckError(f"CITATION.cff does not name version {release.version}")
    for wheel in (release.wheel, release.lab_wheel):
        files = contents(wheel)
        metadata = next(data for name, data in files.items() if name.endswith(".dist-info/METADATA")).decode("utf-8")
        for line in re.findall(r"^Requires-Dist: (.+)$", metadata, re.M):
            requirement = line.partition(";")[0]
            if not re.search(r"<|==|\[", requirement) and not re.search(r"extra == .dev.", line):
                raise CheckError(f"{wheel.name} requires {line}, without an upper bound")


def contents(path: Path) -> dict[str, bytes]:
    """The files of a wheel or a source distribution, without the folder around them."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    with tarfile.open(path) as archive_:
        files = [member for member in archive_.getmembers() if member.isfile()]
        return {str(PurePosixPath(*PurePosixPath(each.name).parts[1:])): _read(archive_, each) for each in files}


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None
    return file.read()


def check_contents(release: Release) -> None:
    """What is needed is inside, and neither junk nor paths of this machine."""
    for path, needed in (
        (release.wheel, IN_WHEEL),
        (release.sdist, IN_SDIST),
        (release.lab_wheel, ("licenses/LICENSE",)),
    ):
        names = contents(path)
        for name in needed:
            if not any(each == name or each.endswith(f".dist-info/{name}") for each in names):
                raise CheckError(f"{path.name} does not contain {name}")
    own = {str(ROOT).encode(), str(Path.home()).encode() + b"/"}
    for path in release.files:
        for name, data in contents(path).items():
            if JUNK.search(name):
                raise CheckError(f"{path.name} contains {name}")
            found = MACHINE_PATH.search(data) or next((each for each in own if each in data), None)
            if found and not name.startswith("tests/") and name != "tools/release_check.py":
                text = found if isinstance(found, bytes) else found[0]
                raise CheckError(f"{path.name}: {name} contains the path {text.decode(errors='replace')}")
    outside = {name.partition("/")[0] for name in contents(release.wheel)} - {"maskmatch"}
    if any(not name.endswith(".dist-info") for name in outside):
        raise CheckError(f"{release.wheel.name} contains more than the package: {', '.join(sorted(outside))}")


def check_full_install(release: Release, folder: Path, scratch: Path) -> None:
    """``pip install maskmatch``: the README's first example and the smoke tests, then the extra onnx, then the lab."""
    environment = make_environment(folder)
    environment.install(release.wheel)
    say(f"   {environment.megabytes():,.0f} MB with base dependencies")
    run(environment.python, "-m", "pip", "check")
    smoke(environment, "full", scratch)
    environment.install(f"{release.wheel}[onnx]")
    smoke(environment, "exported", scratch)
    environment.install("--no-deps", release.lab_wheel)
    if "compare" not in run(environment.python, "-m", "maskmatch", "--help"):
        raise CheckError("the lab adds no commands")


def check_serving_install(release: Release, folder: Path, scratch: Path) -> float:
    """An install for serving only predicts and serves the export of the full one; its size in MB."""
    environment = make_environment(folder)
    environment.install("-r", ROOT / "deploy" / "requirements-serve.txt")
    environment.install("--no-deps", release.wheel)
    size = environment.megabytes()
    if size > MOST_MEGABYTES:
        raise CheckError(f"an install for serving only takes {size:.0f} MB, more than {MOST_MEGABYTES}")
    smoke(environment, "serving", scratch)
    return size


def smoke(environment: Environment, part: str, scratch: Path) -> None:
    """Run a part of the smoke tests, in a folder that is not the checkout."""
    printed = run(
        environment.python,
        "-I",
        ROOT / "tools" / "smoke.py",
        part,
        scratch,
        cwd=scratch,
        MASKMATCH_CACHE=str(scratch / "cache"),
    )
    for line in printed.splitlines():
        if re.match(r"(first answer|server ready) after", line):
            say(f"   {line}")


def check(folder: Path, keep: Path | None) -> str:
    """All steps; the line to end with."""
    shutil.rmtree(folder, ignore_errors=True)
    scratch = folder / "scratch"
    scratch.mkdir(parents=True)
    say("1. build source distributions and wheels")
    tools = make_environment(folder / "tools")
    run(tools.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *TOOLS)
    release = build(copy_sources(folder / "sources"), tools, folder / "dist")
    say("2. metadata")
    check_metadata(release, tools)
    say("3. contents")
    check_contents(release)
    say("4. pip install maskmatch, into a bare environment")
    check_full_install(release, folder / "full", scratch)
    say("5. an install for serving only, into another one")
    size = check_serving_install(release, folder / "serving", scratch)
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        for path in release.files:
            shutil.copy2(path, keep / path.name)
    version = ".".join(map(str, sys.version_info[:3]))
    return (
        f"maskmatch {release.version} can be released: checked with Python {version}, serving only takes {size:.0f} MB"
    )


def main() -> None:
    """Run all steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "release-check", help="where to work")
    parser.add_argument("--keep", type=Path, help="a folder to copy the distributions to, if all is well")
    options = parser.parse_args()
    start = time.perf_counter()
    try:
        line = check(options.folder.resolve(), options.keep)
    except CheckError as error:
        sys.exit(f"release-check: FAILED: {error}")
    print(f"release-check: {line} ({time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
