"""Fetch once, verify, keep: files of a lock, from outside into the store."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from rocbase.errors import FetchError
from rocbase.toml.read import holder
from rocbase.units import count, size
from rocwright.catalog.folders import catalog_folders
from rocwright.execution.tally import count_downloads
from rocwright.home import Home
from rocwright.model.architecture import host_architecture
from rocwright.model.steps import (
    ArchiveOrigin,
    BuiltinOrigin,
    DebianOrigin,
    DebianSourceOrigin,
    FilePin,
    GitOrigin,
    ImageOrigin,
    IndexOrigin,
    PackageOrigin,
)
from rocwright.sources import git, image, index, web
from rocwright.sources.bases.image import fetch_packages
from rocwright.sources.bases.tools import Tools
from rocwright.sources.debian import DebianArchive
from rocwright.sources.pins import check_pin
from rocwright.sources.places import pack_builtin
from rocwright.sources.signed_packages import remember
from rocwright.store.model import Store


def fetch(
    pins: Sequence[FilePin],
    store: Store,
    home: Home,
    scratch: Path,
    on_line: Callable[[str], None],
) -> None:
    """Bring every file that the store has not yet. Raises FetchError where one is not what the lock says."""
    # a wheel that two stacks or two requirements ask for is named by both
    once = {(pin.filename, pin.sha256): pin for pin in pins}
    missing = [pin for pin in once.values() if not store.has(pin.sha256, pin.size)]
    if not missing:
        return
    on_line(f"fetch: {count(len(missing), 'file')}, {size(sum(pin.size for pin in missing))}")
    scratch.mkdir(parents=True, exist_ok=True)
    # a package manager downloads into a folder of its own
    with count_downloads(missing, (scratch, scratch / "inside/packages"), on_line):
        _fetch(missing, store, home, scratch, on_line)
    shutil.rmtree(scratch, ignore_errors=True)


def _fetch(
    missing: Sequence[FilePin], store: Store, home: Home, scratch: Path, on_line: Callable[[str], None]
) -> None:
    packages: defaultdict[tuple[str, str], list[FilePin]] = defaultdict(list)
    of_images: list[FilePin] = []
    for pin in missing:
        match pin.origin:
            case DebianOrigin() | DebianSourceOrigin():
                packages[pin.origin.suite, pin.origin.architecture].append(pin)
            case IndexOrigin():
                index.download(pin, scratch)
            case GitOrigin():
                git.pack_commit(pin.origin, scratch)
            case ArchiveOrigin():
                web.fetch_pin(pin, scratch)
            case BuiltinOrigin():
                _carried(pin, store)
                continue
            case ImageOrigin():
                image.pull(pin.origin, scratch, host_architecture())
            case PackageOrigin():
                of_images.append(pin)
                continue
        on_line(f"fetch: {pin.filename}")
    for (suite, architecture), suite_pins in packages.items():
        DebianArchive(Tools(home, on_line), suite, architecture).download(suite_pins, scratch)
    _keep(
        [pin for pin in missing if not isinstance(pin.origin, BuiltinOrigin | PackageOrigin)], scratch, store
    )
    remember(missing, home.apt)
    # the packages of an image are fetched by that image's own package manager, which is in the store by now
    fetch_packages(of_images, store, scratch, on_line)
    _keep(of_images, scratch, store)


def _keep(pins: Sequence[FilePin], scratch: Path, store: Store) -> None:
    for pin in pins:
        check_pin(scratch / pin.filename, pin)
        store.put_file(scratch / pin.filename, move=True)


def _carried(pin: FilePin, store: Store) -> None:
    assert isinstance(pin.origin, BuiltinOrigin)
    name = f"sources/{pin.origin.name}"
    folder = holder(name, catalog_folders())
    if folder is None:
        raise FetchError(
            f"the catalog has no source {pin.origin.name}",
            cause="the lock was made with another catalog",
            next_step="set ROCWRIGHT_CATALOG to the catalog that it was locked with, or run rocwright lock",
        )
    if pack_builtin(pin.origin.name, folder / name, store, pin.sha256).sha256 != pin.sha256:
        raise FetchError(
            f"the source of {pin.origin.name} does not match the lock",
            cause="this rocwright ships another version of it than the one that made the lock",
            next_step="rocwright lock",
        )
