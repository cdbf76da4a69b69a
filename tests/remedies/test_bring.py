"""A missing header becomes a system package by the catalog's name, where the base's index knows it."""

from __future__ import annotations

import pytest

from rocwheel.errors import CompileError
from rocwright.catalog.issue import the_issues
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.remedy import AddPackages
from rocwright.remedies.bring import bringing
from tests.making import lock_of

LOCK = lock_of("llama-vulkan", "gfx1151")


def failure(line: str) -> CompileError:
    return CompileError("it failed", cause="see below", next_step="-", detail=f"[1/2] c++ a.cpp\n{line}\n")


def names(issue: str, line: str, packages: tuple[str, ...]) -> tuple[list[tuple[str, ...]], list[str]]:
    """The packages' actions for a failure, and the headers that were asked for."""
    asked: list[str] = []

    def packages_with(header: str) -> tuple[str, ...]:
        asked.append(header)
        return packages

    found = bringing(the_issues()[0][issue], failure(line), LOCK, builtin_catalog(), packages_with)
    return [one.names for one in found.remedies if isinstance(one, AddPackages)], asked


MISSING = "a.cpp:1:10: fatal error: png.h: No such file or directory"


def test_the_package_of_a_header_is_offered_by_the_catalogs_name() -> None:
    assert names("missing-header", MISSING, ("libpng-dev",)) == ([("png",)], ["png.h"])


def test_a_package_that_has_no_name_in_the_catalog_is_not_offered() -> None:
    assert names("missing-header", MISSING, ("libnobody-dev",)) == ([], ["png.h"])


@pytest.mark.parametrize("line", ["a.cpp:1:1: error: expected ';'", ""])
def test_where_no_line_names_a_header_nothing_is_asked(line: str) -> None:
    assert names("missing-header", line, ("libpng-dev",)) == ([], [])


def test_of_another_family_nothing_is_asked() -> None:
    assert names("missing-library", "ld: cannot find -lpng: No such file", ("libpng-dev",)) == ([], [])
