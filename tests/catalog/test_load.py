"""Reading a catalog: what is wrong is named with its file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocbase.errors import InputError
from rocbase.toml.read import parse
from rocwheel_samples.tables import each
from rocwright.catalog.base import Base, filled
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import builtin_catalog, load_catalog, lookup
from rocwright.catalog.model import Resources


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The catalog's files, to be spoiled."""
    folder = tmp_path / "data"
    shutil.copytree(DATA, folder, ignore=shutil.ignore_patterns("*.py", "sources"))
    return folder


def test_a_copy_of_the_catalog_says_the_same(copied: Path) -> None:
    assert load_catalog(copied).components == builtin_catalog().components


def test_a_new_gpu_is_a_few_lines_of_toml(copied: Path) -> None:
    with (copied / "targets.toml").open("a") as file:
        file.write(
            '\n[target.gfx9999]\nkfd_version = 99999\ngeneration = "new"\n'
            'products = ["New"]\nsource = ["a datasheet"]\n'
        )
    assert load_catalog(copied).target("gfx9999").products == ("New",)


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("colour = 'red'", "colour"),
        ("summary = 3", "summary"),
        ("kind = 'wheeel'", "kind"),
        ("resources = { disk = '3 GB' }", "resources.disk"),
        ("resume = -1", "resume"),
        ("split = 2", "split = 2, and there are 1 commands in `run`"),
        ("resume = 2", "resume = 2, and there are 1 commands in `run`"),
        ("release = [{ version = 'new', places = [], source = 'x' }]", "release.0.version"),
    ],
)
def test_a_recipe_with_a_fault_is_refused_by_file_and_place(copied: Path, line: str, place: str) -> None:
    (copied / "components" / "hello.toml").write_text(
        "name = 'hello'\nlicense = 'MIT'\nrun = ['true']\noutput = []\n"
        + "".join(
            f"{default}\n"
            for default in ("summary = 's'", "kind = 'wheel'", "release = []")
            if default.split()[0] != line.split()[0]
        )
        + f"{line}\n"
    )
    with pytest.raises(InputError, match=r"hello\.toml is not a valid component") as caught:
        load_catalog(copied)
    assert place in caught.value.cause


@each(("text", "size"), [("1 GiB", 2**30), ("1.5 KiB", 1536), ("0 B", 0), ("2 TiB", 2**41), (7, 7)])
def test_sizes_are_written_for_people(text: object, size: int) -> None:
    assert parse(Resources, {"disk": text}, Path("x.toml")).disk == size


@each("text", ["1 GB", "GiB", "one GiB", "1GiB", "", "nan GiB", "inf GiB", "-1 GiB", True])
def test_what_is_no_size_is_refused(text: object) -> None:
    with pytest.raises(InputError):
        parse(Resources, {"disk": text}, Path("x.toml"))


@each(("name", "near"), [("gfx1150x", "gfx1150"), ("gfx1151 ", "gfx1151"), ("GFX1151", "gfx1151")])
def test_an_unknown_gpu_is_refused_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(InputError, match="unknown GPU target") as caught:
        builtin_catalog().target(name)
    assert near in caught.value.cause + caught.value.next_step


def test_an_unknown_name_near_to_none_is_refused_with_all() -> None:
    with pytest.raises(InputError) as caught:
        builtin_catalog().stack("zzz")
    assert ", ".join(sorted(builtin_catalog().stacks)) in caught.value.cause


@each("name", ["debian", "debian:", "debian:buster", "Debian:sid", ":sid", "", "debian:sid:x"])
def test_an_unknown_base_or_release_is_refused_with_the_known(name: str) -> None:
    with pytest.raises(InputError, match="unknown base") as caught:
        builtin_catalog().base(name)
    assert "debian" in caught.value.cause


def test_a_system_package_is_named_once_and_found_for_each_package_manager() -> None:
    catalog = builtin_catalog()
    found = {
        name: catalog.system_packages(catalog.bases[name], ["jpeg"]) for name in ("debian", "fedora", "arch")
    }
    assert found == {
        "debian": ("libjpeg-dev",),
        "fedora": ("libjpeg-turbo-devel",),
        "arch": ("libjpeg-turbo",),
    }


def test_what_a_base_says_of_a_package_stands_over_its_manager() -> None:
    catalog = builtin_catalog()
    names = ["rocblas", "c++"]
    assert catalog.system_packages(catalog.bases["debian"], names) == ("g++", "librocblas-dev")
    assert catalog.system_packages(catalog.bases["rocm-ubuntu-24.04"], names) == ("g++", "rocblas-dev")


def test_a_system_package_without_a_name_on_a_base_is_refused() -> None:
    catalog = builtin_catalog()
    with pytest.raises(InputError, match=r"has no name on debian \(apt\)") as caught:
        catalog.system_packages(catalog.bases["debian"], ["rocwmma"])
    assert "system.toml knows it for dnf, pacman" in caught.value.cause
    assert "bases/debian.toml" in caught.value.next_step


def test_a_release_says_what_it_provides_over_its_base() -> None:
    base, release = builtin_catalog().base("rocm-ubuntu-24.04:6.3.4")
    assert base.provided(release)["rocm"].version == "6.3.4"


@each(
    ("change", "said"),
    [
        ({"made": "image"}, "does not fit the image of trixie, sid"),
        ({"provides": {"pytorch": {"source": "x"}}}, "a package (whose version counts) or a version"),
        ({"release": [{"name": "sid", "digest": "sha256:12", "source": "x"}]}, "release.0.digest"),
        ({"release": [{"name": "sid"}]}, "release.0.source"),
    ],
)
def test_a_base_that_contradicts_itself_is_refused(change: dict[str, object], said: str) -> None:
    written = builtin_catalog().bases["debian"].model_dump() | change
    with pytest.raises(InputError) as caught:
        parse(Base, written, Path("bases/debian.toml"))
    assert said in caught.value.cause


def test_the_places_of_a_command_are_filled_in() -> None:
    command = ("get", "--into={folder}", "{packages}", "${Package} {year}/{month}")
    assert filled(command, ["a", "b"], folder="/in", year="2025", month="10") == (
        "get", "--into=/in", "a", "b", "${Package} 2025/10",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name", "own"),
    [("stack", "vLLM", "vllm"), ("stack", "Llama.cpp", "llama-vulkan"), ("component", "torch", "pytorch")],
)
def test_another_name_of_a_thing_is_refused_with_its_own(kind: str, name: str, own: str) -> None:
    with pytest.raises(InputError) as caught:
        getattr(builtin_catalog(), kind)(name)
    assert caught.value.next_step == f"use {own}"


@given(name=st.text(max_size=30))
def test_any_name_is_known_or_refused_in_words(name: str) -> None:
    known = {"gfx803": 1, "gfx1151": 2}
    try:
        assert lookup("GPU target", name, known) == known[name]
    except InputError as error:
        assert error.cause
        assert error.next_step
