"""Packages on top of images: which have newer versions in the lists of their archives."""

from __future__ import annotations

import gzip
import io
import tarfile
from typing import Any

import pytest
from tests.follow.watch.answering import Upstream
from tests.follow.watch.conftest import Field, catalog_of, lock_with
from tests.making import digest

from rocwright.follow.watch.tell import tell_report
from rocwright.model.steps import FilePin, ImageOrigin, PackageOrigin
from rocwright.plan.resolve.model import Lock, LockedRoot

DIGEST = f"sha256:{'1' * 64}"


def image_root(base: str, manager: str, *packages: str, **more: Any) -> Lock:
    """A lock of a root with these packages on top of an image that is named by its digest alone."""
    name, _, release = base.partition(":")
    image = FilePin(
        filename="root.tar.zst",
        sha256="1" * 64,
        size=1,
        origin=ImageOrigin(reference=f"registry.example/{name}@{DIGEST}", digest=DIGEST),
    )
    pins = (
        FilePin(
            filename=one.replace("=", "_"),
            sha256=digest(one),
            size=1,
            origin=PackageOrigin(
                base=name, release=release, manager=manager, image=image.sha256, package=one
            ),
        )
        for one in packages
    )
    root = LockedRoot(
        role="build",
        base=name,
        manager=manager,
        suite=release,
        architecture="x86_64",
        image=f"registry.example/{name}@{DIGEST}",
        packages=(image, *pins),
        **more,
    )
    return lock_with(roots=(root,))


def database(*folders: str) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name in folders:
            folder = tarfile.TarInfo(name)
            folder.type = tarfile.DIRTYPE
            tar.addfile(folder)
    return data.getvalue()


def test_packages_on_top_of_an_image_are_looked_up_in_the_lists_that_the_lock_names(
    upstream: Upstream, field: Field
) -> None:
    lists = tuple(f"{upstream.url}/{name}/Packages" for name in ("main", "security"))
    for name, gcc in (("main", "14.2.0-16"), ("security", "14.2.0-19")):
        text = f"Package: gcc\nVersion: {gcc}\n\nPackage: make\nVersion: 4.4-1\n\nPackage: new\nVersion: 1\n"
        upstream.pages[f"/{name}/Packages.gz"] = (200, {}, gzip.compress(text.encode()))
    lock = image_root("ubuntu:24.04", "apt", "gcc=14.2.0-16", "make=4.4-1", "libc6=2.39", lists=lists)
    report = field.look(catalog_of(), lock)
    assert not report.cautions, report.cautions
    (news,) = report.news
    assert (news.name, news.step, news.has, news.admitted) == ("root/build", "packages", "3 packages", True)
    assert news.new == "1 package of the root to build newer: gcc 14.2.0-16 -> -19"
    assert not report.silent
    assert not report.unseen


def test_a_base_that_is_a_day_is_held_against_the_newest_day_that_is_old_enough(
    upstream: Upstream, field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", f"https://archive.archlinux.org/={upstream.url}/")
    # seven days before the day of these tests, which is the cool-down
    day = "/repos/2026/11/14"
    upstream.pages[f"{day}/core/os/x86_64/core.db"] = (200, {}, database("gcc-15.3.0-1", "glibc-2.42-1"))
    upstream.pages[f"{day}/extra/os/x86_64/extra.db"] = (200, {}, database("rocm-core-7.1.0-1"))
    lock = image_root("arch:2025-10-28", "pacman", "gcc=15.2.1-1", "glibc=2.42-1", "rocm-core=6.4.4-1")
    report = field.look(catalog_of(), lock)
    assert not report.silent
    assert not report.cautions, report.cautions
    (news,) = report.news
    assert (news.admitted, news.age, news.released) == (False, 7, "2026-11-14")
    assert news.why == "the base uses the archive of 2025-10-28; a later snapshot has them"
    assert "gcc 15.2.1-1 -> 15.3.0-1" in news.new
    assert "rocm-core 6.4.4-1 -> 7.1.0-1" in news.new
    assert not field.look(catalog_of(), lock, cool_down=400).news


def test_without_lists_the_packages_are_seen_through_the_digest_and_that_is_said(field: Field) -> None:
    lock = image_root("fedora:43", "dnf", "gcc-0:15.2.1-2.fc43.x86_64")
    report = field.look(catalog_of(), lock, lock)
    assert report.unseen == ("fedora:43",)
    (line,) = (line for line in tell_report(report) if "fedora" in line)
    assert line.startswith("fedora:43: packages of this image are only seen through its digest")
    assert not any("fedora" in line for line in tell_report(report, quiet=True))


def test_lists_that_are_gone_or_no_lists_are_told(upstream: Upstream, field: Field) -> None:
    upstream.pages["/odd/repodata/repomd.xml"] = (200, {}, b"<html>it works</html>")
    for place, said in (("gone", "cautions"), ("odd", "silent")):
        lists = (f"{upstream.url}/{place}/repodata/repomd.xml",)
        lock = image_root("fedora:43", "dnf", "gcc-0:15.2.1-2.fc43.x86_64", lists=lists)
        report = field.look(catalog_of(), lock)
        assert {name: len(getattr(report, name)) for name in ("cautions", "silent")} == {
            "cautions": 0, "silent": 0,
        } | {said: 1}  # fmt: skip
