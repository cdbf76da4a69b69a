"""Python requirements resolved to exact files, at an index served here."""

from __future__ import annotations

import io
import zipfile
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.tags import Tag
from tests.sources.conftest import Index
from tests.sources.test_sdist import files, sdist

from rocbase.errors import ConflictError, FetchError, InputError, NetworkError
from rocbase.files.bounds import METADATA
from rocwright.model.steps import IndexOrigin
from rocwright.sources.index import download, resolve
from rocwright.sources.pins import check_pin
from rocwright.sources.python_resolver import Interpreter
from rocwright.store.local import LocalStore


def wheel(name: str, version: str, *needs: str) -> bytes:
    """The bytes of an empty wheel that needs others."""
    said = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    said += "".join(f"Requires-Dist: {one}\n" for one in needs)
    folder = f"{name}-{version}.dist-info"
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(f"{folder}/METADATA", said)
        archive.writestr(f"{folder}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{folder}/RECORD", "")
    return target.getvalue()


@pytest.fixture
def published(index: Index) -> Index:
    """maker needs helper; each in several versions, one of them for another Python."""
    index.files["maker"] = {
        f"maker-{version}-py3-none-any.whl": wheel("maker", version, "helper>=2")
        for version in ("3.9", "4.0", "4.1")
    }
    index.files["helper"] = {
        "helper-1.0-py3-none-any.whl": wheel("helper", "1.0"),
        "helper-2.0-cp313-cp313-manylinux_2_28_x86_64.whl": wheel("helper", "2.0"),
        "helper-3.0-cp399-cp399-manylinux_2_28_x86_64.whl": wheel("helper", "3.0"),
    }
    return index


def test_all_that_is_needed_is_pinned_for_that_python_with_hash_and_size(
    published: Index, store: LocalStore, tmp_path: Path
) -> None:
    pins = resolve(("maker<4",), "3.13", "x86_64", store).wheels
    assert [pin.filename for pin in pins] == [
        "helper-2.0-cp313-cp313-manylinux_2_28_x86_64.whl",
        "maker-3.9-py3-none-any.whl",
    ]
    for pin in pins:
        download(pin, tmp_path)
        check_pin(tmp_path / pin.filename, pin)


def test_a_project_left_to_others_brings_neither_itself_nor_what_it_requires(
    index: Index, store: LocalStore
) -> None:
    index.files["torch"] = {"torch-2.9-py3-none-any.whl": wheel("torch", "2.9", "nvidia-thing")}
    index.files["tuner"] = {
        f"tuner-{version}-py3-none-manylinux_2_24_x86_64.whl": wheel("tuner", version, "torch>=2,<3")
        for version in ("1.0", "1.1")
    }
    pins = resolve(("tuner",), "3.13", "x86_64", store, leave=("torch", "nvidia-*")).wheels
    assert [pin.filename for pin in pins] == ["tuner-1.1-py3-none-manylinux_2_24_x86_64.whl"]
    with pytest.raises((ConflictError, FetchError)):
        resolve(("tuner",), "3.13", "x86_64", store)


@pytest.mark.parametrize("tag", ["manylinux2014", "manylinux2010", "manylinux1"])
def test_a_wheel_with_an_older_name_of_its_platform_is_taken(
    index: Index, store: LocalStore, tag: str
) -> None:
    name = f"old-1.0-cp313-cp313-{tag}_x86_64.whl"
    index.files["old"] = {name: wheel("old", "1.0")}
    assert [pin.filename for pin in resolve(("old",), "3.13", "x86_64", store).wheels] == [name]


def test_names_and_requirements_that_are_made_to_grow_are_passed_over(
    index: Index, store: LocalStore
) -> None:
    """27 million combinations of tags in 4 KB, digits that Python does not convert, a nested marker."""
    tags = "-".join(".".join(f"{part}{number}" for number in range(300)) for part in "abc")
    nested = f"helper; {'(' * 1900}python_version > '3'{')' * 1900}"
    index.files["maker"] = {
        "maker-1.0-py3-none-any.whl": wheel("maker", "1.0"),
        f"maker-1.1-{tags}.whl": b"",
        f"maker-{'9' * 5000}-py3-none-any.whl": b"",
        "maker-1.2-1/../../y-py3-none-any.whl": b"",
        "maker-1.3-py3-none-any.whl": wheel("maker", "1.3", nested),
        "maker-1.4-py3-none-any.whl": wheel("maker", "1.4", f"helper>={'1' * 5000}"),
    }
    pins = resolve(("maker",), "3.13", "x86_64", store).wheels
    assert [pin.filename for pin in pins] == ["maker-1.0-py3-none-any.whl"]


def test_a_project_left_to_others_must_still_have_a_version_that_fits(
    index: Index, store: LocalStore
) -> None:
    index.files["torch"] = {"torch-3.1-py3-none-any.whl": wheel("torch", "3.1")}
    index.files["tuner"] = {"tuner-1.0-py3-none-any.whl": wheel("tuner", "1.0", "torch>=2,<3")}
    with pytest.raises(ConflictError):
        resolve(("tuner",), "3.13", "x86_64", store, leave=("torch",))


def test_what_is_kept_stays_in_its_version_and_brings_nothing_along(
    published: Index, store: LocalStore
) -> None:
    kept = {"maker": "4.0", "unrelated": "1.0"}
    pins = resolve(("helper",), "3.13", "x86_64", store, kept=kept).wheels
    assert [pin.filename for pin in pins] == ["helper-2.0-cp313-cp313-manylinux_2_28_x86_64.whl"]
    pins = resolve(("maker",), "3.13", "x86_64", store, kept=kept).wheels
    assert [pin.filename for pin in pins][1] == "maker-4.0-py3-none-any.whl"
    with pytest.raises(ConflictError):
        resolve(("maker<4",), "3.13", "x86_64", store, kept=kept)


def test_another_index_may_be_named_and_is_in_the_pin(
    published: Index, store: LocalStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    endpoint = f"{published.url}/simple"
    (pin,) = resolve(("helper==1.0",), "3.13", "x86_64", store, endpoint=endpoint).wheels
    assert pin.origin == IndexOrigin(project="helper", version="1.0", index=endpoint)
    assert pin.sha256 == sha256(published.files["helper"][pin.filename]).hexdigest()
    download(pin, tmp_path)
    check_pin(tmp_path / pin.filename, pin)


def test_what_an_index_does_not_have_may_come_from_pips_own(
    published: Index, vendor: Index, store: LocalStore, tmp_path: Path
) -> None:
    vendor.files["maker"] = {"maker-3.0-py3-none-any.whl": wheel("maker", "3.0", "helper>=2")}
    endpoint = f"{vendor.url}/simple"
    with pytest.raises(FetchError, match="no project helper"):
        resolve(("maker",), "3.13", "x86_64", store, endpoint=endpoint)
    pins = resolve(("maker",), "3.13", "x86_64", store, endpoint=endpoint, fallback=True).wheels
    assert [(pin.filename, pin.origin) for pin in pins] == [
        (
            "helper-2.0-cp313-cp313-manylinux_2_28_x86_64.whl",
            IndexOrigin(project="helper", version="2.0", index=""),
        ),
        ("maker-3.0-py3-none-any.whl", IndexOrigin(project="maker", version="3.0", index=endpoint)),
    ]
    for pin in pins:
        download(pin, tmp_path)
        check_pin(tmp_path / pin.filename, pin)


def test_a_project_that_an_index_has_is_from_there_alone_however_new_the_others(
    published: Index, vendor: Index, store: LocalStore
) -> None:
    vendor.files["maker"] = {"maker-3.0-py3-none-any.whl": wheel("maker", "3.0")}
    endpoint = f"{vendor.url}/simple"
    (pin,) = resolve(("maker",), "3.13", "x86_64", store, endpoint=endpoint, fallback=True).wheels
    assert pin.filename == "maker-3.0-py3-none-any.whl"
    with pytest.raises(ConflictError):
        resolve(("maker>=4",), "3.13", "x86_64", store, endpoint=endpoint, fallback=True)


def test_an_index_that_is_silent_is_not_passed_over(
    published: Index, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(NetworkError, match="the package index does not answer"):
        resolve(("maker",), "3.13", "x86_64", store, endpoint="http://127.0.0.1:9/simple", fallback=True)


def test_an_index_that_tells_no_sizes_makes_the_files_be_looked_at(
    published: Index, store: LocalStore
) -> None:
    published.form = "html"
    (pin,) = resolve(("helper==1.0",), "3.13", "x86_64", store).wheels
    assert pin.size == len(published.files["helper"][pin.filename])
    assert store.has(pin.sha256, pin.size)


def test_requirements_that_none_fit_are_a_conflict_with_who_asks(published: Index, store: LocalStore) -> None:
    with pytest.raises(ConflictError, match=r"no Python packages for Python 3\.12 satisfy maker") as caught:
        resolve(("maker",), "3.12", "x86_64", store)
    assert "helper" in caught.value.detail


def test_what_is_no_requirement_never_becomes_an_option(published: Index, store: LocalStore) -> None:
    for text in ("--extra-index-url=http://elsewhere", "-r /etc/passwd", "a b c", "a @ http://b/a.tar.gz"):
        with pytest.raises(InputError, match="is not a Python requirement"):
            resolve((text,), "3.13", "x86_64", store)


def test_what_else_pip_is_set_up_for_is_left_aside(
    published: Index, store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "helper-9.0-py3-none-any.whl").write_bytes(wheel("helper", "9.0"))
    settings = tmp_path / "pip.conf"
    settings.write_text(f"[global]\nfind-links = {tmp_path}\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    (pin,) = resolve(("helper",), "3.13", "x86_64", store).wheels
    assert pin.filename == "helper-2.0-cp313-cp313-manylinux_2_28_x86_64.whl"


def test_no_index_is_a_network_failure(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(NetworkError, match="the package index does not answer"):
        resolve(("maker",), "3.13", "x86_64", store, endpoint="http://127.0.0.1:9/simple")


INFO = "Metadata-Version: 2.1\nName: {}\nVersion: {}\nRequires-Dist: helper\n"


@pytest.fixture
def without_wheels(published: Index) -> Index:
    """older-style publishes source distributions alone, and needs helper."""
    published.files["older-style"] = {
        f"older-style-{version}.tar.gz": sdist(**files(INFO.format("Older_Style", version)))
        for version in ("0.9", "1.0")
    }
    return published


def test_a_project_without_any_wheel_is_taken_as_a_source_distribution(
    without_wheels: Index, store: LocalStore
) -> None:
    found = resolve(("older.style>=0.5",), "3.13", "x86_64", store)
    (one,) = found.sdists
    data = without_wheels.files["older-style"]["older-style-1.0.tar.gz"]
    assert (one.pin.filename, one.pin.sha256) == ("older-style-1.0.tar.gz", sha256(data).hexdigest())
    assert one.pin.origin == IndexOrigin(project="older-style", version="1.0")
    assert one.build == ("setuptools", "wheel")
    assert [pin.filename for pin in found.wheels] == ["helper-2.0-cp313-cp313-manylinux_2_28_x86_64.whl"]
    assert store.has(one.pin.sha256, one.pin.size)


def test_extras_of_a_source_distribution_are_followed(without_wheels: Index, store: LocalStore) -> None:
    info = (
        INFO.format("chooser", "7.14.0")
        + "Provides-Extra: device-x\nRequires-Dist: maker; extra == 'device-x'\n"
    )
    without_wheels.files["chooser"] = {"chooser-7.14.0.tar.gz": sdist(**files(info))}
    names = [
        [pin.filename.partition("-")[0] for pin in resolve((wanted,), "3.13", "x86_64", store).wheels]
        for wanted in ("chooser==7.14.0", "chooser[device-x]==7.14.0")
    ]
    assert names == [["helper"], ["helper", "maker"]]


def test_ranges_choose_among_source_distributions_too(without_wheels: Index, store: LocalStore) -> None:
    (one,) = resolve(("older-style<1",), "3.13", "x86_64", store).sdists
    assert one.pin.filename == "older-style-0.9.tar.gz"


def test_what_its_metadata_asks_for_is_a_reason_for_a_conflict(
    without_wheels: Index, store: LocalStore
) -> None:
    with pytest.raises(ConflictError, match="satisfy older-style") as caught:
        resolve(("older-style", "helper<1"), "3.13", "x86_64", store)
    assert caught.value.cause == "helper<1"


def test_a_project_with_wheels_for_others_stays_a_conflict(published: Index, store: LocalStore) -> None:
    published.files["helper"]["helper-4.0.tar.gz"] = sdist(**files(INFO.format("helper", "4.0")))
    with pytest.raises(ConflictError):
        resolve(("helper>=4",), "3.13", "x86_64", store)


def test_a_source_distribution_under_anothers_name_is_refused(
    without_wheels: Index, store: LocalStore
) -> None:
    without_wheels.files["older-style"] = {
        "older-style-1.0.tar.gz": sdist(**files(INFO.format("other", "1.0")))
    }
    with pytest.raises(FetchError, match="is named other"):
        resolve(("older-style",), "3.13", "x86_64", store)


def test_a_source_distribution_that_is_not_what_the_index_says_is_refused(
    without_wheels: Index, store: LocalStore
) -> None:
    without_wheels.wrong = b"something else"
    with pytest.raises(FetchError, match="does not match the lock"):
        resolve(("older-style",), "3.13", "x86_64", store)
    assert list(store.local.files()) == []


@pytest.mark.parametrize("folder", [False, True])
def test_mirrors_reach_the_files_that_a_page_links_to(
    without_wheels: Index,
    store: LocalStore,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    folder: bool,
) -> None:
    here, told = without_wheels.url, "https://files.example"
    everything = {name: data for rows in without_wheels.files.values() for name, data in rows.items()}
    (tmp_path / "files").mkdir()
    for name, data in everything.items():
        (tmp_path / "files" / name).write_bytes(data)
    without_wheels.url = told
    at = str(tmp_path) if folder else here
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", f"{told}/={at}/")
    if folder:
        without_wheels.truncate = True
    found = resolve(("maker", "older-style"), "3.13", "x86_64", store)
    pins = [*found.wheels, *(one.pin for one in found.sdists)]
    assert [pin.filename for pin in pins][-1] == "older-style-1.0.tar.gz"
    (tmp_path / "down").mkdir()
    for pin in pins:
        assert told not in pin.model_dump_json()
        download(pin, tmp_path / "down")
        check_pin(tmp_path / "down" / pin.filename, pin)


@pytest.fixture
def building_sdist(index: Index, tmp_path: Path) -> str:
    """The address of a source distribution that leaves a file where it is built."""
    program = f"open({str(tmp_path / 'built')!r}, 'w')\n"
    index.files["evil"] = {
        "evil-1.0.tar.gz": sdist(**(files(INFO.format("evil", "1.0")) | {"setup_dot_py": program}))
    }
    return f"{index.url}/files/evil-1.0.tar.gz"


@pytest.mark.parametrize("prefix", ["", "git+", "file://"])
def test_a_requirement_that_names_an_address_is_refused_with_who_asks(
    index: Index, store: LocalStore, tmp_path: Path, building_sdist: str, prefix: str
) -> None:
    index.files["lure"] = {
        "lure-1.0-py3-none-any.whl": wheel("lure", "1.0", f"evil @ {prefix}{building_sdist}")
    }
    with pytest.raises(FetchError, match=r"lure-1\.0-py3-none-any\.whl requires evil from"):
        resolve(("lure",), "3.13", "x86_64", store)
    assert not (tmp_path / "built").exists()


def test_what_was_uploaded_after_the_day_is_not_taken(published: Index, store: LocalStore) -> None:
    published.rows["maker-4.1-py3-none-any.whl"] = {"upload-time": "2026-11-20T00:00:00Z"}
    until = datetime(2026, 11, 1, tzinfo=UTC)
    names = [pin.filename for pin in resolve(("maker",), "3.13", "x86_64", store, until=until).wheels]
    assert names[1] == "maker-4.0-py3-none-any.whl"


def test_a_withdrawn_version_is_taken_only_by_its_name(published: Index, store: LocalStore) -> None:
    published.rows["maker-4.1-py3-none-any.whl"] = {"yanked": "broken"}
    for wanted, name in (("maker", "maker-4.0"), ("maker==4.1", "maker-4.1")):
        assert resolve((wanted,), "3.13", "x86_64", store).wheels[1].filename.startswith(name)


def test_markers_are_those_of_the_python_that_the_files_are_for(index: Index, store: LocalStore) -> None:
    index.files["chooser"] = {
        "chooser-1.0-py3-none-any.whl": wheel("chooser", "1.0", "newer; python_version>='3.13'")
    }
    index.files["newer"] = {"newer-1.0-py3-none-any.whl": wheel("newer", "1.0")}
    counts = [len(resolve(("chooser",), python, "x86_64", store).wheels) for python in ("3.12", "3.13")]
    assert counts == [1, 2]


def test_a_version_whose_requirements_cannot_be_read_is_passed_over(index: Index, store: LocalStore) -> None:
    index.files["odd"] = {
        "odd-1.0-py3-none-any.whl": wheel("odd", "1.0"),
        "odd-2.0-py3-none-any.whl": wheel("odd", "2.0", "a b c"),
    }
    assert [pin.filename for pin in resolve(("odd",), "3.13", "x86_64", store).wheels] == [
        "odd-1.0-py3-none-any.whl"
    ]


def test_metadata_beside_a_wheel_must_have_its_hash(published: Index, store: LocalStore) -> None:
    name = "helper-2.0-cp313-cp313-manylinux_2_28_x86_64.whl"
    published.rows[name] = {"core-metadata": {"sha256": "0" * 64}}
    published.files["beside"] = {f"{name}.metadata": b"Name: helper\n"}
    with pytest.raises(FetchError, match="does not match its hash"):
        resolve(("helper==2.0",), "3.13", "x86_64", store)


def test_a_wheel_with_endless_metadata_is_refused(index: Index, store: LocalStore) -> None:
    index.files["large"] = {"large-1.0-py3-none-any.whl": wheel("large", "1.0", "x" * (METADATA + 1))}
    with pytest.raises(FetchError, match="not a readable wheel"):
        resolve(("large",), "3.13", "x86_64", store)


def test_markers_and_tags_say_nothing_of_the_python_that_resolves() -> None:
    python = Interpreter("3.13", "aarch64")
    assert python.environment() == default_environment() | {
        "implementation_name": "cpython",
        "implementation_version": "3.13.0",
        "os_name": "posix",
        "platform_machine": "aarch64",
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        "python_full_version": "3.13.0",
        "python_version": "3.13",
        "sys_platform": "linux",
    }
    assert Tag("cp313", "none", "any") in python.tags()
    assert Tag("py3", "none", "manylinux_2_34_aarch64") in python.tags()
    assert Tag("cp311", "none", "any") not in python.tags()


@pytest.mark.parametrize(
    ("said", "fits"),
    [(None, True), (">=3.13", True), ("<3.14", True), (">=3.14", False), ("==3.12.*", False), ("new", True)],
)
def test_a_file_may_say_which_python_it_is_for(said: str | None, fits: bool) -> None:
    assert Interpreter("3.13", "x86_64").accepts(said) is fits


def test_of_a_version_the_newest_build_is_taken(index: Index, store: LocalStore) -> None:
    for builds in (["", "1-"], ["2-", "", "1-"]):
        names = [f"a-1-{build}py3-none-any.whl" for build in builds]
        index.files["a"] = dict.fromkeys(names, wheel("a", "1"))
        [pin] = resolve(("a",), "3.13", "x86_64", store).wheels
        assert pin.filename == f"a-1-{max(builds)}py3-none-any.whl"


def test_no_file_of_this_machine_is_taken_for_one_of_an_index(
    index: Index, store: LocalStore, tmp_path: Path
) -> None:
    name = "lure-1.0-py3-none-any.whl"
    (tmp_path / name).write_bytes(wheel("lure", "1.0"))
    index.hashes, index.files["lure"] = False, {name: b""}
    index.rows[name] = {"url": (tmp_path / name).as_uri(), "size": None}
    with pytest.raises(FetchError, match="as the address of a file"):
        resolve(("lure",), "3.13", "x86_64", store)
