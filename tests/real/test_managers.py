"""pacman and dnf themselves, in the root file system of an image, with small archives of real packages.

Only the hosts of Arch and Fedora are stood in for: the archive of a day and a repository lie on this machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.real.archives import dnf_repository, pacman_repository, run, served, signing_key, tool, trusting
from tests.real.registry import Registry
from tests.sources.test_layers import save

from rocbase.errors import ConflictError, FetchError
from rocwright.catalog.base import Base, BaseRelease
from rocwright.catalog.load import Catalog, builtin_catalog
from rocwright.execution.exec_step import execute
from rocwright.execution.fetch import fetch
from rocwright.follow.watch.packages import lists_of, newer
from rocwright.home import Home
from rocwright.model.architecture import host_architecture
from rocwright.plan.resolve.difference import name_and_version
from rocwright.plan.resolve.network import NetworkUpstream
from rocwright.plan.roots import root_steps
from rocwright.sources.bases.roots import remove_tree, unpacked_root
from rocwright.sources.image import ARCHITECTURES
from rocwright.sources.package_lists import newest
from rocwright.store.local import LocalStore

HOST = host_architecture()

pytestmark = pytest.mark.real

NAME = "registry.example/team/debian:managers"
ARCHIVE = "https://archive.archlinux.org/"
DAY = "2025-10-28"
PACMAN_CONF = """[options]
HoldPkg = pacman glibc
Architecture = auto
CheckSpace
DownloadUser = alpm
SigLevel = Required DatabaseOptional
LocalFileSigLevel = Optional

[core]
Include = /etc/pacman.d/mirrorlist

[extra]
Include = /etc/pacman.d/mirrorlist
"""
"""As it is in Arch's own images."""


@dataclass(frozen=True, slots=True)
class Outside:
    """What stands for the network: the address, and the folder that is served under it."""

    url: str
    folder: Path


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    folder = tmp_path_factory.mktemp("outside")
    keys = signing_key(folder / "keys")
    days = folder / "served" / "repos"
    core = [tool("demo", "2-1", "tool=2-1"), tool("tool", "2-1"), tool("brought", "2-1")]
    pacman_repository(days / "2025/10/28/core/os/x86_64", "core", core, keys)
    pacman_repository(days / "2025/10/28/extra/os/x86_64", "extra", [tool("greeter", "1:1-1", "demo")], keys)
    later = [tool("demo", "3-1"), tool("brought", "3-1")]
    pacman_repository(days / "2025/10/29/core/os/x86_64", "core", later, keys)
    pacman_repository(days / "2025/10/29/extra/os/x86_64", "extra", [tool("tool", "3-1")], keys)
    rpms = [tool("greeter", "1-1", "demo"), tool("demo", "2-1", "tool = 2-1"), tool("tool", "2-1")]
    dnf_repository(folder / "served" / "rpm", [*rpms, tool("tool", "3-1")])
    with served(folder / "served") as url:
        yield Outside(url, folder)


@pytest.fixture(scope="module")
def image(registry: Registry, outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> None:
    """An image with Debian's pacman 7 and dnf 5, set up as those of Arch and Fedora are."""
    folder = tmp_path_factory.mktemp("managers")
    root = folder / "root"
    run("mmdebstrap", "--variant=apt", "--skip=output/dev", '--aptopt=Acquire::Check-Valid-Until "false"',
        "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
        "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=force-unsafe-io",
        "--include=pacman-package-manager,dnf5,rpm", "--format=directory", "sid", root)  # fmt: skip
    for needless in ("gconv", "perl-base"):
        remove_tree(root / "usr/lib/x86_64-linux-gnu" / needless)
    for name, text in {
        "pacman.conf": PACMAN_CONF,
        "pacman.d/mirrorlist": "Server = https://nowhere.example/$repo/os/$arch\n",
        "yum.repos.d/tiny.repo": f"[tiny]\nname=tiny\nbaseurl={outside.url}/rpm\ngpgcheck=0\n",
        # an addition of dnf 5 that Fedora's own images have not
        "dnf/libdnf5-plugins/local.conf": "[main]\nname = local\nenabled = false\n",
    }.items():
        (root / "etc" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "etc" / name).write_text(text)
    (root / "etc/mtab").symlink_to("../proc/self/mounts")
    for name, line in {"passwd": "alpm:x:964:964::/:/usr/sbin/nologin", "group": "alpm:x:964:"}.items():
        with (root / "etc" / name).open("a") as file:
            file.write(f"{line}\n")
    trusting(outside.folder / "keys", root / "etc/pacman.d/gnupg")
    # what the image brings along is newer than the day
    (folder / "cache").mkdir()
    own = ("--root", root, "--cachedir", folder / "cache", "--config", _early(folder, outside))
    run("pacman", *own, "--noconfirm", "-Sy", "brought")
    packed = folder / "root.tar"
    run("tar", "-C", root, "--numeric-owner", "--exclude=./dev/*", "-cf", packed, ".")
    registry.push_saved(
        "managers",
        save(folder, packed.read_bytes(), config={"architecture": ARCHITECTURES[HOST], "config": {}}),
    )
    remove_tree(folder)


def _early(folder: Path, outside: Outside) -> Path:
    """Settings of this machine's pacman for the day after, without looking at signatures."""
    path = folder / "early.conf"
    server = f"Server = {outside.url}/repos/2025/10/29/$repo/os/$arch"
    path.write_text(
        f"[options]\nArchitecture = x86_64\nSigLevel = Never\n[core]\n{server}\n[extra]\n{server}\n"
    )
    return path


@pytest.fixture(autouse=True)
def here(registry: Registry, image: None, outside: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "ROCWRIGHT_MIRRORS",
        f"registry.example/=http://127.0.0.1:{registry.port}/ {ARCHIVE}={outside.url}/",
    )


def catalog_of(manager: str, release: str) -> tuple[Catalog, Base]:
    """The catalog with a base of that image."""
    catalog = builtin_catalog()
    told = catalog.managers[manager]
    if manager == "dnf":
        words = {"refresh", "download", "fetch", "install", "lists"}
        told = told.model_copy(
            update={name: tuple(_dnf5(one) for one in getattr(told, name)) for name in words}
        )
    base = Base(
        name="managed",
        summary="x",
        manager=told.name,
        made="image",
        release=(BaseRelease(name=release, image=NAME, source="this test"),),
        architecture={"x86_64": "x86_64"},
        source="this test",
    )
    bases = {**catalog.bases, base.name: base}
    return replace(catalog, bases=bases, managers={**catalog.managers, told.name: told}), base


def _dnf5(word: str) -> str:
    """On Fedora, `dnf` is dnf 5; on Debian it has its own name."""
    return "dnf5" if word == "dnf" else word.replace("dnf --assumeyes", "dnf5 --assumeyes")


@pytest.mark.parametrize(("manager", "release"), [("pacman", DAY), ("dnf", "43")])
def test_a_base_is_locked_fetched_and_made_by_its_own_package_manager(
    manager: str,
    release: str,
    home: Home,
    engine: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    catalog, base = catalog_of(manager, release)
    monkeypatch.setattr("rocwright.sources.bases.image.the_catalog", lambda: catalog)
    lines: list[str] = []
    store = LocalStore(tmp_path / "store")
    with NetworkUpstream(base, base.release[0], catalog, store, home, lines.append) as online:
        root = online.root("build", base, base.release[0], ("greeter",))
        with pytest.raises(ConflictError, match="no set of packages"):
            online.root("build", base, base.release[0], ("absent",))
    names = {pin.filename.partition("-")[0] for pin in root.packages[1:]}
    assert names == {"greeter", "demo", "tool"} | ({"brought"} if manager == "pacman" else set())

    lists = lists_of(root, catalog.managers, "2025-10-29")
    assert lists
    found = newer(root.packages, newest(lists.form, lists.addresses, lists.architecture, seconds=30))
    later = {name_and_version(pin) for pin in found} - {name_and_version(pin) for pin in root.packages}
    assert later == ({("demo", "3-1"), ("brought", "3-1")} if manager == "pacman" else set()) | {
        ("tool", "3-1")
    }

    packages, made = root_steps(root, catalog)
    digests = []
    for where in (store, LocalStore(tmp_path / "other")):
        for step in (packages, made):
            where.put_step(step.key, step.model_dump_json(by_alias=True).encode())
            [*_, output] = execute(step.key, where, home, lines.append).outputs
        digests.append(output.sha256)
    assert digests[0] == digests[1], "the same image and packages gave other bytes"

    folder = unpacked_root(store, digests[0], home.roots, lines.append)
    assert (folder / "usr/bin/greeter").exists()
    assert said(folder, "demo") == "demo 2-1"
    assert said(folder, "tool") == "tool 2-1", "the newest is not what was locked"
    if manager == "pacman":
        assert said(folder, "brought") == "brought 2-1", "the image was not brought to its day"

    gone = root.packages[1].model_copy(
        update={"origin": root.packages[1].origin.model_copy(update={"package": "demo=9-9"})}
    )
    gone = gone.model_copy(update={"sha256": "0" * 64})
    with pytest.raises(FetchError, match="did not give all packages"):
        fetch([root.packages[0], gone], store, home, tmp_path / "scratch", lines.append)


def said(root: Path, name: str) -> str:
    return (root / "usr/bin" / name).read_text().splitlines()[-1].removeprefix("echo ")


def test_a_package_with_the_signature_of_another_is_refused(
    home: Home, engine: str, outside: Outside, tmp_path: Path
) -> None:
    place = outside.folder / "served/repos/2025/10/30"
    for name, packages in {
        "core": [tool("demo", "4-1"), tool("tool", "4-1")],
        "extra": [tool("greeter", "4-1")],
    }.items():
        pacman_repository(place / name / "os/x86_64", name, packages, outside.folder / "keys")
    demo, other = sorted((place / "core/os/x86_64").glob("*.sig"))
    demo.write_bytes(other.read_bytes())
    run("repo-add", "--quiet", demo.parent / "core.db.tar.gz", demo.with_suffix(""))
    catalog, base = catalog_of("pacman", "2025-10-30")
    store = LocalStore(tmp_path / "store")
    with (
        NetworkUpstream(base, base.release[0], catalog, store, home, print) as online,
        pytest.raises(ConflictError) as caught,
    ):
        online.root("build", base, base.release[0], ("demo",))
    assert "signature" in f"{caught.value.cause} {caught.value.detail}"
