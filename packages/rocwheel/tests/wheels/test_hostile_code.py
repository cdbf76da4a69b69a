"""Files that are made to take time and memory, or to lie: an answer with its reason, within bounds.

Each is read by the command as a user runs it, with at most so much processor time and memory.
"""

from __future__ import annotations

import json
import os
import random
import resource
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgpack
import pytest
import zstandard

from rocwheel_samples.fatbin import (
    compressed_bundle,
    entry_id,
    fatbin,
    gpu_elf,
    host_elf,
    plain_bundle,
    write_wheel,
)
from rocwheel_samples.kpack import code_for, kpack, kpacked_elf

SECONDS, MEMORY = 10, 256 * 1024
"""Of processor time; KiB."""

EIGHT_GIB = 8 << 30
VERBS = (("inspect",), ("inspect", "--targets"), ("check-gpu", "gfx1151"))


MEASURED = """
import atexit, os, runpy, sys

def told():
    with open("/proc/self/status") as status:
        most = next(line.split()[1] for line in status if line.startswith("VmHWM:"))
    os.write(told_to, most.encode())

told_to = int(sys.argv.pop(1))
atexit.register(told)
runpy.run_module("rocwheel", run_name="__main__", alter_sys=True)
"""
"""Runs the command, and tells its most memory: what is counted for a child begins with its parent's."""


def bounded(*words: str) -> tuple[int, str, int]:
    """Exit code, output and most memory (KiB) of the command; it is ended when its time is up."""
    (read, write), (memory, told) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(write, 1)
            os.dup2(write, 2)
            os.set_inheritable(told, True)
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            os.execv(sys.executable, [sys.executable, "-c", MEASURED, str(told), *words])
        finally:
            os._exit(99)
    os.close(write)
    os.close(told)
    with os.fdopen(read, "rb") as file:
        output = file.read().decode(errors="replace")
    with os.fdopen(memory, "rb") as file:
        most = file.read()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert most, (code, output[-500:])
    return code, output, int(most)


def zeros_behind(head: bytes, size: int) -> bytes:
    """A zstd frame of `size` bytes, zeros but for the beginning."""
    packer = zstandard.ZstdCompressor(level=1).compressobj(size=size)
    frame, left, piece = packer.compress(head), size - len(head), bytes(1 << 24)
    while left:
        frame += packer.compress(piece[:left])
        left -= min(left, len(piece))
    return frame + packer.flush()


def bomb_in_a_bundle() -> bytes:
    """CCOB 3 whose list of entries is sound, and whose code object has 8 GiB."""
    name = entry_id("gfx1151").encode()
    header = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<QQQQ", 1, 4096, EIGHT_GIB - 4096, len(name)) + name
    frame = zeros_behind(header.ljust(4096, b"\0") + gpu_elf(0x4A), EIGHT_GIB)
    return struct.pack("<4sHHQQQ", b"CCOB", 3, 1, 32 + len(frame), EIGHT_GIB, 0) + frame


def bombs_of_128_mib() -> bytes:
    """Bundles that are unpacked whole, as each says truly how long it is; only all of them are too much."""
    name = entry_id("gfx1151").encode()
    size = 128 << 20
    header = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<QQQQ", 1, 4096, size - 4096, len(name)) + name
    frame = zeros_behind(header.ljust(4096, b"\0") + gpu_elf(0x4A), size)
    bundle = struct.pack("<4sHHQQQ", b"CCOB", 3, 1, 32 + len(frame), size, 0) + frame
    return host_elf(fatbin([bundle] * 60))


def archive(**changed: object) -> bytes:
    """An archive of two code objects, whose table says other things."""
    return kpack(code_for("gfx1151", "a#0", "b#0"), changed=changed)


def bomb_in_an_archive() -> bytes:
    frame = zeros_behind(gpu_elf(0x4A), EIGHT_GIB)
    body = struct.pack("<II", 1, len(frame)) + frame
    toc = {"a#0": {"gfx1151": {"ordinal": 0, "original_size": EIGHT_GIB}}}
    told = {"compression_scheme": "zstd-per-kernel", "zstd_offset": 64, "zstd_size": len(body), "toc": toc}
    header = struct.pack("<4sIQ", b"KPAK", 1, 64 + len(body)).ljust(64, b"\0")
    return header + body + bytes(msgpack.packb(told | {"gfx_arches": ["gfx1151"]}))


def large_archive() -> bytes:
    """As many code objects as one may have, all of them the same."""
    row = {"ordinal": 0, "original_size": 64}
    toc = {f"lib/a_library_with_a_long_name_{number}.so#0": {"gfx1151": row} for number in range(200_000)}
    return kpack({("a#0", "gfx1151"): gpu_elf(0x4A, body=b"")}, changed={"toc": toc})


def many(count: int, *, section: bytes) -> bytes:
    """A library with so many bundles, each packed, and none like another."""
    noise = random.Random(1).randbytes(count * 300)
    bundles = [
        compressed_bundle(
            plain_bundle([(entry_id("gfx1151"), gpu_elf(0x4A, body=noise[300 * number :][:300]))], align=8),
            version=2,
            method=1,
        )
        for number in range(count)
    ]
    content = fatbin(bundles) if section == b".hip_fatbin" else b"".join(bundles)
    return host_elf(content, name=section)


def with_device(folder: Path) -> list[str]:
    metadata = b"Metadata-Version: 2.1\nName: x\nVersion: 1.0\n\n"
    other = b"Metadata-Version: 2.1\nName: x-device-gfx1151\nVersion: 2.0\nRequires-Dist: x == 2.0\n\n"
    host = {"x/lib/x.so": kpacked_elf(), "x-1.0.dist-info/METADATA": metadata}
    code = kpack(code_for("gfx1151", "lib/x.so#0"))
    device = {"x/.kpack/x_gfx1151.kpack": code, "x_device_gfx1151-2.0.dist-info/METADATA": other}
    return [
        str(write_wheel(folder / "x-1.0-py3-none-any.whl", host)),
        str(write_wheel(folder / "x_device_gfx1151-2.0-py3-none-any.whl", device)),
    ]


FILES: dict[str, tuple[Callable[[], bytes], dict[str, str]]] = {
    "a bomb in a bundle": (
        lambda: host_elf(fatbin([bomb_in_a_bundle()])),
        {"inspect": "far more work", "inspect --targets": "gfx1151", "check-gpu gfx1151": "native"},
    ),
    "a bomb in an embedded bundle": (
        lambda: host_elf(bomb_in_a_bundle(), name=b".rodata"),
        {"inspect": "far more work", "inspect --targets": "gfx1151", "check-gpu gfx1151": "native"},
    ),
    "a bomb in an archive": (
        bomb_in_an_archive,
        {"inspect": "far more work", "inspect --targets": "gfx1151", "check-gpu gfx1151": "native"},
    ),
    "an archive as large as may be": (large_archive, {"inspect": "200,000", "check-gpu gfx1151": "native"}),
    "a table of lists in lists": (
        lambda: kpack({}, table=b"\x81" + msgpack.packb("x") + b"\xdd\x01\xff\xff\xf0" + b"\x90" * 0x1FFFFF0),
        {},
    ),
    "a table of 2^32 entries": (
        lambda: kpack({}, table=b"\x81" + msgpack.packb("toc") + b"\xdf\xff\xff\xff\xff"),
        {"inspect": "claims 4,294,967,295 items", "check-gpu gfx1151": "claims 4,294,967,295 items"},
    ),
    "bombs in bundles that are as long as they say": (
        bombs_of_128_mib,
        {"inspect": "far more work", "inspect --targets": "60 bundles", "check-gpu gfx1151": "native"},
    ),
    "frames that overlap": (
        lambda: kpack(
            code_for("gfx1151", "a#0", "b#0"),
            scheme="none",
            changed={"blobs": [{"offset": 64, "size": 67}] * 200_000},
        ),
        {"inspect": "overlap", "inspect --targets": "overlap", "check-gpu gfx1151": "overlap"},
    ),
    "frames longer than the file": (
        lambda: archive(zstd_size=1 << 62),
        {"inspect": "the table at", "check-gpu gfx1151": "the table at"},
    ),
    "code longer than it is": (
        lambda: archive(toc={"a#0": {"gfx1151": {"ordinal": 0, "original_size": 1 << 62}}}),
        {"inspect": "does not decompress to 4,611,686,018,427,387,904 bytes"},
    ),
    "names that climb": (
        lambda: archive(toc={"../../../a#0": {"gfx1151": {"ordinal": 0, "original_size": 67}}}),
        {"inspect": "leads out of the folder", "check-gpu gfx1151": "leads out of the folder"},
    ),
    "an archive in an archive": (
        lambda: kpack({("a#0", "gfx1151"): archive()}),
        {"inspect": "does not start with an ELF header"},
    ),
    "20,000 bundles": (
        lambda: many(20_000, section=b".hip_fatbin"),
        {"inspect": "20,000 bundles", "inspect --targets": "20,000 bundles"},
    ),
    "20,000 embedded bundles": (
        lambda: many(20_000, section=b".rodata"),
        {"inspect": "20,000 bundles", "inspect --targets": "20,000 bundles"},
    ),
    "a million words for code": (
        lambda: host_elf(b"CCOB\x02\x00\x01\x00" * 1_000_000, name=b".rodata"),
        {"inspect": "begin like GPU code", "check-gpu gfx1151": "begin like GPU code"},
    ),
}


LONGEST = ("an archive as large as may be", "20,000 embedded bundles")
"""Others take the same way within seconds: the archive whose answer is JSON, and the bundles of a section."""


@pytest.mark.parametrize(
    "what",
    [
        pytest.param(name, marks=[pytest.mark.real, pytest.mark.nightly] if name in LONGEST else ())
        for name in FILES
    ],
)
def test_no_file_takes_more_time_or_memory_than_a_wheel_is_worth(tmp_path: Path, what: str) -> None:
    made, says = FILES[what]
    wheel = write_wheel(tmp_path / "x-1-py3-none-any.whl", {"x/x.so": made()})
    for verb in VERBS:
        code, output, memory = bounded(*verb, str(wheel))
        assert code in (0, 12, 13), (verb, code, output[-500:])
        assert memory < MEMORY, (verb, memory)
        assert "Traceback" not in output and "no GPU code" not in output, output
        assert says.get(" ".join(verb), "") in output, output


def test_the_largest_answer_is_printed_as_json_within_the_same_memory(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "x-1-py3-none-any.whl", {"x/x.so": large_archive()})
    code, output, memory = bounded("inspect", "--json", str(wheel))
    assert (code, memory < MEMORY) == (0, True), (code, memory)
    assert len(json.loads(output)["libraries"][0]["code"]) == 200_000


def test_wheels_of_different_versions_are_an_error_with_its_reason(tmp_path: Path) -> None:
    for verb in VERBS:
        code, output, memory = bounded(*verb, *with_device(tmp_path))
        assert (code, memory < MEMORY) == (12, True)
        assert "x-device-gfx1151 2.0 has code for x==2.0, and 1.0 is here" in output


@pytest.mark.parametrize("allowed", [(), ("--allow-missing",)])
def test_a_library_of_zeros_is_slimmed_in_little_memory(tmp_path: Path, allowed: tuple[str, ...]) -> None:
    head = host_elf(b"", name=b".rodata")
    wheel = tmp_path / "z-1-cp313-cp313-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("z/lib.so", "w", force_zip64=True) as library:
            library.write(head)
            for _ in range(1024):
                library.write(bytes(1 << 20))
        archive.writestr("z-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: z\nVersion: 1\n")
        archive.writestr("z-1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: cp313-cp313-linux_x86_64\n")
    code, output, most = bounded("slim", str(wheel), "--gpu", "gfx1151", "--out", str(tmp_path), *allowed)
    assert "there is nothing to remove" in output, (code, output)
    assert most < MEMORY
