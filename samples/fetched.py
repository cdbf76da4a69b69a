"""Files that others built, fetched by name with pip and apt-get, each once, into a folder that is kept."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from rocwheel_samples import MissingError
from rocwright.home import Home
from rocwright.sources.bases.tools import Tools
from rocwright.sources.debian import DebianArchive

FOLDER = Path(os.environ.get("ROCWRIGHT_TEST_HOME") or Home.default().path) / "test-downloads"
"""Where they lie: for all runs on a machine."""


PYTHON = "311"
PLATFORMS = (
    *(f"manylinux_2_{minor}_x86_64" for minor in (34, 31, 28, 27, 24, 17)),
    *(f"manylinux{old}_x86_64" for old in (2014, 2010, 1)),
)
"""What the wheels are for, whatever runs the tests."""


def real_wheel(
    name: str, version: str, *, python: str = "311", platform: str = "manylinux_2_34_x86_64"
) -> Path:
    """The wheel of that name and version, as pip finds it; raises MissingError where it cannot be fetched."""
    platforms = [f"--platform={one}" for one in PLATFORMS]
    options = ["--no-deps", "--only-binary=:all:", f"--python-version={PYTHON}", *platforms]

    def download(folder: Path) -> str:
        words = [sys.executable, "-m", "pip", "download", "-q", *options, f"{name}=={version}"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
        return "" if done.returncode == 0 else done.stderr

    return _fetched(f"{name}-{version}", download, "*.whl")


def debian_package(name: str, suite: str = "sid") -> Path:
    """The .deb of that name in a suite, as apt-get finds it; raises MissingError where there is none."""

    def download(folder: Path) -> str:
        done = _archive_of(suite).apt("apt-get", "download", "-q", name, files=folder)
        return "" if done.ok else done.stderr

    return _fetched(f"{suite}-{name}", download, "*.deb")


@cache
def _archive_of(suite: str) -> DebianArchive:
    """The archive with the newest package lists of a suite, fetched once a run."""
    archive = DebianArchive(Tools(Home(FOLDER)), suite, "amd64")
    archive.refresh()
    return archive


def _fetched(key: str, download: Callable[[Path], str], pattern: str) -> Path:
    folder = FOLDER / key
    if not any(folder.glob(pattern)):
        FOLDER.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER) as temporary:
            if problem := download(Path(temporary)):
                raise MissingError(f"{key}: {problem[-2000:]}")
            (found,) = Path(temporary).glob(pattern)
            folder.mkdir(exist_ok=True)
            found.rename(folder / found.name)  # another process may have been quicker: the same file
    (found,) = folder.glob(pattern)
    return found
