"""An exported build in systemd-nspawn: its root made by pacstrap or dnf, its steps run in it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from samples.project import write_catalog
from tests.real.archives import (
    Package,
    dnf_repository,
    pacman_repository,
    run,
    served,
    signing_key,
    tool,
    trusting,
    user_land,
)

from rocbase.files.atomic import write_atomic
from rocwheel_samples.trees import write_tree
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import Catalog, load_catalog
from rocwright.export.write import export
from rocwright.plan.resolve.lock import make_lock
from rocwright.plan.resolve.model import Request
from rocwright.plan.resolve.upstream import OfflineUpstream
from rocwright.sources.bases.roots import remove_tree

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="systemd-nspawn and pacstrap work as root"),
]

RECIPE = {
    "alpha": {
        "kind": "archive",
        "run": ["demo > said", "cat file said > $OUT/alpha-1.0.tar.gz"],
        "output": [{"name": "archive", "pattern": "alpha-*.tar.gz"}],
        "system": {"build": ["demo"]},
    }
}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    remove_tree(tmp_path)


def exported(base: str, place: Path) -> Path:
    """The build of a stack of one small component on a carried base, as files; without a network."""
    write_catalog(place / "catalog", RECIPE)
    shutil.copytree(DATA / "bases", place / "catalog/bases", dirs_exist_ok=True)
    told = ", ".join(f'{manager} = ["demo"]' for manager in ("apt", "dnf", "pacman"))
    write_tree(
        place / "catalog",
        {
            "system.toml": f'"demo" = {{ {told} }}\n',
            "sources/alpha/file": "the source of alpha\n",
            "stacks/tiny.toml": f'name = "tiny"\nsummary = "x"\ncomponents = ["alpha"]\nbases = ["{base}"]\n'
            'source = "x"\n',
        },
    )
    catalog: Catalog = load_catalog(place / "catalog")
    lock = make_lock(Request(stack="tiny", gpu=("gfx1151",), base=base), catalog, OfflineUpstream(), print)
    folder = place / "export"
    for name, file in export(lock, catalog, "nspawn").items():
        write_atomic(folder / name, file.data)
        (folder / name).chmod(0o755 if file.executable else 0o644)
    return folder


def built(folder: Path, **env: str) -> str:
    """Run the script; gives what the artifact holds."""
    done = subprocess.run(
        ["./build-nspawn.sh"],
        cwd=folder,
        env=os.environ | {"WORK": str(folder / "work")} | env,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return (folder / "work/artifacts/alpha-1.0.tar.gz").read_text()


def test_pacstrap_makes_the_root_of_the_day_and_the_steps_run_in_it(place: Path) -> None:
    keys = signing_key(place / "keys")
    day = place / "served/repos/2025/10/28"
    pacman_repository(day / "core/os/x86_64", "core", [user_land("base")], keys)
    pacman_repository(day / "extra/os/x86_64", "extra", [tool("demo", "2-1", "base")], keys)
    folder = exported("arch:2025-10-28", place)
    settings = folder / "base/build.conf"
    with served(place / "served") as url:
        # where the archive is, and which keys are trusted, is what a user of another machine changes too
        text = settings.read_text().replace("https://archive.archlinux.org", url)
        assert f"{url}/repos/2025/10/28/$repo/os/$arch" in text
        trusted = trusting(keys, place / "trusted")
        settings.write_text(text.replace("[options]", f"[options]\nGPGDir = {trusted}"))
        said = built(folder)
    assert said == "the source of alpha\ndemo 2-1\n"
    installed = run("pacman", "--root", folder / "work/root-build", "--query")
    assert installed == "base 1-1\ndemo 2-1\n"
    assert (folder / "work/root-build/etc/pacman.conf").read_text() == settings.read_text()


def test_dnf_makes_the_root_where_the_machine_has_it(place: Path) -> None:
    land = user_land("bash")
    names = ("fedora-release-container", "coreutils", "findutils", "grep", "gzip", "sed", "tar")
    others = [Package(name=one, version="1-1", needs=("bash",)) for one in names]
    dnf_repository(place / "served/rpm", [land, *others, tool("demo", "2-1", "bash")])
    folder = exported("fedora:43", place)
    # Debian's dnf has no repositories: this one stands for what a machine of Fedora has
    repositories = place / "repositories"
    where = f"file://{place}/served/rpm"
    write_tree(repositories, {"tiny.repo": f"[tiny]\nname=tiny\nbaseurl={where}\ngpgcheck=0\n"})
    dnf = shutil.which("dnf")
    write_tree(place / "bin", {"dnf": f'#!/bin/sh\nexec {dnf} --setopt=reposdir={repositories} "$@"\n'})
    (place / "bin/dnf").chmod(0o755)
    said = built(folder, PATH=f"{place}/bin:{os.environ['PATH']}", PACKAGES_BUILD="demo-2-1")
    assert said == "the source of alpha\ndemo 2-1\n"
