"""Which source and which stand-in a row is rehearsed with, and that both are said."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rocbase.errors import FetchError, InputError
from rocwheel_samples.tables import each
from rocwright.catalog.model import Component, Release
from rocwright.catalog.place import GitPlace, IndexPlace, Place
from rocwright.plan.resolve.model import LockedComponent
from rocwright.rehearsal.book import Book, Nearest, Rehearsal, RocmPlace, StandIn
from rocwright.rehearsal.jobs import ExactSource, source_of
from rocwright.sources.places import describe, kind_of

GIT = GitPlace(git="https://git.example/engine", tag="v2")
OLDER = IndexPlace(sdist="engine", version="1")
ENGINE = Component(
    name="engine",
    summary="",
    license="MIT",
    kind="wheel",
    release=(Release(version="2", places=(GIT,), source=""), Release(version="1", source="")),
)
TOLD = Rehearsal(components=("engine",), nearest=(Nearest(version="1", place=OLDER, why="the only sdist"),))


def found(*served: Place) -> ExactSource | str:
    """The source of engine 2 where these places are all that is served."""

    def find(component: Component, version: str, places: Sequence[Place]) -> LockedComponent:
        for place in places:
            if place in served:
                kind = kind_of(place)
                return LockedComponent(
                    name=component.name,
                    version=version,
                    kind=kind,
                    place=describe(place),
                    pending="its files",
                )
        raise FetchError("nothing", cause="", detail=f"- {describe(places[0])}: no answer", next_step="wait")

    return source_of(ENGINE, "2", "debian:sid", TOLD, find)


def test_the_rows_own_source_goes_before_the_nearest_release() -> None:
    source = found(GIT, OLDER)
    assert isinstance(source, ExactSource)
    assert (source.locked.version, source.instead) == ("2", "")


def test_the_nearest_release_stands_in_and_is_named() -> None:
    source = found(OLDER)
    assert isinstance(source, ExactSource)
    assert source.locked.version == "1"
    assert source.instead == "engine 1 stands in for 2 (the only sdist)"


def test_without_any_source_the_reason_is_what_the_places_said() -> None:
    assert found() == "no source of engine 2 can be had here: git https://git.example/engine v2: no answer"


BOOK = Book(
    stand_in=(
        StandIn(name="usr", base="debian:sid", system=("c++",), rocm="/usr", source=""),
        StandIn(name="opt", base="debian:sid", system=("c++",), rocm="/opt/rocm", source=""),
        StandIn(name="plain", base="debian:sid", system=("c++",), source=""),
    ),
    place=(RocmPlace(bases=("arch:*",), rocm="/opt/rocm", source=""),),
)


@each(
    ("names", "base", "taken"),
    [
        (("usr", "opt"), "arch:2025-10-15", "opt"),
        (("usr", "opt"), "fedora:43", "usr"),
        (("usr",), "arch:2025-10-15", "usr"),
        (("plain", "usr"), "arch:2025-10-15", "plain"),
    ],
)
def test_the_stand_in_has_rocm_where_the_row_has_it_if_any_has(
    names: tuple[str, ...], base: str, taken: str
) -> None:
    assert BOOK.stands_in(names, BOOK.rocm_of(base)).name == taken


def test_a_stand_in_that_nobody_knows_is_an_error_that_names_them() -> None:
    with pytest.raises(InputError) as told:
        BOOK.stands_in(("usrr",), "/usr")
    assert all(name in told.value.cause for name in ("usr", "opt", "plain"))
