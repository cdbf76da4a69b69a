"""rocwright.toml and rocwright.lock on disk, whoever wrote them."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.making import lock_of, with_sdist

from rocbase.errors import ConflictError, InputError
from rocbase.toml import folders
from rocwheel_samples.tables import each
from rocwright.catalog.load import builtin_catalog
from rocwright.model.steps import (
    ArchiveOrigin,
    BuiltinOrigin,
    DebianOrigin,
    DebianSourceOrigin,
    FilePin,
    GitOrigin,
    IndexOrigin,
)
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.files import (
    read_lock,
    read_project,
    read_request,
    write_lock,
    write_request,
)
from rocwright.plan.resolve.folder import project_folder
from rocwright.plan.resolve.model import LOCK_SCHEMA, Lock, Request
from rocwright.plan.resolve.validate import check_request

STACKS = sorted(builtin_catalog().stacks)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rocwright.lock"


# the lock


@pytest.mark.parametrize("stack", STACKS)
def test_a_lock_is_read_as_it_was_written(path: Path, stack: str) -> None:
    lock = lock_of(stack)
    write_lock(path, lock)
    assert read_lock(path) == lock
    assert make_plan(read_lock(path), builtin_catalog()) == make_plan(lock, builtin_catalog())


def test_a_source_distribution_comes_back_with_what_builds_it(path: Path) -> None:
    lock = with_sdist(lock_of("rocm", "gfx1103"), "https://index.example/simple/")
    write_lock(path, lock)
    assert read_lock(path) == lock
    assert path.read_text().count("setuptools-80.0-py3-none-any.whl") == 1


words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
origins = st.one_of(
    st.builds(GitOrigin, url=words.filter(lambda url: not url.startswith("-")), commit=st.just("0" * 40)),
    st.builds(IndexOrigin, project=st.just("a.b-c"), version=st.just("1.0")),
    st.builds(BuiltinOrigin, name=st.just("gfx-smoke")),
    st.builds(ArchiveOrigin, url=st.just("https://host.example/a/x.tar.gz")),
    st.builds(
        DebianSourceOrigin,
        suite=st.just("sid"),
        package=st.just("p"),
        version=st.just("1"),
        architecture=st.just("amd64"),
    ),
    st.builds(
        DebianOrigin,
        suite=st.just("sid"),
        package=st.just("p"),
        version=st.just("1"),
        architecture=st.just("amd64"),
    ),
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    place=words, passed=st.lists(words, max_size=3), origin=origins, versions=st.dictionaries(words, words)
)
def test_whatever_text_a_lock_holds_comes_back(
    path: Path, place: str, passed: list[str], origin: Any, versions: dict[str, str]
) -> None:
    lock = lock_of("gfx-smoke")
    pin = FilePin(filename="file-1.0.tar.gz", sha256="0" * 64, size=1, origin=origin)
    changes = {"place": place, "passed_over": tuple(passed), "files": (pin, pin)}
    component = lock.components[0].model_copy(update=changes)
    request = lock.request.model_copy(update={"versions": versions})
    lock = lock.model_copy(
        update={"components": (component,), "request": request, "provided": dict.fromkeys(versions, "1.0")}
    )
    write_lock(path, lock)
    assert read_lock(path, request) == lock


def test_a_lock_has_a_line_for_each_file(path: Path) -> None:
    lock = lock_of("gfx-smoke")
    write_lock(path, lock)
    lines = path.read_text().splitlines()
    pins = [pin for root in lock.roots for pin in root.packages] + [
        pin for component in lock.components for pin in component.files
    ]
    for pin in pins:
        assert len([line for line in lines if pin.sha256 in line]) == 1


def test_writing_the_same_lock_again_gives_the_same_bytes(path: Path) -> None:
    write_lock(path, lock_of("torch-extensions"))
    before = path.read_bytes()
    write_lock(path, read_lock(path))
    assert path.read_bytes() == before


@each("schema", [LOCK_SCHEMA - 1, LOCK_SCHEMA + 1])
def test_a_lock_of_another_schema_is_refused_even_where_it_says_things_unknown_here(
    path: Path, schema: int
) -> None:
    path.write_text(f'schema = {schema}\nnew-thing = "x"\n')
    with pytest.raises(InputError, match=f"has the schema {schema}") as caught:
        read_lock(path)
    assert caught.value.next_step.endswith("lock again with this one: rocwright lock")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"gpu": ("gfx803",)}, "gpu gfx1151 -> gfx803"),
        ({"base": "debian:trixie"}, "base debian:sid -> debian:trixie"),
        ({"stack": "llama-vulkan"}, "stack gfx-smoke -> llama-vulkan"),
        ({"versions": {"torch": "2.6.0"}}, "versions.torch 2.6.0 (new)"),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else "",
)
def test_a_lock_that_does_not_fit_the_project_says_what_changed(
    path: Path, change: dict[str, Any], told: str
) -> None:
    lock = lock_of("gfx-smoke")
    write_lock(path, lock)
    with pytest.raises(InputError, match=r"rocwright\.lock does not match rocwright\.toml") as caught:
        read_lock(path, lock.request.model_copy(update=change))
    assert told in caught.value.cause
    assert caught.value.next_step == "rocwright lock"


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (lambda text: text[:200], "where the file ends"),
        (lambda text: text.replace("schema", "<<<<<<< HEAD\nschema", 1), "begins a merge conflict of git"),
        (lambda text: text.replace("created", "#"), "created: it is missing"),
    ],
    ids=["cut", "conflict", "entry"],
)
def test_a_damaged_lock_is_written_again(path: Path, damage: Callable[[str], str], cause: str) -> None:
    write_lock(path, lock_of("gfx-smoke"))
    path.write_text(damage(path.read_text()))
    with pytest.raises(InputError) as caught:
        read_lock(path)
    assert cause in caught.value.cause
    assert caught.value.next_step == "rocwright lock writes it again"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ('gpu = "gfx803"', 'line 3: gpu: it must be a list, in [brackets]: ["gfx803"]'),
        ('gpu = []\nllama.cpp = "1"', "line 4: llama: there is no such entry"),
        ('gpu = []\n[versions]\nllama.cpp = "1"', 'put a name with a dot in quotes too: "llama.cpp" = ...'),
        ('gpu = []\nallow_untested = "a"', "allow_untested: it must be true or false"),
    ],
)
def test_a_wrong_entry_is_told_in_words_of_toml(tmp_path: Path, text: str, cause: str) -> None:
    (tmp_path / "rocwright.toml").write_text(f'stack = "gfx-smoke"\nbase = "debian:sid"\n{text}\n')
    with pytest.raises(InputError) as caught:
        read_request(tmp_path / "rocwright.toml")
    assert cause in caught.value.cause


def test_a_lock_that_is_not_there_is_told_by_path(path: Path) -> None:
    with pytest.raises(InputError, match=r"rocwright\.lock does not exist"):
        read_lock(path)


# the project file


@pytest.mark.parametrize("versions", [{}, {"torchvision": "0.21.0", "a.b": "1"}])
def test_a_request_is_read_as_it_was_written(tmp_path: Path, versions: dict[str, str]) -> None:
    request = Request(stack="gfx-smoke", gpu=("gfx803", "gfx1151"), base="debian:sid", versions=versions)
    write_request(tmp_path / "rocwright.toml", request)
    assert read_request(tmp_path / "rocwright.toml") == request


def test_a_project_file_that_is_not_there_is_told_with_the_way_to_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no rocwright\.toml") as caught:
        read_request(tmp_path / "rocwright.toml")
    assert "rocwright init" in caught.value.next_step


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('stack = "x"\nbase = "y"\n', "gpu"),
        ('stack = "x"\ngpu = []\nbase = "y"\n', "gpu"),
        ('stack = 3\ngpu = ["a"]\nbase = "y"\n', "stack"),
        ('stack = "x"\ngpu = "gfx1151"\nbase = "y"\n', "gpu"),
        ('stack = "x"\ngpu = ["a"]\nbase = "y"\nstakc = "z"\n', "stakc"),
        ('stack = "x"\ngpu = ["a"]\nbase = "y"\nversions = { torch = 2.6 }\n', "versions.torch"),
    ],
)
def test_each_place_that_is_wrong_is_named(tmp_path: Path, text: str, place: str) -> None:
    (tmp_path / "rocwright.toml").write_text(text)
    with pytest.raises(InputError, match=r"rocwright\.toml is not a valid project file") as caught:
        read_request(tmp_path / "rocwright.toml")
    assert re.match(rf"(line \d+|the file): {place}\b", caught.value.cause)


def test_what_is_wrong_is_told_in_plain_words(tmp_path: Path) -> None:
    (tmp_path / "rocwright.toml").write_text('base = "y"\ngpu = ["a"]\nstakc = "z"\nzzz = 1\n')
    with pytest.raises(InputError) as caught:
        read_request(tmp_path / "rocwright.toml")
    told = "line 3: stakc: there is no such entry, did you mean stack?; line 4: zzz: there is no such entry"
    assert caught.value.cause == told


@each("change", [{"gpu": ("gfx9999",)}, {"stack": "lama-vulkan"}, {"base": "debian:sidd"}, {"base": "arch"}])
def test_names_that_are_not_known_are_refused_with_those_that_are(change: dict[str, Any]) -> None:
    request = lock_of("gfx-smoke").request.model_copy(update=change)
    with pytest.raises(InputError) as caught:
        check_request(request, builtin_catalog())
    assert str(next(iter(change.values()))).strip("(),'") in caught.value.message
    assert caught.value.cause
    assert caught.value.next_step


def test_a_base_on_which_the_stack_has_no_recipe_is_refused_with_those_on_which_it_has() -> None:
    request = lock_of("gfx-smoke").request.model_copy(update={"base": "debian:trixie"})
    with pytest.raises(InputError, match="the stack gfx-smoke has no recipe on debian:trixie") as caught:
        check_request(request, builtin_catalog())
    assert "debian:sid" in caught.value.cause


# hostile files


HOSTILE = {
    "not utf-8": b"stack = \"\xff\xfe\"\n",
    "not toml": b"{{{",
    "deep arrays": b"a = " + b"[" * 50_000,
    "deep tables": b"a = " + b"{a=" * 50_000,
    "deep keys": b"." .join([b"a"] * 1_000) + b" = 1",
    "twice": b'stack = "a"\nstack = "b"\n',
    "a number without end": b"a = " + b"9" * 10_000,
    "no such day": b"a = 2024-02-31\n",
    "null": b"a = \"\0\"\n",
    "empty": b"",
    "a table for a word": b"[stack]\n[gpu]\n[base]\n",
}  # fmt: skip


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("read", [read_lock, read_request])
def test_a_hostile_file_is_refused_by_name(path: Path, data: bytes, read: Any) -> None:
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"rocwright\.lock") as caught:
        read(path)
    assert caught.value.next_step


def test_a_file_too_large_to_be_one_is_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MOST_TOML_BYTES", 1000)
    path.write_text("#" * 1001)
    with pytest.raises(InputError, match="too large to be read"):
        read_lock(path)


def test_a_folder_in_the_place_of_a_file_is_told(path: Path) -> None:
    path.mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        read_lock(path)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_no_bytes_are_too_odd_to_be_refused_in_words(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    for reading in (read_lock, read_request):
        with pytest.raises(InputError):
            reading(path)


def places(data: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to each value in nested data."""
    found = [at] if at else []
    rows = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in rows:
        found += places(value, (*at, key))
    return found


ODD = [0, -1, 2**70, True, 1.5, "", "x", "../../x", "/etc/passwd", "\0", [], ["x"], {}, {"x": 1}, "é" * 300]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    stack=st.sampled_from(STACKS), seed=st.integers(0, 2**32), odd=st.sampled_from(ODD), drop=st.booleans()
)
def test_a_lock_in_which_anything_was_changed_is_refused_in_words_or_planned(
    path: Path, stack: str, seed: int, odd: Any, drop: bool
) -> None:
    write_lock(path, lock_of(stack))
    data = tomlkit.parse(path.read_text()).unwrap()
    *way, last = random.Random(seed).choice(places(data))
    inner = data
    for key in way:
        inner = inner[key]
    if drop:
        del inner[last]
    else:
        inner[last] = odd
    try:
        path.write_text(tomlkit.dumps(data))
    except (ValueError, UnicodeError):
        return
    try:
        make_plan(read_lock(path), builtin_catalog())
    except (InputError, ConflictError) as error:
        assert error.next_step


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("filename", "../../outside"),
        ("filename", "/etc/passwd"),
        ("filename", ".."),
        ("filename", ""),
        ("filename", "a\nb"),
        ("sha256", "0" * 63),
        ("sha256", "../../x"),
        ("size", -1),
    ],
)
def test_a_pin_that_could_lead_anywhere_else_is_refused(path: Path, field: str, value: object) -> None:
    lock = lock_of("gfx-smoke")
    write_lock(path, lock)
    data = tomlkit.parse(path.read_text()).unwrap()
    data["components"][0]["files"][0][field] = value
    path.write_text(tomlkit.dumps(data))
    with pytest.raises(InputError, match="is not a valid lock") as caught:
        read_lock(path)
    assert f"components.0.files.0.{field}" in caught.value.cause


@pytest.mark.parametrize(
    ("field", "value"), [("suite", "../x"), ("architecture", "../../x"), ("package", "-o"), ("version", "")]
)
def test_an_origin_that_is_no_name_of_debian_is_refused(path: Path, field: str, value: str) -> None:
    lock = lock_of("gfx-smoke")
    write_lock(path, lock)
    data = tomlkit.parse(path.read_text()).unwrap()
    data["roots"][0]["packages"][0]["origin"][field] = value
    path.write_text(tomlkit.dumps(data))
    with pytest.raises(InputError):
        read_lock(path)


def test_a_lock_without_a_root_to_build_in_is_refused(path: Path) -> None:
    lock: Lock = lock_of("gfx-smoke")
    write_lock(path, lock)
    data = tomlkit.parse(path.read_text()).unwrap()
    data["roots"] = []
    path.write_text(tomlkit.dumps(data))
    with pytest.raises(InputError):
        make_plan(read_lock(path), builtin_catalog())


# what was changed since it was written


def test_a_lock_carries_the_sha256_of_what_it_says(path: Path) -> None:
    write_lock(path, lock_of("gfx-smoke"))
    text = path.read_text()
    path.write_text(text.replace("0.1.0", "0.1.1"))
    with pytest.raises(InputError, match="was changed after it was written") as caught:
        read_lock(path)
    assert "rocwright lock --accept" in caught.value.next_step
    path.write_text("# a comment of mine\n" + text.replace(" = ", "  =  "))
    assert read_lock(path) == lock_of("gfx-smoke")


def test_every_flipped_byte_of_a_lock_is_noticed_or_changes_nothing_of_what_it_says(path: Path) -> None:
    made = lock_of("gfx-smoke")
    write_lock(path, made)
    whole, draw = path.read_bytes(), random.Random(5)
    for at in draw.sample(range(len(whole)), 150):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << draw.randrange(8))]) + whole[at + 1 :])
        try:
            assert read_lock(path) == made, at
        except InputError:
            continue


def test_an_edit_that_is_kept_is_written_with_its_sha256(path: Path) -> None:
    write_lock(path, lock_of("gfx-smoke"))
    path.write_text(
        path.read_text().replace(
            'name = "gfx-smoke"\nversion = "0.1.0"', 'name = "gfx-smoke"\nversion = "0.1.1"'
        )
    )
    edited = read_lock(path, edited=True)
    assert edited.components[0].version == "0.1.1"
    write_lock(path, edited)
    assert read_lock(path) == edited


def test_a_lock_without_its_sha256_is_refused(path: Path) -> None:
    write_lock(path, lock_of("gfx-smoke"))
    lines = [line for line in path.read_text().splitlines() if not line.startswith("sha256 = ")]
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match="was changed after it was written") as caught:
        read_lock(path)
    assert "it has no sha256" in caught.value.cause


def test_a_project_file_may_call_a_gpu_by_any_of_its_names(tmp_path: Path) -> None:
    path = tmp_path / "rocwright.toml"
    path.write_text(
        'stack = "gfx-smoke"\ngpu = ["RX 580", "gfx803", "780m"]\nbase = "debian:sid"\n'
        '[[matrix]]\nstack = "gfx-smoke"\ngpu = ["strixhalo", "RX580"]\nbase = "debian:sid"\n'
    )
    project = read_project(path)
    assert project.request.gpu == ("gfx803", "gfx1103")
    assert [row.gpu for row in project.rows] == [("gfx1151",), ("gfx803",)]


ROW = '[[matrix]]\nstack = "gfx-smoke"\ngpu = [{}]\nbase = "debian:sid"\n'


def test_a_matrix_alone_is_a_project_file(tmp_path: Path) -> None:
    path = tmp_path / "rocwright.toml"
    path.write_text(ROW.format('"gfx803", "gfx1151"'))
    project = read_project(path)
    assert [row.gpu for row in project.rows] == [("gfx803",), ("gfx1151",)]
    assert project.first == project.rows[0]
    with pytest.raises(InputError, match=r"2 rows in its \[\[matrix\]\]") as caught:
        read_request(path)
    # every verb that takes a lock ends so: none of the others is named
    assert caught.value.next_step.endswith("write behind the verb: gfx-smoke --base debian:sid --gpu gfx803")
    assert "rocwright build" not in caught.value.next_step


def test_the_only_row_of_a_matrix_alone_is_what_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "rocwright.toml"
    path.write_text(ROW.format('"gfx803"'))
    assert read_request(path).gpu == ("gfx803",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('stack = "gfx-smoke"\n', "gpu, base must be given beside stack"),
        ("", "stack, gpu, base must be given, or a [[matrix]]"),
        ('provider = "amd"\n' + ROW.format('"gfx803"'), "stack, gpu, base must be given beside provider"),
    ],
)
def test_half_a_request_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "rocwright.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_project(path)
    assert said in caught.value.cause


def test_the_project_is_looked_for_in_the_folders_above(tmp_path: Path) -> None:
    inner = tmp_path / "project/a/b"
    inner.mkdir(parents=True)
    assert project_folder(inner) == inner
    (tmp_path / "project/rocwright.toml").touch()
    assert project_folder(inner) == tmp_path / "project"
    (inner / "rocwright.toml").touch()
    assert project_folder(inner) == inner


@pytest.mark.skipif(os.geteuid() != 0, reason="files of another user need root")
def test_the_project_of_another_user_above_is_passed_over(tmp_path: Path) -> None:
    inner = tmp_path / "project/a"
    inner.mkdir(parents=True)
    (tmp_path / "project/rocwright.toml").touch()
    os.chown(tmp_path / "project/rocwright.toml", 12345, 12345)
    assert project_folder(inner) == inner
    assert project_folder(tmp_path / "project") == tmp_path / "project"


@pytest.mark.parametrize(
    ("name", "said"), [("RTX 4090", "another maker: NVIDIA"), ("strix", "more than one target")]
)
def test_a_gpu_in_a_project_file_that_cannot_be_meant_is_refused_with_the_file(
    tmp_path: Path, name: str, said: str
) -> None:
    path = tmp_path / "rocwright.toml"
    path.write_text(f'stack = "gfx-smoke"\ngpu = ["{name}"]\nbase = "debian:sid"\n')
    with pytest.raises(InputError, match=said) as caught:
        read_project(path)
    assert str(path) in caught.value.detail
