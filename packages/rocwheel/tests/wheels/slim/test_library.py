"""Libraries and programs compiled for many GPUs, made smaller, and loaded."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocbase.errors import CheckError, ExplainedError, InputError
from rocwheel.wheels.devicecode.code_objects import code_objects, read_code
from rocwheel.wheels.slim import slim
from rocwheel_samples.fatbin import compressed_bundle, entry_id, gpu_elf, plain_bundle
from rocwheel_samples.hip_compiler import compile_library, llvm, run
from rocwheel_samples.loading import code_in, embed, link_program, registered

TARGETS = ("gfx1100", "gfx1151", "gfx803", "gfx90a:xnack+", "gfx90a:xnack-")
CODE_SIZE = 30_000
EMBEDDED = {"gfx803": 0x2A, "gfx1151": 0x4A}
LARGE = """
__device__ unsigned long large{number}[] = {{{noise}}};
extern "C" __global__ void {name}(unsigned long *a) {{
    int i = __builtin_amdgcn_workitem_id_x();
    a[i] += large{number}[i + a[0]];
}}
"""


def unit(number: int, name: str) -> str:
    """A kernel, and data that do not compress."""
    noise = hashlib.shake_256(name.encode()).digest(CODE_SIZE)
    words = ",".join(f"{word}u" for (word,) in struct.iter_unpack("<Q", noise))
    return LARGE.format(number=number, name=name, noise=words)


UNITS = (unit(1, "one"), unit(2, "two"))

Compile = Callable[..., Path]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """The library of these arguments, compiled once."""
    known: dict[object, Path] = {}

    def compile_(targets: Sequence[str] = TARGETS, **options: object) -> Path:
        key = (tuple(targets), tuple(options.items()))
        if key not in known:
            folder = tmp_path_factory.mktemp("compiled")
            known[key] = compile_library(folder, targets, units=UNITS, **options)  # type: ignore[arg-type]
        return known[key]

    return compile_


def slimmed(library: Path, out: Path, *gpus: str, **options: object) -> Path:
    slim(library, gpus, out, epoch=0, **options)  # type: ignore[arg-type]
    return out


def sections(path: Path) -> dict[str, tuple[int, bytes]]:
    with path.open("rb") as file:
        return {one.name: (one["sh_addr"], one.data()) for one in ELFFile(file).iter_sections()}


PAGE = 4096
MAY_CHANGE = {".hip_fatbin", ".rela.dyn", ".symtab", ".hipFatBinSegment"}
"""Sections that say where the bundles are, and those themselves."""

LINKS = {
    "lld": (),
    "bfd": ("-fuse-ld=bfd",),
    "packed relocations": ("-Wl,-z,pack-relative-relocs",),
    "addends in place": ("-Wl,--apply-dynamic-relocs",),
    "large pages": ("-Wl,-z,max-page-size=0x200000",),
    "bfd in one segment": ("-fuse-ld=bfd", "-Wl,-z,noseparate-code"),
}


@pytest.mark.parametrize("link", LINKS)
def test_a_library_loads_with_the_same_code_of_the_target_that_stays_and_without_the_rest(
    compiled: Compile, tmp_path: Path, link: str
) -> None:
    library = compiled(link=LINKS[link])
    small = slimmed(library, tmp_path / "small.so", "gfx1151")
    content = small.read_bytes()
    gone = 0
    for old, new in zip(registered(library), registered(small), strict=True):
        code = code_in(old)
        assert code_in(new) == {name: code for name, code in code.items() if name.endswith("--gfx1151")}
        assert [name for name in code if code[name] in content] == list(code_in(new))
        gone += sum(len(code[name]) for name in code if name not in code_in(new))
    assert gone > 8 * CODE_SIZE
    assert len(content) <= 1.02 * (library.stat().st_size - gone) + 2 * PAGE
    old_sections, new_sections = sections(library), sections(small)
    assert old_sections.keys() == new_sections.keys()
    assert {name for name, one in old_sections.items() if one != new_sections[name]} <= MAY_CHANGE
    assert all(address == new_sections[name][0] for name, (address, _) in old_sections.items())


@pytest.mark.parametrize("link", LINKS)
def test_tables_are_sound_in_the_eyes_of_readelf(compiled: Compile, tmp_path: Path, link: str) -> None:
    small = slimmed(compiled(link=LINKS[link]), tmp_path / "small.so", "gfx803", "gfx1100")
    for tool in ("readelf", llvm("llvm-readelf")):
        told = run(tool, "-W", "--file-header", "--segments", "--sections", "--relocs", "--symbols", small)
        assert "warning" not in told.lower()
    with small.open("rb") as file:
        elf = ELFFile(file)
        loaded = [one for one in elf.iter_segments() if one["p_type"] == "PT_LOAD"]
        index = elf.get_section_index(".hip_fatbin")
        assert index is not None
        fat = elf.get_section(index)
        table = elf.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        symbols = [one for one in table.iter_symbols() if one["st_shndx"] == index]
    for one in loaded:
        assert (one["p_offset"] - one["p_vaddr"]) % one["p_align"] == 0
        assert one["p_offset"] + one["p_filesz"] <= small.stat().st_size
    assert [one["p_vaddr"] for one in loaded] == sorted(one["p_vaddr"] for one in loaded)
    inside = range(fat["sh_addr"], fat["sh_addr"] + fat["sh_size"])
    assert all(one["st_value"] in inside for one in symbols)


def test_a_bundle_made_smaller_is_what_clang_makes_for_that_target_alone(
    compiled: Compile, tmp_path: Path
) -> None:
    small = slimmed(compiled(), tmp_path / "small.so", "gfx1151")
    assert registered(small) == registered(compiled(("gfx1151",)))


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_compressed_bundle_of_clang_stays_compressed(
    compiled: Compile, tmp_path: Path, version: str
) -> None:
    small = slimmed(compiled(compress=version), tmp_path / "small.so", "gfx1151")
    for bundle, old in zip(registered(small), registered(compiled()), strict=True):
        assert struct.unpack_from("<4sHH", bundle) == (b"CCOB", int(version), 1)
        code = code_in(old)
        assert code_in(bundle) == {name: code for name, code in code.items() if name.endswith("--gfx1151")}


@pytest.mark.parametrize(("compress", "method"), [("zstd", 1), ("zlib", 0)])
def test_plain_bundles_are_compressed_if_asked_for(
    compiled: Compile, tmp_path: Path, compress: str, method: int
) -> None:
    small = slimmed(compiled(), tmp_path / "small.so", "gfx1151", compress=compress)
    for bundle, plain in zip(registered(small), registered(compiled()), strict=True):
        old = code_in(plain)
        assert struct.unpack_from("<4sHH", bundle) == (b"CCOB", 2, method)
        (name,) = (name for name in old if name.endswith("--gfx1151"))
        assert code_in(bundle) == {name: old[name]}


def test_compressed_bundles_that_do_not_fit_unpacked_are_an_error(compiled: Compile, tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="does not fit"):
        slimmed(compiled(compress=True), tmp_path / "small.so", "gfx1151", compress="none")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    "flags",
    [
        ("-pie",),
        ("-no-pie",),
        ("-static",),
        ("-static-pie",),
        ("-no-pie", "-fuse-ld=bfd"),
        ("-pie", "-fuse-ld=bfd"),
    ],
    ids=" ".join,
)
def test_a_program_runs_with_the_code_that_stays(
    compiled: Compile, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    folder = compiled().parent
    objects = sorted(folder.glob("*.o"))
    linker = () if any("ld" in one for one in flags) else ("-fuse-ld=lld",)
    program = link_program(tmp_path, objects, *linker, *flags)
    small = slimmed(program, tmp_path / "small", "gfx1151")
    lines = run(program).splitlines()
    assert len(lines) == 2 * 6
    assert run(small).splitlines() == [one for one in lines if "--gfx1151" in one or " host-" in one]
    assert small.stat().st_size < program.stat().st_size - 2 * 4 * CODE_SIZE


def test_code_linked_for_the_device_is_one_bundle_for_several_units(tmp_path: Path) -> None:
    clang = llvm("clang++")
    source = tmp_path / "a.hip"
    library = compile_library(tmp_path / "plain", ("gfx1100", "gfx1151"), units=UNITS[:1])
    source.write_text((library.parent / "libkernels.so.0.hip").read_text())
    flags = (
        "-nogpulib",
        "-nogpuinc",
        "-fPIC",
        "-fgpu-rdc",
        "--offload-arch=gfx1100",
        "--offload-arch=gfx1151",
    )
    run(clang, "-x", "hip", *flags, "-c", source, "-o", tmp_path / "a.o")
    out = tmp_path / "librdc.so"
    run(
        clang,
        "--hip-link",
        "-fuse-ld=lld",
        "-shared",
        "-no-hip-rt",
        *flags,
        tmp_path / "a.o",
        library.parent / "runtime.o",
        "-o",
        out,
    )
    small = slimmed(out, tmp_path / "small.so", "gfx1151")
    (old,), (new,) = registered(out), registered(small)
    kept = {name: code for name, code in code_in(old).items() if name.endswith("gfx1151")}
    assert code_in(new) == kept
    assert len(kept) == 1


def test_features_are_kept_by_llvms_rules(compiled: Compile, tmp_path: Path) -> None:
    both = slimmed(compiled(), tmp_path / "both.so", "gfx90a")
    one = slimmed(compiled(), tmp_path / "one.so", "gfx90a:xnack-")
    assert {found.target_id for found in code_objects(both)} == {"gfx90a:xnack+", "gfx90a:xnack-"}
    assert {found.target_id for found in code_objects(one)} == {"gfx90a:xnack-"}


def test_generic_code_stays_for_a_gpu_without_code_of_its_own(compiled: Compile, tmp_path: Path) -> None:
    library = compiled(("gfx1100", "gfx11-generic", "gfx803"))
    small = slimmed(library, tmp_path / "small.so", "gfx1151")
    assert [one.target for one in code_objects(small)] == ["gfx11-generic"] * 2
    both = slimmed(library, tmp_path / "both.so", "gfx1151", "gfx1100")
    assert [one.target for one in code_objects(both)] == ["gfx11-generic", "gfx1100"] * 2


def test_llvm_finds_the_code_that_stays_and_no_other(compiled: Compile, tmp_path: Path) -> None:
    small = slimmed(compiled(), tmp_path / "small.so", "gfx1151", "gfx90a:xnack-")
    told = run(llvm("llvm-objdump"), "--offloading", small, cwd=tmp_path)
    assert sorted(re.findall(r"amdhsa--(gfx\S+)", told)) == ["gfx1151"] * 2 + ["gfx90a:xnack-"] * 2


def test_code_that_is_not_there_is_an_error_that_names_it(compiled: Compile, tmp_path: Path) -> None:
    out = tmp_path / "small.so"
    with pytest.raises(CheckError, match=r"no code for gfx1201 \(2 of 2 bundles\)"):
        slimmed(compiled(), out, "gfx1151,gfx1201")
    assert not any(tmp_path.iterdir())
    report = slim(compiled(), ["gfx1201"], out, epoch=0, allow_missing=True)
    assert report.missing == {"libkernels.so": ("gfx1201",)}
    assert code_objects(out) == []
    assert [one.count(b"hipv4") for one in registered(out)] == [0, 0]


def test_a_library_of_the_wanted_targets_alone_is_an_error(compiled: Compile, tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="there is nothing to remove"):
        slimmed(compiled(), tmp_path / "small.so", *TARGETS)
    assert not any(tmp_path.iterdir())


def test_what_is_slimmed_can_be_slimmed_again(compiled: Compile, tmp_path: Path) -> None:
    at_once = slimmed(compiled(), tmp_path / "once.so", "gfx1151")
    two = slimmed(compiled(), tmp_path / "two.so", "gfx1151", "gfx803")
    again = slimmed(two, tmp_path / "again.so", "gfx1151")
    assert registered(again) == registered(at_once)


def test_the_input_is_not_written_over(compiled: Compile) -> None:
    before = compiled().read_bytes()
    with pytest.raises(InputError, match="already exists"):
        slimmed(compiled(), compiled(), "gfx1151")
    assert compiled().read_bytes() == before


def test_debug_sections_go_if_asked_for_and_the_rest_still_loads(tmp_path: Path) -> None:
    library = compile_library(tmp_path, ("gfx1100", "gfx1151"), units=UNITS, flags=("-gdwarf-4",))
    small = slimmed(library, tmp_path / "small.so", "gfx1151", strip=True)
    whole = slimmed(library, tmp_path / "whole.so", "gfx1151")
    assert any(name.startswith(".debug_") for name in sections(whole))
    assert not any(name.startswith(".debug_") for name in sections(small))
    debug = sum(len(data) for name, (_, data) in sections(whole).items() if name.startswith(".debug_"))
    assert whole.stat().st_size - small.stat().st_size >= debug - 64
    assert registered(small) == registered(whole)
    assert "warning" not in run("readelf", "-W", "--segments", "--sections", "--symbols", small).lower()


@given(data=st.data())
@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
def test_a_damaged_library_is_an_error_of_rocwrights_own(
    compiled: Compile, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(compiled().read_bytes())
    (sections_at,) = struct.unpack_from("<Q", content, 40)
    places = [*range(16, 64 + 11 * 56), *range(sections_at, len(content))]
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.sampled_from(places))] = data.draw(st.integers(0, 255))
    folder = tmp_path_factory.mktemp("damaged")
    library = folder / "liba.so"
    library.write_bytes(content)
    try:
        slim(library, ["gfx1151"], folder / "out.so", epoch=0)
    except ExplainedError:
        assert [one.name for one in folder.iterdir()] == ["liba.so"]


def test_embedded_bundles_become_less_where_they_are(tmp_path: Path) -> None:
    code = {name: gpu_elf(flags, body=name.encode() * 2000) for name, flags in EMBEDDED.items()}
    plain = plain_bundle([(entry_id(name), content) for name, content in code.items()])
    pieces = [plain, compressed_bundle(plain, version=2, method=1)]
    library = embed(tmp_path, pieces, section=".rodata", align=4, unreached=[0, 1])
    report = slim(library, ["gfx1151"], tmp_path / "out.so", epoch=0)
    before, after = library.read_bytes(), report.out.read_bytes()
    assert len(before) == len(after)
    assert {one.target_id for one in code_objects(report.out)} == {"gfx1151"}
    assert [content for _, content in read_code(report.out)] == [code["gfx1151"]] * 2
    where = [before.index(piece) for piece in pieces]
    assert [after[at : at + 4] for at in where] == [b"__CL", b"CCOB"]
    # nothing else was touched
    spans = [(at, at + len(piece)) for at, piece in zip(where, pieces, strict=True)]
    assert all(
        one == other or any(begin <= at < end for begin, end in spans)
        for at, (one, other) in enumerate(zip(before, after, strict=True))
    )
    assert set(report.changed[0].went) == {"gfx803"}


def test_embedded_code_objects_alone_are_left_with_a_word(tmp_path: Path) -> None:
    pieces = [gpu_elf(flags) for flags in EMBEDDED.values()]
    library = embed(tmp_path, pieces, section=".rodata", align=4, unreached=[0, 1])
    with pytest.raises(CheckError, match="nothing to remove"):
        slim(library, ["gfx1151"], tmp_path / "out.so", epoch=0)
    folder = tmp_path / "folder"
    folder.mkdir()
    library.rename(folder / "x.so")
    (folder / "k.co").write_bytes(pieces[0])
    (folder / "l.co").write_bytes(pieces[1])
    report = slim(folder, ["gfx1151"], tmp_path / "out", epoch=0)
    assert report.left == {
        "x.so": "1 embedded code objects for other GPUs: how the program chooses is not known"
    }
