"""The pictures of `rocwright serve` in docs/pictures, of what this machine really builds for it.

    PYTHONPATH=. .venv/bin/python tools/pictures.py FOLDER [healed | matrix HOME]

FOLDER is new, and keeps the home and the project: it takes half an hour. `healed` makes that one
alone, in some minutes; `matrix` that of what is on record in another home, of which nothing is changed.

gfx-smoke is followed through two releases, of which the second uses an instruction that one of its four
GPUs has not; two real parts of torch's third-party trees do not build as they are, and one is mended from the
page.
Nothing here runs on a GPU, and no picture says that it did.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import FloatRect, Page, sync_playwright
from tests.real.stacks import rocwright
from tests.sources.conftest import Repository, make_repository

from rocwheel_samples.trees import write_tree
from rocwright.catalog.folders import DATA
from rocwright.home import Home
from rocwright.records.model import Which
from rocwright.records.opening import open_records

PACK = """async (address) => {
  const picture = new Image();
  picture.src = address;
  await picture.decode();
  const canvas = document.createElement("canvas");
  canvas.width = picture.width;
  canvas.height = picture.height;
  canvas.getContext("2d").drawImage(picture, 0, 0);
  return canvas.toDataURL("image/webp", 0.92);
}"""
PICTURES = Path(__file__).parents[1] / "docs/pictures"
HEAL = Path(__file__).parents[1] / "tests/real/heal_catalog"
SMOKE, BASE = "gfx-smoke", "debian:sid"
# Pixels that a window is wide.
DESK, PHONE = 1180, 360

GPUS = ("gfx803", "gfx1030", "gfx1103", "gfx1151")
STACK = """\
name       = "{0}"
summary    = "{1}"
components = ["{0}"]
bases      = ["debian:sid", "debian:trixie"]
source     = "tools/pictures.py"
"""
SUMMARIES = {
    SMOKE: "The first thing to build for a new card",
    "psimd": "A header of torch's third-party trees",
    "gloo": "A part of torch's third-party trees",
}
PROJECT = f"""\
stack = "psimd"
gpu   = ["gfx1151"]
base  = "{BASE}"

[watch]
cool-down = 0

[[matrix]]
stack = "{SMOKE}"
gpu   = {json.dumps(GPUS)}
base  = "{BASE}"
"""
NEW = """
__global__ void swap_lanes(int *at) {
  at[threadIdx.x] = __builtin_amdgcn_permlane16(at[threadIdx.x], at[threadIdx.x], 0, 0, false, false);
}
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


def write_catalog(place: Place, smoke: Repository) -> None:
    recipe = (DATA / f"components/{SMOKE}.toml").read_text()
    shutil.copytree(HEAL, place.catalog)
    found = f'{{ git = "{smoke.path}", tag = "v0.1.0" }}'
    files = {f"components/{SMOKE}.toml": recipe.replace(f'{{ builtin = "{SMOKE}" }}', found)}
    files |= {f"stacks/{name}.toml": STACK.format(name, says) for name, says in SUMMARIES.items()}
    write_tree(place.catalog, files)


def release(repository: Repository, version: str, subject: str, more: str = "") -> None:
    """A release of gfx-smoke with more in one of its kernels."""
    source = DATA / "sources" / SMOKE
    shutil.copytree(source, repository.path, dirs_exist_ok=True)
    lines = (source / "pyproject.toml").read_text().replace('version = "0.1.0"', f'version = "{version}"')
    (repository.path / "pyproject.toml").write_text(lines)
    kernel = "hip/vector_add.hip"
    (repository.path / kernel).write_text((source / kernel).read_text() + more)
    repository.git("add", ".")
    repository.git("commit", "--quiet", "-m", subject)
    repository.git("tag", f"v{version}")


def build(place: Place, alone: str = "") -> None:
    """What is on record in the pictures, or in the one that is made `alone`."""
    place.project.mkdir(parents=True)
    smoke = make_repository(place.folder / f"{SMOKE}.git")
    release(smoke, "0.1.0", "The first release")
    write_catalog(place, smoke)
    (place.project / "rocwright.toml").write_text(PROJECT)
    place.run("attest", "key")
    if alone == "healed":
        place.run("build", "psimd", "--base", BASE, "--gpu", "gfx1151")
        return
    place.run("cycle")
    for stack, base in (("psimd", "debian:trixie"), ("gloo", BASE), ("psimd", BASE)):
        place.run("build", stack, "--base", base, "--gpu", "gfx1151")
    release(smoke, "0.1.1", "Swap lanes without LDS", NEW)
    place.run("cycle", "--bisect")


@contextmanager
def serving(place: Place) -> Iterator[tuple[str, str]]:
    """`rocwright serve` in the project: its address, and a token."""
    words = [sys.executable, "-m", "rocwright", "serve"]
    env = os.environ | {"ROCWRIGHT_HOME": str(place.home.path)}
    with subprocess.Popen(words, cwd=place.project, env=env, stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr
        try:
            lines = iter(child.stderr)
            found = next(filter(None, (re.search(r"(http:\S+)/enter\?token=(\S+)", line) for line in lines)))
            threading.Thread(target=list, args=(lines,), daemon=True).start()
            yield found[1], found[2]
        finally:
            child.terminate()


@contextmanager
def pages(place: Place) -> Iterator[tuple[Page, Page]]:
    """A browser's pages of the server, a light one and a dark one."""
    with serving(place) as (address, token), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
        light, dark = (browser.new_page(color_scheme=one, base_url=address) for one in schemes)
        for page in (light, dark):
            page.set_viewport_size({"width": DESK, "height": 600})
            page.set_default_timeout(600_000)
            page.goto(f"/enter?token={token}")
        yield light, dark
        browser.close()


def draw_matrix(place: Place, home: Path) -> None:
    """The matrix of what is on record in that home, as it is read, not as it may be changed."""
    place.home.path.mkdir(parents=True)
    place.project.mkdir()
    for one in home.glob("records.sqlite*"):
        shutil.copy(one, place.home.path)
    with pages(place) as (_, dark):
        take(dark, "/", "matrix", 1262)


def draw(place: Place, alone: str = "") -> None:
    """The pictures; psimd is mended meanwhile."""
    with pages(place) as (light, dark):
        with open_records(place.home) as records:
            newest = {
                one.stack: one.id for one in reversed(records.runs(Which(outcome="failed"), steps=False))
            }
            wheel = next((one.sha256 for one in records.artifacts() if one.filename.endswith(".whl")), "")
        if not alone:
            draw_builds(light, dark, newest, wheel)
        light.goto(f"/runs/{newest['psimd']}")
        light.get_by_role("button", name="Heal").click()
        light.get_by_role("button", name="Build again").wait_for()
        take(light, light.url, "healed")


def draw_builds(light: Page, dark: Page, newest: dict[str, str], wheel: str) -> None:
    """The pictures of builds that nothing changes while they are made."""
    take(light, f"/runs/{newest['psimd']}", "run")
    take(dark, f"/runs/{newest[SMOKE]}/log/{SMOKE}#first-error", "log", full=False)
    take(light, "/gpu/gfx803", "gpu")
    take(light, "/cycle", "cycle")
    light.set_viewport_size({"width": PHONE, "height": 640})
    take(light, f"/runs/{newest['psimd']}", "phone-run", 900, wide=PHONE)
    take(light, "/queue", "phone-queue", 900, wide=PHONE)
    light.set_viewport_size({"width": DESK, "height": 600})
    take(light, f"/artifacts/{wheel}?check=yes", "artifact", 830)


def take(page: Page, to: str, name: str, most: int = 0, *, full: bool = True, wide: int = DESK) -> None:
    """A picture of a page, of so many pixels of it from the top, or of what a window shows."""
    page.goto(to)
    page.wait_for_timeout(500)
    height = page.evaluate("document.querySelector('main').getBoundingClientRect().bottom + scrollY")
    clip = FloatRect(x=0, y=0, width=wide, height=min(height - 30, most or height))
    taken = page.screenshot(full_page=full, clip=clip if full else None)
    (PICTURES / f"{name}.webp").write_bytes(packed(page, taken))


def packed(page: Page, png: bytes) -> bytes:
    """A picture as WebP, which is smaller: the browser has the encoder."""
    blank = page.context.browser.new_page() if page.context.browser else page
    made: str = blank.evaluate(PACK, f"data:image/png;base64,{b64encode(png).decode()}")
    blank.close()
    return b64decode(made.partition(",")[2])


if __name__ == "__main__":
    place, alone = Place(Path(sys.argv[1]).absolute()), "".join(sys.argv[2:3])
    os.environ["XDG_CONFIG_HOME"] = str(place.folder / "config")
    if alone == "matrix":
        draw_matrix(place, Path(sys.argv[3]))
    else:
        os.environ["ROCWRIGHT_CATALOG"] = str(place.catalog)
        build(place, alone)
        draw(place, alone)
