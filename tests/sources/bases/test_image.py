"""Roots from an image and packages, with a package manager of a few shell lines in a tiny root."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.making import digest

from rocbase.errors import CheckError, ConflictError, FetchError, NetworkError, SandboxError
from rocwheel_samples.hostile_files import soon
from rocwright.catalog.base import PackageManager, filled
from rocwright.catalog.load import the_catalog
from rocwright.execution.fetch import fetch
from rocwright.home import Home
from rocwright.model.step_environment import EPOCH, PACKAGES
from rocwright.model.steps import BaseAction, FilePin, ImageOrigin
from rocwright.sources.archive import pack
from rocwright.sources.bases import image as image_bases
from rocwright.sources.bases.image import Packages, fetch_packages, make_image_root, packages_of
from rocwright.sources.bases.writable import WritableRoot, writable_root
from rocwright.store.local import LocalStore
from rocwright.store.model import verified
from rocwright.store.packed import content_of

MANAGER = PackageManager(
    name="tiny",
    refresh=("sh", "-c", "echo one > /lists"),
    download=(
        "sh",
        "-c",
        'for p; do test "$p" != absent || { echo "E: no package absent"; exit 1; }; '
        'echo "$p of $(cat /lists)" > {folder}/$p-1.pkg; done; touch {folder}/lock',
        "sh",
        "{packages}",
    ),
    fetch=("sh", "-c", 'for p; do echo "${p%=*} of one" > {folder}/${p%=*}-1.pkg; done', "sh", "{packages}"),
    install=(
        "sh",
        "-c",
        "mkdir -p /opt/installed /var/log && cp {folder}/*.pkg /opt/installed/ && date > /var/log/tiny.log "
        "&& id -u > /opt/who && echo $FRONTEND > /opt/frontend",
    ),
    ask=("sh", "-c", 'head -n1 "$1" | sed "s/ of.*/=1/"', "sh", "{file}"),
    files="*.pkg",
    list=("ls", "/opt/installed"),
    lists=("sh", "-c", "echo http://archive.example/list; echo cdrom:[x]; echo of $FRONTEND"),
    env={"FRONTEND": "none"},
    forget=("/var/log/*.log", "/opt/no such thing"),
    source="this test",
)


@dataclass
class Bench:
    """A store with the root of an image in it."""

    store: LocalStore
    image: FilePin
    folder: Path
    lines: list[str]

    @contextmanager
    def packages(self, manager: PackageManager = MANAGER, release: str = "1") -> Iterator[Packages]:
        opened = packages_of(
            self.image.sha256,
            manager,
            "tiny-base",
            release,
            self.store,
            self.folder / "scratch",
            self.lines.append,
        )
        with opened as found:
            yield found

    def action(self, manager: PackageManager = MANAGER) -> BaseAction:
        return BaseAction(
            family="image",
            suite="1",
            architecture="amd64",
            image=self.image.sha256,
            install=filled(manager.install, folder=PACKAGES),
            env=manager.env,
            forget=manager.forget,
        )

    def make(self, name: str, pins: tuple[FilePin, ...], manager: PackageManager = MANAGER) -> Path:
        target, scratch = self.folder / f"{name}.tar.zst", self.folder / name
        packages = [(pin.filename, verified(self.store, pin.sha256)) for pin in pins]
        content = make_image_root(
            self.action(manager), packages, self.store, target, scratch, self.lines.append
        )
        assert content == content_of(target) != ""
        assert list(scratch.iterdir()) == []
        return target


@pytest.fixture
def bench(store: LocalStore, tiny_root: Path, engine: str, tmp_path: Path) -> Bench:
    """`engine` skips where bubblewrap does not work."""
    sha256, size = store.put_file(tiny_root)
    origin = ImageOrigin(reference="registry.example/tiny:1", digest=f"sha256:{'1' * 64}")
    pin = FilePin(filename="tiny.tar.zst", sha256=sha256, size=size, origin=origin)
    return Bench(store, pin, tmp_path, [])


@pytest.fixture
def writable(bench: Bench) -> Iterator[WritableRoot]:
    with writable_root(
        bench.store, bench.image.sha256, bench.folder / "writable", bench.lines.append
    ) as root:
        yield root


def test_what_a_lock_chooses_is_pinned_and_in_the_store(bench: Bench) -> None:
    with bench.packages() as packages:
        pins = packages.choose(["b", "a"], bench.store)
    assert [pin.filename for pin in pins] == ["a-1.pkg", "b-1.pkg"]
    assert verified(bench.store, pins[0].sha256).read_text() == "a of one\n"
    assert pins[0].origin.model_dump() == {
        "kind": "package", "base": "tiny-base", "release": "1", "manager": "tiny",
        "image": bench.image.sha256, "package": "a=1",
    }  # fmt: skip


def test_one_choice_does_not_see_the_files_of_another(bench: Bench) -> None:
    with bench.packages() as packages:
        packages.choose(["a"], bench.store)
        assert [pin.filename for pin in packages.choose(["b"], bench.store)] == ["b-1.pkg"]
        assert packages.choose([], bench.store) == ()


def test_nothing_is_left_of_the_copy_in_which_a_lock_was_made(bench: Bench) -> None:
    with bench.packages() as packages:
        path = packages.root.path
        assert (path / "lists").exists()
    assert list((bench.folder / "scratch").iterdir()) == []
    assert not path.exists()


def test_a_package_that_is_not_there_is_a_conflict_with_the_managers_own_words(bench: Bench) -> None:
    with bench.packages() as packages, pytest.raises(ConflictError) as caught:
        packages.choose(["absent"], bench.store)
    assert caught.value.cause == "E: no package absent"


@pytest.mark.parametrize("command", ["mkfifo", "ln -s /dev/zero", "ln -s /etc/passwd", "mkdir"])
def test_a_package_that_is_no_plain_file_is_refused(bench: Bench, command: str) -> None:
    script = ("sh", "-c", f"{command} {{folder}}/a-1.pkg")
    hostile = MANAGER.model_copy(
        update={"download": script, "fetch": script, "ask": ("sh", "-c", "echo a=1")}
    )
    with bench.packages() as honest:
        [pin] = honest.choose(["a"], bench.store)
    before = [file[:2] for file in bench.store.local.files()]
    with soon(), bench.packages(hostile) as found:
        with pytest.raises(SandboxError, match=r"manager of tiny-base:1 left a .* as a-1\.pkg"):
            found.choose(["a"], bench.store)
        found._empty()
        with pytest.raises(SandboxError, match=r"manager of tiny-base:1 left a .* as a-1\.pkg"):
            found.fetch([pin], bench.folder)
    assert [file[:2] for file in bench.store.local.files()] == before


def test_lists_that_do_not_come_are_a_failure_of_the_network(bench: Bench) -> None:
    broken = MANAGER.model_copy(update={"refresh": ("sh", "-c", "echo 'E: no lists'; exit 100")})
    with pytest.raises(NetworkError, match="package lists of tiny-base:1") as caught, bench.packages(broken):
        pass
    assert caught.value.cause == "E: no lists"
    assert list((bench.folder / "scratch").iterdir()) == []


def test_an_image_without_the_package_manager_of_its_base_is_told(bench: Bench) -> None:
    other = MANAGER.model_copy(update={"refresh": ("dnf", "makecache")})
    with pytest.raises(FetchError, match="the image has no dnf"), bench.packages(other):
        pass


def test_a_release_that_is_a_day_is_that_day_of_the_archive(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    dated = MANAGER.model_copy(
        update={
            "snapshot": "https://archive.example/{year}/{month}/{day}",
            "repository": ("sh", "-c", "echo {snapshot} > /day"),
            "refresh": ("cp", "/day", "/lists"),
        }
    )
    with bench.packages(dated, "2025-10-28") as packages:
        [pin] = packages.choose(["a"], bench.store)
    told = verified(bench.store, pin.sha256).read_text()
    assert told == "a of https://archive.example/2025/10/28\n"
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", "https://archive.example/=http://127.0.0.1:1/")
    with bench.packages(dated, "2025-10-28") as packages:
        [pin] = packages.choose(["a"], bench.store)
    assert verified(bench.store, pin.sha256).read_text() == "a of http://127.0.0.1:1/2025/10/28\n"


def test_the_same_files_are_fetched_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with bench.packages() as packages:
        pins = packages.choose(["a", "b"], bench.store)
    other = LocalStore(bench.folder / "other")
    other.put_file(verified(bench.store, bench.image.sha256))
    use(monkeypatch, MANAGER)
    fetch([bench.image, *pins], other, Home(bench.folder), bench.folder / "f", bench.lines.append)
    assert all(verified(other, pin.sha256) for pin in pins)
    assert not (bench.folder / "f").exists()


def use(monkeypatch: pytest.MonkeyPatch, manager: PackageManager) -> None:
    """Have the catalog know this package manager."""
    known = replace(the_catalog(), managers={"tiny": manager})
    monkeypatch.setattr(image_bases, "the_catalog", lambda: known)


def test_a_file_that_is_another_now_never_comes_into_the_store(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench.packages() as packages:
        [pin] = packages.choose(["a"], bench.store)
    changed = pin.model_copy(update={"sha256": digest("another")})
    use(monkeypatch, MANAGER)
    with pytest.raises(FetchError, match="does not match the lock"):
        fetch([changed], bench.store, Home(bench.folder), bench.folder / "f", bench.lines.append)
    assert not bench.store.has(changed.sha256)


def test_a_package_that_the_archive_has_no_more_is_named(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench.packages() as packages:
        [pin] = packages.choose(["a"], bench.store)
    use(
        monkeypatch,
        MANAGER.model_copy(update={"fetch": ("sh", "-c", "echo 'E: version not found'; exit 100")}),
    )
    with pytest.raises(FetchError, match="did not give all packages") as caught:
        fetch_packages([pin], bench.store, bench.folder / "f", bench.lines.append)
    assert caught.value.cause == "it carries no a-1.pkg"
    assert "rocwright lock" in caught.value.next_step


def test_a_root_holds_the_image_and_the_packages_and_none_of_the_traces(bench: Bench) -> None:
    with bench.packages() as packages:
        pins = packages.choose(["a", "b"], bench.store)
    target = bench.make("made", pins)
    sha256, _ = bench.store.put_file(target)
    with writable_root(bench.store, sha256, bench.folder / "look", bench.lines.append) as root:
        installed = root.path / "opt" / "installed"
        assert sorted(path.name for path in installed.iterdir()) == ["a-1.pkg", "b-1.pkg"]
        assert (root.path / "opt" / "who").read_text() == "0\n"
        assert (root.path / "opt" / "frontend").read_text() == "none\n"
        assert list((root.path / "var" / "log").iterdir()) == []
        assert not (root.path / "lists").exists()
        assert {path.stat().st_mtime for path in (installed, root.path / "opt" / "who")} == {EPOCH}
        assert [list((root.path / name).iterdir()) for name in ("dev", "proc", "run", "tmp")] == [
            [],
            [],
            [],
            [],
        ]


def test_the_same_image_and_packages_give_the_same_bytes(bench: Bench) -> None:
    with bench.packages() as packages:
        pins = packages.choose(["a", "b"], bench.store)
    first = bench.make("first", pins).read_bytes()
    assert bench.make("second", pins).read_bytes() == first
    assert bench.make("other", pins[:1]).read_bytes() != first


def test_an_installation_has_no_network_and_cannot_change_the_packages(bench: Bench) -> None:
    look = ("sh", "-c", "grep -v -e lo: -e '|' /proc/net/dev && exit 1; ! touch {folder}/x 2> /dev/null")
    with bench.packages() as packages:
        pins = packages.choose(["a"], bench.store)
    bench.make("made", pins, MANAGER.model_copy(update={"install": look}))
    assert verified(bench.store, pins[0].sha256)


def test_an_installation_that_fails_says_the_managers_last_words(bench: Bench) -> None:
    with bench.packages() as packages:
        pins = packages.choose(["a"], bench.store)
    broken = MANAGER.model_copy(update={"install": ("sh", "-c", "echo 'E: a needs b'; echo bye; exit 2")})
    with pytest.raises(CheckError, match="cannot be installed") as caught:
        make_image_root(
            bench.action(broken),
            [("a-1.pkg", verified(bench.store, pins[0].sha256))],
            bench.store,
            bench.folder / "x",
            bench.folder / "s",
            bench.lines.append,
        )
    assert caught.value.cause == "E: a needs b"


def test_what_is_forgotten_is_of_the_root_even_where_a_link_leads_out(
    writable: WritableRoot, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "x.log").write_text("x")
    (writable.path / "var").mkdir()
    (writable.path / "var" / "log").symlink_to(victim)
    writable.forget(["/var/log/*", f"{victim}/*"])
    assert (victim / "x.log").exists()


def test_a_command_inside_sees_nothing_of_the_host(writable: WritableRoot, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    assert not writable.run(["cat", str(tmp_path / "secret")], {}).ok
    lines: list[str] = []
    assert writable.run(["env"], {"A": "1"}, on_line=lines.append).ok
    assert "A=1" in lines
    usual = {"PATH", "HOME", "LANG", "LC_ALL", "TZ", "PWD"}
    assert not {line.partition("=")[0] for line in lines} & (set(os.environ) - usual)


@pytest.mark.parametrize("name", ["resolv.conf", "hosts"])
def test_no_mount_point_is_made_through_a_link_of_the_root(
    name: str, writable: WritableRoot, tmp_path: Path
) -> None:
    """bwrap sees the host at /oldroot while it makes them."""
    outside = tmp_path / "outside"
    outside.mkdir()
    links = f"rm -f /etc/{name}; ln -s ../aside/made /etc/{name}; ln -s /oldroot{outside} /aside"
    assert writable.run(["sh", "-c", links], {}).ok
    assert writable.run(["true"], {}, network=True).ok
    assert list(outside.iterdir()) == []


def test_a_root_whose_etc_a_command_made_a_link_is_refused(writable: WritableRoot) -> None:
    assert writable.run(["sh", "-c", "mv /etc /kept; ln -s /oldroot/srv /etc"], {}).ok
    with pytest.raises(FetchError, match="is not the root file system"):
        writable.run(["true"], {}, network=True)


@pytest.mark.parametrize("name", ["dev", "run", "etc"])
def test_a_root_whose_mount_points_lead_elsewhere_is_refused(name: str, bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / name).symlink_to("/srv")
    pack(folder, tmp_path / "odd.tar.zst", epoch=EPOCH)
    sha256, _ = bench.store.put_file(tmp_path / "odd.tar.zst")
    with (
        pytest.raises(FetchError, match="is not the root file system"),
        writable_root(bench.store, sha256, tmp_path / "w", bench.lines.append),
    ):
        pass
    assert list((tmp_path / "w").iterdir()) == []
