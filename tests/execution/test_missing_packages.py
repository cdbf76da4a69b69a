"""A failed step's message names the package of a missing header, where the base's index is here."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rocwright.diagnosis.diagnose import diagnose
from rocwright.execution.missing_packages import looked_up
from rocwright.home import Home
from rocwright.model.architecture import host_architecture
from rocwright.sources.bases.tools import Tools
from rocwright.sources.debian import DebianArchive

FOUND = diagnose([b"a.c:1:10: fatal error: numa.h: No such file or directory\n"])


def context(home: Path, base: str) -> Any:
    return SimpleNamespace(step=SimpleNamespace(about=SimpleNamespace(base=base)), home=Home(home))


def lay(home: Path, data: bytes) -> None:
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}[host_architecture()]
    lists = DebianArchive(Tools(Home(home)), "sid", architecture).folder / "contents"
    lists.mkdir(parents=True)
    (lists / "x_Contents-amd64.gz").write_bytes(data)


def test_the_package_is_named_where_the_index_is_there(tmp_path: Path) -> None:
    lay(tmp_path, gzip.compress(b"usr/include/numa.h libdevel/libnuma-dev\n"))
    cause = looked_up(FOUND, context(tmp_path, "debian:sid")).cause
    assert cause is not None
    assert cause.packages == ("libnuma-dev",)
    assert "libnuma-dev" in cause.issue.remedy


@pytest.mark.parametrize("base", ["", "debian:sid", "fedora:43", "no-such:base"])
def test_without_an_index_the_failure_is_told_as_it_was(tmp_path: Path, base: str) -> None:
    assert looked_up(FOUND, context(tmp_path, base)) == FOUND


def test_a_damaged_index_does_not_hide_the_failure(tmp_path: Path) -> None:
    lay(tmp_path, b"\x1f\x8b damaged")
    assert looked_up(FOUND, context(tmp_path, "debian:sid")) == FOUND
