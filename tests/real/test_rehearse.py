"""Rows rehearsed for real: what would break their builds is found, once its mend is taken out.

`make real` tries the trees within torch. The rest is nightly. Some of it wants ROCm's packages: 1.7 GB, and
a root of 9.6 GB.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rocwright.catalog.load import Catalog, builtin_catalog
from rocwright.catalog.place import BuiltinPlace
from rocwright.execution.fetch import fetch
from rocwright.execution.options import BuildOptions
from rocwright.execution.progress import choose_progress
from rocwright.home import Home
from rocwright.model.architecture import host_architecture
from rocwright.model.edits import Edit
from rocwright.records.model import Which
from rocwright.records.opening import read_records
from rocwright.rehearsal.book import Book, read_book
from rocwright.rehearsal.result import RowRehearsed, TrialTally
from rocwright.rehearsal.rows import asked_rows
from rocwright.rehearsal.run import How, Rehearser
from rocwright.sources.archive import unpack
from rocwright.sources.bases.roots import remove_tree
from rocwright.sources.bases.tools import Tools
from rocwright.sources.debian import DebianArchive
from rocwright.store.local import LocalStore
from rocwright.store.model import verified
from rocwright.verify.standing import local_evidence

pytestmark = pytest.mark.real

FEDORA = "vllm_gfx1151_fedora-43_distribution_vllm=0.10.2"
ARCH = "pytorch_gfx803_arch-2025-10-15_distribution_pytorch=2.6.0"
SID = "pytorch_gfx803_debian-sid_distribution_pytorch=2.6.0"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """One home for all of them, or $ROCWRIGHT_TEST_HOME, which may have the roots already."""
    named = os.environ.get("ROCWRIGHT_TEST_HOME")
    if named:
        yield Home(Path(named))
        return
    path = tmp_path_factory.mktemp("home")
    yield Home(path)
    remove_tree(path)


def changed(component: str, **otherwise: Any) -> Catalog:
    """The catalog with another recipe of a component."""
    catalog = builtin_catalog()
    recipe = catalog.component(component).model_copy(update=otherwise)
    return replace(catalog, components={**catalog.components, component: recipe})


def without(component: str, meant: Callable[[Edit], bool]) -> Catalog:
    """The catalog whose recipe of a component lacks the edits that are meant."""
    before = builtin_catalog().component(component).edit
    edits = tuple(one for one in before if not meant(one))
    assert len(edits) < len(before)
    return changed(component, edit=edits)


def only(book: Book, component: str, **otherwise: Any) -> Book:
    """What is tried of one component alone: of its later versions, where those before have their own."""
    told = [one for one in book.rehearsal if component in one.components][-1]
    return book.model_copy(update={"rehearsal": (told.model_copy(update=otherwise),)})


def rehearsed(
    home: Home, name: str, catalog: Catalog | None = None, change: Callable[[Book], Book] = lambda book: book
) -> RowRehearsed:
    catalog = catalog or builtin_catalog()
    [request] = asked_rows(catalog, [name])
    with choose_progress() as progress:
        rehearser = Rehearser(catalog, home, BuildOptions(engine="bubblewrap"), How(), progress)
        rehearser.book = change(rehearser.book)
        return rehearser.row(request)


def parts(told: RowRehearsed, component: str) -> Mapping[str, TrialTally]:
    [found] = [one for one in told.components if one.component == component]
    return {f"{one.part}: {one.name}": one for one in found.parts}


def vllm(book: Book) -> Book:
    return only(book, "vllm")


def third_party(book: Book) -> Book:
    """The trees within torch's, apart from what wants ROCm."""
    return only(book, "pytorch", trial=())


@pytest.mark.nightly
def test_vllm_is_rehearsed_and_evidence_is_kept_of_it(home: Home) -> None:
    told = rehearsed(home, FEDORA, change=vllm)
    found = parts(told, "vllm")
    assert not told.failed
    assert {name: (one.tried, one.all) for name, one in found.items()} == {
        "edits: edits": (5, 5),
        "import: vllm.platforms.rocm": (3, 3),
        "import: vllm.platforms": (3, 3),
        "device: attention.cu knows the GPU": (1, 1),
        "configure: CMakeLists.txt takes the GPU": (1, 1),
    }
    assert told.word == f"rehearsed in part ({told.tried} of {told.all})"
    [evidence] = [one for one in local_evidence(home) if (one.said, one.base) == ("rehearsed", told.base)]
    assert evidence.detail == f"{told.tried} of {told.all} tried"
    # the second time all of it is in the store
    with read_records(home) as records:
        before = {step.key for run in records.runs(Which()) for step in run.steps if step.key}
        assert rehearsed(home, FEDORA, change=vllm).word == told.word
        assert {step.key for run in records.runs(Which()) for step in run.steps if step.key} == before


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("file", "part", "name", "said"),
    [
        ("vllm/platforms/rocm.py", "import: vllm.platforms.rocm", "amdsmi", "amdsmi_init"),
        ("vllm/platforms/__init__.py", "import: vllm.platforms", "amdsmi", "RocmPlatform"),
        ("csrc/rocm/attention.cu", "device: attention.cu knows the GPU", "attention.cu", "__HIP__GFX11__"),
        ("CMakeLists.txt", "configure: CMakeLists.txt takes the GPU", "CMakeLists.txt", "ended with 1"),
    ],
)
def test_without_one_of_its_edits_the_rehearsal_of_vllm_fails(
    home: Home, file: str, part: str, name: str, said: str
) -> None:
    def one(book: Book) -> Book:
        trials = only(book, "vllm").rehearsal[0].trial
        return only(book, "vllm", trial=tuple(one for one in trials if part == f"{one.part}: {one.name}"))

    told = rehearsed(home, FEDORA, without("vllm", lambda edit: edit.file == file), one)
    assert "rehearsal failed" in told.word
    assert told.failed == parts(told, "vllm")[part].failed
    assert any(name in fault.name and said in fault.detail for fault in told.failed)


@pytest.mark.nightly
def test_an_edit_that_fits_no_longer_is_named_and_the_rest_is_tried(home: Home) -> None:
    edits = builtin_catalog().component("vllm").edit
    drifted = next(one for one in edits if one.file == "csrc/rocm/attention.cu")
    drifted = drifted.model_copy(update={"literal": "(__gfx_nonesuch__)", "replacement": "(__gfx_never__)"})
    catalog = changed("vllm", edit=(*edits, drifted))
    told = rehearsed(home, FEDORA, catalog, vllm)
    [fault] = told.failed
    assert fault.name == "csrc/rocm/attention.cu"
    assert "matches 0 times" in fault.detail
    assert parts(told, "vllm")["import: vllm.platforms"].tried == 3


def test_third_party_trees_of_torch_are_compiled_by_the_newest_compilers(home: Home) -> None:
    told = rehearsed(home, ARCH, change=third_party)
    found = parts(told, "pytorch")
    assert not told.failed
    assert found["edits: edits"].tried == 4
    assert (
        "only for the tree of git" in "".join(found["edits: edits"].reasons) or found["edits: edits"].reasons
    )
    assert found["compile: gloo"].tried == 10
    assert found["compile: tensorpipe"].tried == 6


@pytest.mark.parametrize(
    ("file", "faults"),
    [
        ("third_party/gloo/gloo/types.h", {"gloo/types.cc g++", "gloo/types.cc clang++"}),
        *(
            pytest.param(f"third_party/{name}/CMakeLists.txt", {name}, marks=pytest.mark.nightly)
            for name in ("gloo", "FP16", "psimd")
        ),
    ],
)
def test_without_one_of_their_edits_they_fail(home: Home, file: str, faults: set[str]) -> None:
    told = rehearsed(home, ARCH, without("pytorch", lambda edit: edit.file == file), third_party)
    assert faults <= {fault.name for fault in told.failed}
    said = "uint8_t" if file.endswith(".h") else "CMake"
    assert all(said in fault.detail for fault in told.failed if fault.name in faults)


CSTDINT = re.compile(r"^#include <cstdint>\n", re.MULTILINE)


@pytest.fixture(scope="module")
def old_tensorpipe(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a catalog with tensorpipe as torch has it up to 2.8: without the two includes."""
    folder = tmp_path_factory.mktemp("catalog")
    tree = folder / "sources/tensorpipe"
    architecture = builtin_catalog().bases["debian"].architecture[host_architecture()]
    archive = DebianArchive(Tools(home), "sid", architecture)
    archive.refresh()
    store = LocalStore(home.store)
    [pin] = [one for one in archive.source("tensorpipe").files if ".orig.tar." in one.filename]
    fetch([pin], store, home, home.path / "scratch", print)
    unpack(verified(store, pin.sha256), tree, filename=pin.filename)
    for name in ("allocator.h", "memory.h"):
        path = tree / "tensorpipe/common" / name
        text, count = CSTDINT.subn("", path.read_text())
        assert count == 1
        path.write_text(text)
    return folder


@pytest.mark.nightly
@pytest.mark.parametrize("mended", [True, False])
def test_tensorpipe_needs_its_includes_with_the_newest_gcc(
    home: Home, old_tensorpipe: Path, mended: bool
) -> None:
    def old(book: Book) -> Book:
        ours = third_party(book)
        [within] = [one for one in ours.rehearsal[0].within if "tensorpipe" in one.folder]
        place = {"place": BuiltinPlace(builtin="tensorpipe"), "version": "2022", "edits": True}
        return only(ours, "pytorch", within=(within.model_copy(update=place),))

    ours = [one for one in builtin_catalog().component("pytorch").edit if "/tensorpipe/common/" in one.file]
    assert len(ours) == 2
    catalog = changed("pytorch", edit=tuple(ours) if mended else ())
    catalog = replace(catalog, folders=(old_tensorpipe, *catalog.folders))
    told = rehearsed(home, ARCH, catalog, old)
    assert parts(told, "pytorch")["compile: tensorpipe"].tried == 6
    if mended:
        assert told.failed == ()
    else:
        assert {"g++"} <= {fault.name.split()[-1] for fault in told.failed}
        assert any("allocator.h" in fault.detail and "uint8_t" in fault.detail for fault in told.failed)


@pytest.mark.nightly
def test_torch_is_configured_and_its_kernels_compiled_for_the_card(home: Home) -> None:
    told = rehearsed(home, SID)
    found = parts(told, "pytorch")
    assert not told.failed
    assert found["configure: configure"].tried == 1
    assert found["configure: what compiles on it finds ROCm"].tried == 1
    assert found["device: kernels"].tried == 2


@pytest.mark.nightly
def test_without_its_settings_what_compiles_on_torch_finds_no_rocm_in_usr(home: Home) -> None:
    def one(book: Book) -> Book:
        trials = only(book, "pytorch").rehearsal[0].trial
        kept = [trial for trial in trials if "compiles on it" in trial.name]
        return only(book, "pytorch", trial=tuple(kept), within=())

    assert not rehearsed(home, SID, change=one).failed
    told = rehearsed(home, SID, changed("pytorch", setup=()), one)
    [fault] = told.failed
    assert fault.name == "what compiles on it finds ROCm"


@pytest.mark.nightly
def test_without_its_standard_sd_server_does_not_compile_with_the_newest_gcc(home: Home) -> None:
    def one(book: Book) -> Book:
        trials = only(book, "stable-diffusion.cpp-hip").rehearsal[0].trial
        kept = [trial for trial in trials if trial.name in ("configure", "host code")]
        return only(book, "stable-diffusion.cpp-hip", trial=tuple(kept))

    row = "stable-diffusion-hip_gfx803_debian-sid_distribution"
    assert not rehearsed(home, row, change=one).failed
    recipe = builtin_catalog().component("stable-diffusion.cpp-hip")
    run = tuple(command.replace(" -DCMAKE_CXX_STANDARD=17", "") for command in recipe.run)
    assert run != recipe.run
    [fault] = rehearsed(home, row, changed("stable-diffusion.cpp-hip", run=run), one).failed
    assert "runtime.cpp" in fault.name
    assert "u8string" in fault.detail


def test_each_trial_of_the_catalog_has_a_stand_in() -> None:
    book = read_book(builtin_catalog())
    for told in book.rehearsal:
        for trial in (*told.trial, *(trial for within in told.within for trial in within.trial)):
            assert book.stands_in(trial.on, "/usr")
