"""The GPU code of a library, read a second time: by LLVM's tools and zstd, and where those cannot, plainly.

Nothing of rocwheel is imported, and nothing is done as it does it: each file is searched whole, and all is
unpacked. What LLVM can read is compared with it here: the entries of bundles (clang-offload-bundler) and the
code of plain ones in `.hip_fatbin` (llvm-objdump). Code objects that lie alone are read by llvm-readelf. LLVM
lists no compressed bundle of version 3, and none outside `.hip_fatbin`.
"""

from __future__ import annotations

import hashlib
import re
import struct
import subprocess
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

CODE = b"\x7fELF\x02\x01\x01\x40"
PLAIN = b"__CLANG_OFFLOAD_BUNDLE__"
PACKED = re.compile(rb"CCOB[\1-\3]\0[\0\1]\0")

Seen = Counter[tuple[str, str, str]]
"""How often a file (its path in the wheel) holds code for a target with a sha256."""


@dataclass(frozen=True, slots=True)
class Tools:
    """Paths of LLVM's tools. The bundler lists compressed bundles up to version 2."""

    readelf: str
    bundler: str
    objdump: str


@dataclass(slots=True)
class Compared:
    """What LLVM read too: bundles whose entries it listed, code objects that it took out."""

    bundles: int = 0
    code_objects: int = 0


def code_in_wheel(wheel: Path, folder: Path, tools: Tools, compared: Compared | None = None) -> Seen:
    """All GPU code of a wheel; each of its files lies in `folder` while it is read."""
    found: Seen = Counter()
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            with archive.open(info) as member:
                found += _code_in_file(info.filename, member, folder, tools, compared or Compared())
    return found


def code_in_package(package: Path, folder: Path, tools: Tools, compared: Compared | None = None) -> Seen:
    """The same of a Debian package, read by dpkg; none of its names is written to disk."""
    found: Seen = Counter()
    words = ["dpkg-deb", "--fsys-tarfile", str(package)]
    with (
        subprocess.Popen(words, stdout=subprocess.PIPE) as running,
        tarfile.open(fileobj=running.stdout, mode="r|") as archive,
    ):
        for info in archive:
            member = archive.extractfile(info) if info.isreg() else None
            if member is not None:
                name = info.name.removeprefix("./")
                found += _code_in_file(name, member, folder, tools, compared or Compared())
    assert running.returncode == 0, package
    return found


def _code_in_file(name: str, member: IO[bytes], folder: Path, tools: Tools, compared: Compared) -> Seen:
    """The GPU code of a file, under its name."""
    found: Seen = Counter()
    head = member.read(4)
    if head not in (b"\x7fELF", b"CCOB", PLAIN[:4]):
        return found
    data = head + member.read()
    for target, code in _code(data, folder / "piece", tools, compared):
        found[name, target, hashlib.sha256(code).hexdigest()] += 1
    (folder / "piece").unlink(missing_ok=True)
    if head == b"\x7fELF" and PLAIN in data:
        _compare_dumped(name, data, folder / "dumped", found, tools.objdump, compared)
    return found


def _compare_dumped(
    name: str, data: bytes, folder: Path, found: Seen, objdump: str, compared: Compared
) -> None:
    """What llvm-objdump takes out of a library must be among the code that was found in it."""
    folder.mkdir()
    (folder / "lib").write_bytes(data)
    done = subprocess.run([objdump, "--offloading", "lib"], cwd=folder, capture_output=True, text=True)
    dumped: Seen = Counter()
    if done.returncode == 0:
        for path in folder.glob("lib.*amdhsa--*"):
            code = path.read_bytes()
            # of compressed bundles LLVM 22 takes bytes of the library at the places of the code
            if code.startswith(CODE[:4]):
                target = _ordered(path.name.partition("amdhsa--")[2])
                dumped[name, target, hashlib.sha256(code).hexdigest()] += 1
    assert sorted((dumped - found).items())[:5] == [], name
    compared.code_objects += dumped.total()
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def _code(data: bytes, scratch: Path, tools: Tools, compared: Compared) -> Iterator[tuple[str, bytes]]:
    """Target and bytes of each code object: those of bundles, then those that lie alone."""
    spans: list[tuple[int, int]] = []
    for at in _places(data):
        if spans and at < spans[-1][1]:
            continue
        bundle, size = _unpacked(data, at, scratch)
        entries = list(_entries(bundle)) if bundle else []
        if not entries:
            continue
        end = at + (size or max(end for _, _, end in entries))
        spans.append((at, end))
        if _is_listed(data, at, size):
            scratch.write_bytes(data[at:end])
            _compare_listed(scratch, [name for name, _, _ in entries], tools.bundler)
            compared.bundles += 1
        for name, begin, end in entries:
            target = re.search(r"(?:--|-)((?:gfx|amdgcnspirv)[^ ]*)$", name)
            if target and end > begin:
                yield _ordered(target[1]), bytes(bundle[begin:end])
    position = 0
    while (at := data.find(CODE, position)) >= 0:
        inside = next((end for begin, end in spans if begin <= at < end), 0)
        position = inside or at + 1
        if not inside and data[at + 18 : at + 20] == b"\xe0\0":
            size, target_id = _of_readelf(data[at:], scratch, tools.readelf)
            yield target_id, data[at : at + size]
            position = at + size


def _is_listed(data: bytes, at: int, size: int) -> bool:
    """Whether LLVM's bundler lists it: a plain one, or a compressed one that says how long it is."""
    return data[at : at + 24] == PLAIN or (size > 0 and data[at + 4] == 2)


def _compare_listed(bundle: Path, names: list[str], bundler: str) -> None:
    words = [bundler, "--list", "--type=o", f"--input={bundle}"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert sorted(listed) == sorted(names), bundle


def _places(data: bytes) -> list[int]:
    plain = [match.start() for match in re.finditer(re.escape(PLAIN), data)]
    return sorted([*plain, *(match.start() for match in PACKED.finditer(data))])


def _unpacked(data: bytes, at: int, scratch: Path) -> tuple[bytes | memoryview, int]:
    """The plain bundle at a place, and how long it is as it lies there (0: as its entries say)."""
    if data[at : at + 24] == PLAIN:
        return memoryview(data)[at:], 0
    version, method = struct.unpack_from("<HH", data, at + 4)
    header = {1: 20, 2: 24, 3: 32}[version]
    (size,) = struct.unpack_from("<Q" if version == 3 else "<I", data, at + 8) if version > 1 else (0,)
    packed = data[at + header : at + size] if size else data[at + header :]
    if method == 0:
        inflate = zlib.decompressobj()
        plain = inflate.decompress(packed)
        return plain, size or header + len(packed) - len(inflate.unused_data)
    scratch.write_bytes(packed)
    # with more behind it, as version 1 may have, zstd fails after it has written the frame
    done = subprocess.run(["zstd", "-q", "-d", "-c", scratch], capture_output=True)
    assert done.returncode == 0 or not size, done.stderr
    return done.stdout, size or header


def _entries(bundle: bytes | memoryview) -> Iterator[tuple[str, int, int]]:
    """Name, begin and end of what a plain bundle lists; nothing where it is but the word for one."""
    (count,) = struct.unpack_from("<Q", bundle, 24)
    at = 32
    for number in range(count if count < 5000 else 0):
        if at + 24 > len(bundle):
            return
        begin, size, length = struct.unpack_from("<QQQ", bundle, at)
        name = bytes(bundle[at + 24 : at + 24 + min(length, 300)]).decode("latin-1")
        if number == 0 and not name.startswith(("host", "hip", "hcc", "openmp")):
            return
        yield name, begin, begin + size
        at += 24 + length


def _of_readelf(data: bytes, scratch: Path, readelf: str) -> tuple[int, str]:
    """How long a code object is, and its target, as llvm-readelf tells it."""
    scratch.write_bytes(data)
    told = subprocess.run([readelf, "-hlW", scratch], capture_output=True, text=True, check=True).stdout

    def number(label: str) -> int:
        match = re.search(rf"{label}: +(\d+)", told)
        assert match is not None, told
        return int(match[1])

    ends = [
        number(f"Start of {kind} headers")
        + number(f"Size of {kind} headers") * number(f"Number of {kind} headers")
        for kind in ("program", "section")
    ]
    segments = re.findall(r"^  [A-Z_]+ +(0x\w+) 0x\w+ 0x\w+ (0x\w+) ", told, re.MULTILINE)
    ends += [int(begin, 16) + int(length, 16) for begin, length in segments]
    flags = re.search(r"Flags: +0x\w+, (.*)", told)
    assert flags is not None, told
    target, *features = flags[1].split(", ")
    if data[8] == 1:
        # code object version 3 knows no "off", and names what is on
        features = [f"{one}+" for one in features]
    return max(ends), _ordered(":".join([target, *(one for one in features if one.endswith(("+", "-")))]))


def _ordered(target: str) -> str:
    """A target with its features in one order."""
    first, *features = target.strip("\0").split(":")
    return ":".join([first, *sorted(features)])
