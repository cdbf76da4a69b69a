"""What a wheel needs of the system, on libraries that gcc links here."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocwheel_samples.fake_rocm import compile_library, make_wheel
from rocwheel_samples.tables import each
from rocwright.provenance.checks.libraries import judged, libraries_in, libraries_needed, package_like

NEEDED = {"libhelp.so.1": ("small/_c.so",), "libhttp.so.0.41": ("small/_c.so", "small/_d.so")}


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """The library folder of a ROCm root: its one library is needed by the wheel."""
    compile_library(tmp_path / "root/lib/libhelp.so.1", "int help(void) { return 1; }", soname="libhelp.so.1")
    return tmp_path / "root"


@pytest.fixture
def wheel(tmp_path: Path, system: Path) -> Path:
    code = "int help(void); int answer(void) { return help(); }"
    library = compile_library(tmp_path / "_native.so", code, needs=(system / "lib/libhelp.so.1",))
    return make_wheel(tmp_path / "out", system, library=library)


def test_a_library_of_the_system_is_needed_by_the_file_that_is_linked_with_it(wheel: Path) -> None:
    assert libraries_needed(wheel) == {"libhelp.so.1": ("needy/_native.so",)}


def test_a_wheel_that_is_installed_beside_it_may_bring_the_library(
    wheel: Path, system: Path, tmp_path: Path
) -> None:
    library = system / "lib/libhelp.so.1"
    other = make_wheel(tmp_path / "other", system, library=library, place=f"helper/{library.name}")
    assert libraries_needed(wheel, [other]) == {}


def test_a_link_is_a_library_and_none_is_followed(system: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/liboutside.so.1").write_text("x")
    (system / "lib/libalias.so.1").symlink_to("libhelp.so.1")
    (system / "away").symlink_to(tmp_path / "out")
    assert libraries_in(system) == {"libhelp.so.1", "libalias.so.1"}


def test_what_is_not_there_is_named_with_what_the_recipe_must_name() -> None:
    found = judged(NEEDED, {"libhelp.so.1"}, ["libhttp-dev", "libhttp0.41"], "small")
    assert not found.ok
    assert found.detail == (
        "libhttp.so.0.41, which small/_c.so needs, is not in the root to check in: "
        "system.run of small must name what brings libhttp0.41"
    )


def test_where_all_is_there_it_says_how_many() -> None:
    found = judged(NEEDED, NEEDED, [], "small")
    assert (found.ok, found.detail) == (True, "all 2 that it needs of the system are in the root to check in")


@each(
    ("library", "package"),
    [
        ("libcpp-httplib.so.0.41", "libcpp-httplib0.41"),
        ("libMIOpen.so.1", "libmiopen1"),
        ("libpng16.so.16", "libpng16-16t64"),
        ("libother.so.2", ""),
        ("_native.so", ""),
    ],
)
def test_packages_are_known_by_how_debian_names_libraries(library: str, package: str) -> None:
    packages = ["libcpp-httplib-dev", "libcpp-httplib0.41", "libmiopen1", "libpng16-16t64", "_native"]
    assert package_like(library, packages) == package
