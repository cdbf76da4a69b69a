"""A missing header becomes a system package by the catalog's name, where the base's index knows it."""

from __future__ import annotations

import pytest

from rocbase.errors import CompileError
from rocwheel_samples.tables import each
from rocwright.catalog.issue import the_issues
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.remedy import AddPackages, texts_of
from rocwright.doctor.remedies.rounds import fitted, none_known
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

    found = fitted(the_issues()[0][issue], failure(line), LOCK, builtin_catalog(), packages_with)
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


# flags for the warning that a line names


WARNED = "a.c:6:19: error: initialization of 'char *' from 'int *' [-Wincompatible-pointer-types]"


def flags(line: str) -> list[str]:
    """What is offered for a warning that stops a build."""
    found = fitted(the_issues()[0]["warning-is-error"], failure(line), LOCK, builtin_catalog(), none_known)
    return [text for one in found.remedies for text in texts_of(one)]


@each(
    ("line", "warning"),
    [
        (WARNED, "incompatible-pointer-types"),
        ("a.c:1:1: error: unused variable 'x' [-Werror=unused-variable]", "unused-variable"),
        ("a.c:1:1: error: unused variable 'x' [-Werror,-Wunused-variable]", "unused-variable"),
        ("a.cpp:1:1: error: comparison [-Werror=c++20-compat]", "c++20-compat"),
    ],
)
def test_the_warning_that_a_line_names_is_let_pass_by_variables_then_by_a_wrapper(
    line: str, warning: str
) -> None:
    assert flags(line) == [f"-Wno-error={warning}"] * 3


def test_where_no_line_names_a_warning_nothing_is_offered() -> None:
    assert flags("a.c:1:1: error: expected ';'") == []


def test_what_is_no_plain_name_is_put_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("x y", "-x", "x;y", "$(x)", "", "x" * 99, "x\n"):
        monkeypatch.setattr(
            "rocwright.doctor.remedies.rounds.named_in", lambda *_, text=text: {"warning": text}
        )
        assert flags(WARNED) == []
