"""The GPU code of a library, read a second time: by LLVM's tools and zstd, and where those cannot, plainly.

Nothing of rocwheel is imported, and nothing is done as it does it: files are unpacked to disk, each is
searched whole, all is unpacked. LLVM lists no compressed bundle of version 3, and none outside `.hip_fatbin`.
"""

from __future__ import annotations

import hashlib
import re
import struct
import subprocess
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

CODE = b"\x7fELF\x02\x01\x01\x40"
PLAIN = b"__CLANG_OFFLOAD_BUNDLE__"
PACKED = re.compile(rb"CCOB[\1-\3]\0[\0\1]\0")

Seen = Counter[tuple[str, str, str]]
"""How often a file (its path in the wheel) holds code for a target with a sha256."""


def code_in_wheel(wheel: Path, folder: Path, readelf: str) -> Seen:
    """All GPU code of a wheel; each of its files lies in `folder` while it is read."""
    found: Seen = Counter()
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            with archive.open(info) as member:
                if member.read(4) not in (b"\x7fELF", b"CCOB", PLAIN[:4]):
                    continue
            path = Path(archive.extract(info, folder))
            data = path.read_bytes()
            for target, code in _code(data, folder / "piece", readelf):
                found[info.filename, target, hashlib.sha256(code).hexdigest()] += 1
            path.unlink()
            (folder / "piece").unlink(missing_ok=True)
    return found


def _code(data: bytes, scratch: Path, readelf: str) -> Iterator[tuple[str, bytes]]:
    """Target and bytes of each code object: those of bundles, then those that lie alone."""
    spans: list[tuple[int, int]] = []
    for at in _places(data):
        if spans and at < spans[-1][1]:
            continue
        bundle, size = _unpacked(data, at, scratch)
        entries = list(_entries(bundle)) if bundle else []
        if not entries:
            continue
        spans.append((at, at + (size or max(end for _, _, end in entries))))
        for name, begin, end in entries:
            target = re.search(r"(?:--|-)((?:gfx|amdgcnspirv)[^ ]*)$", name)
            if target and end > begin:
                yield _ordered(target[1]), bytes(bundle[begin:end])
    position = 0
    while (at := data.find(CODE, position)) >= 0:
        inside = next((end for begin, end in spans if begin <= at < end), 0)
        position = inside or at + 1
        if not inside and data[at + 18 : at + 20] == b"\xe0\0":
            size, target_id = _of_readelf(data[at:], scratch, readelf)
            yield target_id, data[at : at + size]
            position = at + size


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
