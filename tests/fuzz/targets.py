"""What the fuzzer calls: each reader on any bytes, where only rocwright's own errors may come out."""

from __future__ import annotations

import gzip
import io
import lzma
import struct
import tempfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from securesystemslib.signer import CryptoSigner

from rocbase.errors import CheckError, ConflictError, FetchError, InputError, NetworkError
from rocwheel.wheels import source
from rocwheel.wheels.audit.facts import concerns, table
from rocwheel.wheels.audit.listing import Comparison
from rocwheel.wheels.canonicalize import normalise
from rocwheel.wheels.choose import Target
from rocwheel.wheels.devicecode import kpack
from rocwheel.wheels.devicecode.bundle import contents
from rocwheel.wheels.devicecode.bundles import read_bundles
from rocwheel.wheels.devicecode.code_object import CodeFile
from rocwheel.wheels.devicecode.code_objects import fat_binaries, read_code
from rocwheel.wheels.devicecode.fatbin import FatBinary, fat_binary
from rocwheel.wheels.devicecode.kernels import kernels_of
from rocwheel.wheels.devicecode.kpack_reference import Reference
from rocwheel.wheels.devicecode.kpack_reference import read_reference as read_kpack_reference
from rocwheel.wheels.diff.libraries import read_library
from rocwheel.wheels.diff.wheels import diff
from rocwheel.wheels.elf import Elf
from rocwheel.wheels.members import members
from rocwheel.wheels.metadata import Headers, read_record, record_bytes
from rocwheel.wheels.needed import linkage_of
from rocwheel.wheels.parts import pieces
from rocwheel.wheels.pe import Pe
from rocwheel.wheels.repair.alias import alias_library
from rocwheel.wheels.repair.dlls import MAGIC, dll_names_in, imports
from rocwheel.wheels.repair.finding import names_in
from rocwheel.wheels.scratch import scratch
from rocwheel.wheels.slim.library import slim_library
from rocwheel.wheels.slim.wish import Wish
from rocwheel.wheels.source import ByteSource, Inflated, MemorySource
from rocwheel.wheels.split.device_wheels import into_archives, reason_to_stay
from rocwheel.wheels.split.library import is_exact, put_together, take_apart
from rocwheel.wheels.split.manifest import Neutral, Span, SplitLibrary, as_bytes, read_neutral
from rocwheel_samples import fatbin as written
from rocwheel_samples import kpack as made
from rocwheel_samples.code_object import code_object, metadata
from rocwheel_samples.wheel_making import FILES, METADATA, zip_of
from rocwright.provenance.check import read_statement, told
from rocwright.provenance.compare import compare
from rocwright.provenance.documents import parse_document
from rocwright.store.signing.envelope import as_line, parse_envelopes, sign, signed_by
from tests.fuzz import http, readers

LARGEST = 1024 * 1024


def read_members(data: bytes) -> None:
    """A container of any kind: every member opened and read at its ends."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        path = Path(folder, "x.bin")
        path.write_bytes(data)
        for member in members(path):
            opened = member.open()
            opened.read_at(opened.size - min(opened.size, 16), min(opened.size, 16))
        for _ in fat_binaries(path):
            pass


def read_elf(data: bytes) -> None:
    """Sections, segments, the dynamic section, and the pointers of every section."""
    file = Elf(MemorySource(data))
    for section in file.sections[:64]:
        file.pointers(section)
    for tag in (1, 14, 15, 29):
        file.dynamic_strings(tag)
    file.at_address(file.entry)


def read_pe(data: bytes) -> None:
    """Sections and addresses, then the code."""
    file = Pe(MemorySource(data))
    for section in file.sections:
        file.at_address(file.base + section.address)
    fat_binary(MemorySource(data))


def read_offload(data: bytes) -> None:
    """Bundles one after another, with the content of each."""
    for bundle in read_bundles(held := MemorySource(data), 0, len(data), hashes=True):
        for entry, code in contents(held, bundle):
            assert len(code) == entry.size


def read_kpack(data: bytes) -> None:
    """A kpack archive: its table, the heads of its code, all of it."""
    held = MemorySource(data)
    quick = kpack.read_archive(held, heads=True)
    found = kpack.read_archive(held)
    assert [one.name for one in quick.code] == [one.name for one in found.code]
    for one, code in kpack.contents(held, found):
        assert len(code) == one.size


def read_reference(data: bytes) -> None:
    """What a library says of its archives, and the paths that it leads to."""
    reference = read_kpack_reference(data, "x")
    for pattern in reference.patterns("x/lib/x.so"):
        assert not pattern.fullmatch("../x.kpack")


def into_kpack(data: bytes) -> None:
    """A library whose code goes into archives: what is left is read again, and all code is there."""
    source = MemorySource(data)
    fat = fat_binary(source)
    if fat is None or not fat.bundles or reason_to_stay(fat):
        return
    told = Reference(name="lib/x.so", search=("../.kpack/x_@GFXARCH@.kpack",))
    with scratch(Path(tempfile.gettempdir())) as results:
        taken = into_archives(source, fat, told, results)
        again = fat_binary(taken.content)
        assert again is not None and again.reference is not None
        assert (again.reference.name, again.reference.search) == (told.name, told.search)
        assert not again.bundles


def read_fatbin(data: bytes) -> None:
    """A library: bundles, wrappers, and the code as it is handed on."""
    found = fat_binary(MemorySource(data))
    if found is not None:
        assert all(bundle.end <= len(data) for bundle in found.all_bundles)
        assert all(one.offset + one.size <= len(data) for one in found.embedded)
        assert len(found.unreached) <= len(found.bundles)


def read_inflated(data: bytes) -> None:
    """A library that is inflated, with bundles unpacked as they go by: the same as if it lay there plain."""
    packed = zlib.compress(data, 1, wbits=-15)
    lying, inflated = (
        MemorySource(data, subject="x"),
        Inflated(MemorySource(packed), len(data), zlib.crc32(data), "x"),
    )
    told = [_answer(one) for one in (lying, inflated)]
    # how much work is granted goes by the size of the file
    assert told[0] == told[1] or any("far more work" in str(one) for one in told)


def _answer(source: ByteSource) -> FatBinary | tuple[str, str] | None:
    try:
        return fat_binary(source, hashes=True)
    except CheckError as error:
        return error.message, error.cause


def read_file(data: bytes) -> None:
    """A file by its path, all code read."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        for one, code in read_code(Path(file.name)):
            assert len(code) == one.size


def read_kernels(data: bytes) -> None:
    """A code object: its kernels, and what is loaded of it."""
    file = CodeFile(data, "x")
    for kernel in kernels_of(file):
        assert kernel.name is not None
    for section in file.sections:
        file.is_loaded_as_shown(section)


def read_metadata(data: bytes) -> None:
    """The metadata of kernels, in an object that is otherwise sound."""
    for kernel in kernels_of(CodeFile(code_object(told=data), "x")):
        assert kernel.vgprs >= 0


def read_listings(data: bytes) -> None:
    """Two listings that are compared, one behind the other in the data; what differs is never lost."""
    ours, _, theirs = data.partition(b"\0")
    comparison = Comparison([(16, "a"), (32, "b")], concerns("gfx1151", "gfx1100"), table().flow)
    comparison.read(io.BytesIO(ours), io.BytesIO(theirs))
    assert all(one.differing >= len(one.examples) for one in comparison.functions)


def make_smaller(data: bytes) -> None:
    """A library with one target's code left; what is written is read again."""
    with scratch(Path(tempfile.gettempdir())) as results:
        found = slim_library(MemorySource(data), WISH, results)
        if found is not None:
            assert sum(map(len, pieces(found.content))) == found.content.size
            again = fat_binary(found.content)
            left = {one.target for bundle in again.bundles for one in bundle.code} if again else set()
            assert left <= {"gfx1151"}


def read_needs(data: bytes) -> None:
    """What a library needs and the names that it holds, as an ELF file and as a DLL."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        path = Path(file.name)
        found = linkage_of(path)
        if found is not None:
            assert all(isinstance(name, str) for name in found.versions)
            names_in(path)
        if data.startswith(MAGIC):
            dll_names_in(path)
            imports(path)


def write_anew(data: bytes) -> None:
    """A wheel written in its one form: the same content, and the same bytes again."""
    with tempfile.TemporaryDirectory(dir=tempfile.gettempdir()) as folder:
        path, out, again = (Path(folder, f"{name}-1-py3-none-any.whl") for name in ("a", "b", "c"))
        path.write_bytes(data)
        normalise(path, out, epoch=0)
        normalise(out, again, epoch=0)
        assert out.read_bytes() == again.read_bytes()
        assert diff(path, out).files == ()


def compare_libraries(data: bytes) -> None:
    """The facts of a library, as they are compared with another's."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        read_library(Path(file.name), "x")


def take_apart_and_put_together(data: bytes) -> None:
    """A library in pieces, and whole again to the byte."""
    source = MemorySource(data)
    fat = fat_binary(source)
    with scratch(Path(tempfile.gettempdir())) as results:
        apart = take_apart(source, fat, "x.so", "kept", results) if fat else None
        if apart and is_exact(apart.library):
            whole = put_together(apart.library, apart.neutral, apart.kept, apart.code, results)
            assert b"".join(pieces(whole)) == data


def read_words(data: bytes) -> None:
    """METADATA, RECORD, the manifest of a neutral wheel: three texts, one behind the other in the data."""
    headers, record, manifest, *_ = [*data.split(b"\0", 2), b"", b""]
    assert Headers(headers).as_bytes() == headers
    assert Headers(headers).replaced("X", ["1"]).get("x") == "1"
    rows = read_record(record)
    assert read_record(record_bytes(rows)) == rows
    read_neutral(manifest, "x")


def read_bills(data: bytes) -> None:
    """A stranger's SBOM."""
    found = parse_document(data, "x")
    assert compare(found, found).same


def read_statements(data: bytes) -> None:
    """A stranger's statements: never right by chance."""
    for one in parse_envelopes(data, "x"):
        assert not signed_by(one, [KEY])
        told(read_statement(one))


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    "members": read_members,
    "elf": read_elf,
    "pe": read_pe,
    "offload": read_offload,
    "fatbin": read_fatbin,
    "kpack": read_kpack,
    "reference": read_reference,
    "into-kpack": into_kpack,
    "file": read_file,
    "kernels": read_kernels,
    "metadata": read_metadata,
    "listings": read_listings,
    "slim": make_smaller,
    "needs": read_needs,
    "normalise": write_anew,
    "diff": compare_libraries,
    "split": take_apart_and_put_together,
    "words": read_words,
    "bills": read_bills,
    "statements": read_statements,
    "http": http.speak,
    "archives": readers.unpack_archive,
    "locks": readers.read_locks,
    "wheels": readers.read_wheels,
    "heads": readers.read_heads,
    "records": readers.read_records,
    "ranges": readers.read_ranges,
    "inflated": read_inflated,
}

KEY = CryptoSigner.generate_ed25519().public_key
WISH = Wish(targets=(Target("gfx1151"),), covered={}, strip=True, allow_missing=True)


def call(target: str, data: bytes) -> None:
    """One input; rocwright's errors are an answer, everything else comes out."""
    try:
        TARGETS[target](data[:LARGEST])
    except (CheckError, ConflictError, FetchError, InputError, NetworkError) as error:
        assert error.message and error.cause and error.next_step


def call_any(data: bytes) -> None:
    """One input whose first byte says for which target."""
    if data:
        call(list(TARGETS)[data[0] % len(TARGETS)], data[1:])


def bound_work() -> None:
    """As little work as a small file is worth, so that the fuzzer is not slow where a user would wait."""
    source.ALLOWANCE = 16 * 1024 * 1024


def seeds() -> Mapping[str, Mapping[str, bytes]]:
    """Sound files of each kind, by target and name: what the fuzzer begins with."""
    code = [(written.entry_id(name), written.gpu_elf(flags)) for name, flags in CODE.items()]
    plain = written.plain_bundle(code, align=8)
    forms = [(version, method) for version in (1, 2, 3) for method in (0, 1)]
    packed = {
        f"ccob-{version}-{method}": written.compressed_bundle(plain, version=version, method=method)
        for version, method in forms
    }
    linked = {f"elf-{form}": written.linked_elf([plain], form=form) for form in ("rela", "relr", "place")}
    wrapper = struct.pack("<IIQQ", 0x48495046, 1, 0x180003000, 0)
    dll = {"dll": written.pe_file({b".text": b"code", b".hipFatB": wrapper, b".hip_fat": plain})}
    bodies = [(name, one + bytes(9000)) for name, one in code]
    large = written.plain_bundle(bodies, align=4096)
    roomy = {f"elf-{form}": written.linked_elf([large], form=form) for form in ("rela", "relr", "place")}
    lone = {"code": written.gpu_elf(0x36), "plain": plain}
    packs = made.code_for("gfx1151", "lib/x.so#0", "lib/x.so#1") | made.code_for("gfx803", "lib/x.so#0")
    inside = b"ab" + plain + packed["ccob-3-1"] + written.gpu_elf(0x2A)
    hosts = {"kpacked": made.kpacked_elf(), "embedded": written.host_elf(inside, name=b".rodata")}
    return {
        "members": _containers({"a.so": linked["elf-rela"], "b/c": b"text"}),
        "elf": linked,
        "pe": dll,
        "offload": {"plain": plain, **packed},
        "fatbin": {**linked, **dll, **lone, **hosts},
        "inflated": {**linked, **lone, **packed, **hosts},
        "kpack": {scheme: made.kpack(packs, scheme=scheme) for scheme in ("none", "zstd-per-kernel")},
        "reference": {"one": made.reference("lib/x.so")},
        "into-kpack": {**roomy, "packed": written.linked_elf([packed["ccob-2-1"]], form="rela")},
        "file": {**lone, **packed, **linked},
        "kernels": {"code-object": code_object()},
        "metadata": {"one": metadata()},
        "slim": {
            **roomy,
            "packed": written.linked_elf([packed["ccob-2-1"]], form="rela"),
        },
        "listings": {"two": LISTING + b"\0" + LISTING.replace(b"v_rcp", b"v_add")},
        "normalise": {"wheel": zip_of(FILES)},
        "diff": {"place": linked["elf-place"], "code-object": code_object()},
        "split": roomy,
        "words": {"all": b"\0".join((METADATA, b"a,sha256=" + b"AAAA" + b",3\nb,,\n", MANIFEST))},
        "bills": {"one": BILL},
        "statements": {"one": as_line(sign(STATEMENT, CryptoSigner.generate_ed25519()))},
        "http": http.seeds(),
        **readers.seeds(),
        "archives": readers.archives(_containers({"a.so": b"ELF", "b/c": b"text"})),
        "needs": {"alias": alias_library("libx.so", "libx.so.6", 62), **linked, **dll},
    }


BILL = b"""
{"bomFormat": "CycloneDX", "specVersion": "1.6",
 "metadata": {"component": {"name": "a", "version": "1", "pedigree": {"patches": [
   {"type": "unofficial", "resolves": [{"name": "f", "description": "why"}]}]}}},
 "components": [
   {"type": "library", "name": "b", "group": "g", "version": "2", "purl": "pkg:pypi/b@2",
    "licenses": [{"license": {"id": "MIT"}}, {"expression": "MIT OR X"}],
    "hashes": [{"alg": "SHA-256", "content": "00"}], "components": [{"name": "c"}]}]}
"""

STATEMENT = b"""
{"_type": "https://in-toto.io/Statement/v1", "subject": [{"name": "a", "digest": {"sha256": "00"}}],
 "predicateType": "https://slsa.dev/provenance/v1",
 "predicate": {
   "buildDefinition": {"resolvedDependencies": [
     {"uri": "pkg:a/b", "digest": {"sha256": "00"}, "annotations": {"role": "source"}}]},
   "runDetails": {"builder": {"id": "x"}}}}
"""

LISTING = b"""
0000000000000010 <a>:
\ts_cbranch_scc0 65535       // 000000000010: BF84FFFF <a>
\tv_rcp_f32_e32 v0, v1       // 000000000014: 7E005501
0000000000000020 <b>:
\t.long 0xffffffff           // 000000000020: FFFFFFFF
\ts_setpc_b64 s[30:31]       // 000000000024: BE80481E
"""

MANIFEST = as_bytes(
    Neutral(
        record="0" * 64,
        epoch=0,
        wheel="a-1-py3-none-any.whl",
        folder="a-1.dist-info",
        targets=("gfx1151",),
        libraries=(
            SplitLibrary(
                path="a.so",
                size=10,
                sha256="0" * 64,
                kept="kept",
                spans=(Span(offset=0, size=10),),
                bundles=(),
            ),
        ),
        whole=(),
    )
)

CODE = {"gfx1151": 0x4A, "gfx803": 0x2A}


def _containers(files: Mapping[str, bytes]) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as name:
        wheel = written.write_wheel(Path(name, "x.whl"), files).read_bytes()
        packed = written.write_archive(Path(name, "x.tar.gz"), files).read_bytes()
    plain = gzip.decompress(packed)
    ar = b"!<arch>\n" + b"".join(
        f"{name + '/':<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(data):<10}`\n".encode()
        + data
        + bytes(len(data) % 2)
        for name, data in files.items()
    )
    return {"zip": wheel, "tar": plain, "tar-gz": packed, "tar-xz": lzma.compress(plain), "ar": ar}
