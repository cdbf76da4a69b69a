"""The pictures of `rocwright serve` in docs/pictures, of what this machine really builds for it.

    python -m tools.pictures FOLDER      # FOLDER keeps the home and the project; half an hour the first time

Small projects are followed through a few releases, one of which is broken, and a real one is built that fails
in a known way and is mended from the page. Nothing here runs on a GPU, and no picture says that it did.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.making import write_tree
from tests.real.stacks import rocwright
from tests.sources.conftest import Repository, make_repository

from rocwright.catalog.read import DATA
from rocwright.home import Home

HEAL = Path(__file__).parents[1] / "tests/real/heal_catalog"
SMOKE, TALLY = "gfx-smoke", "tally"
ROWS = (
    (SMOKE, ("gfx803", "gfx1030", "gfx1103", "gfx1151"), "debian:sid"),
    (TALLY, ("gfx803", "gfx1103"), "debian:trixie"),
)
STACK = """\
name = "{0}"
summary = "{1}"
components = ["{0}"]
bases = ["debian:sid", "debian:trixie"]
source = "tools/pictures.py"
"""
RECIPE = """\
name    = "tally"
summary = "Counts: a small program"
license = "MIT"
kind    = "archive"
run     = ["g++ -O2 tally.cpp -o $OUT/tally", "$OUT/tally"]
output  = [{ name = "archive", pattern = "tally" }]
system  = { build = ["c++", "cmake", "ninja", "ccache"] }
release = [{ version = "1.0.0", places = [{ git = "TALLY", tag = "v1.0.0" }], source = "tools/pictures.py" }]
"""
PROGRAM = "#include <cstdio>\nint main() { return std::printf(%s) < 0; }\n"
PROJECT = """\
stack = "psimd"
gpu   = ["gfx1151"]
base  = "debian:sid"

[watch]
cool-down = 0
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where it is made."""

    folder: Path

    @property
    def home(self) -> Home:
        return Home(self.folder / "home")

    @property
    def project(self) -> Path:
        return self.folder / "corner"

    @property
    def catalog(self) -> Path:
        return self.folder / "catalog"

    def run(self, *words: str) -> str:
        return rocwright(self.home, self.project, *words, check=False)


def write_catalog(place: Place, smoke: Repository, tally: Repository) -> None:
    recipe = (DATA / f"components/{SMOKE}.toml").read_text()
    found = f'{{ git = "{smoke.path}", tag = "v0.1.0" }}'
    shutil.copytree(HEAL, place.catalog)
    write_tree(
        place.catalog,
        {
            f"components/{SMOKE}.toml": recipe.replace(f'{{ builtin = "{SMOKE}" }}', found),
            f"components/{TALLY}.toml": RECIPE.replace("TALLY", tally.url),
            **{
                f"stacks/{name}.toml": STACK.format(name, summary)
                for name, summary in (
                    (SMOKE, "The first thing to build for a new card"),
                    (TALLY, "A small program"),
                    ("psimd", "A header of torch's third-party trees"),
                    ("gloo", "A part of torch's third-party trees"),
                )
            },
        },
    )


def release(repository: Repository, version: str) -> None:
    repository.git("add", ".")
    repository.git("commit", "--quiet", "--allow-empty", "-m", f"Release {version}")
    repository.git("tag", f"v{version}")


def smoke_release(repository: Repository, version: str, more: str = "") -> None:
    source = DATA / "sources" / SMOKE
    lines = (source / "pyproject.toml").read_text().replace('version = "0.1.0"', f'version = "{version}"')
    (repository.path / "pyproject.toml").write_text(lines)
    (repository.path / "hip/report.cpp").write_text((source / "hip/report.cpp").read_text() + more)
    release(repository, version)


def tally_release(repository: Repository, version: str, text: str) -> None:
    (repository.path / "tally.cpp").write_text(PROGRAM % text)
    release(repository, version)


def build(place: Place) -> None:
    """What is on record in the pictures."""
    place.project.mkdir(parents=True)
    smoke, tally = (make_repository(place.folder / f"{name}.git") for name in (SMOKE, TALLY))
    shutil.copytree(DATA / "sources" / SMOKE, smoke.path, dirs_exist_ok=True)
    smoke_release(smoke, "0.1.0")
    tally_release(tally, "1.0.0", '"one"')
    write_catalog(place, smoke, tally)
    rows = "".join(
        f'\n[[matrix]]\nstack = "{stack}"\ngpu   = {json.dumps(gpus)}\nbase  = "{base}"\n'
        for stack, gpus, base in ROWS
    )
    (place.project / "rocwright.toml").write_text(PROJECT + rows)
    place.run("attest", "key")
    place.run("cycle")
    for base in ("debian:trixie", "debian:sid"):
        for stack in ("gloo", "psimd"):
            place.run("build", stack, "--base", base, "--gpu", "gfx1151")
    tally_release(tally, "1.0.1", "three")
    place.run("cycle", "--bisect")


if __name__ == "__main__":
    place = Place(Path(sys.argv[1]).absolute())
    os.environ["ROCWRIGHT_CATALOG"] = str(place.catalog)
    os.environ["XDG_CONFIG_HOME"] = str(place.folder / "config")
    build(place)
