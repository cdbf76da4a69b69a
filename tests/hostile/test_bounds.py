"""Small inputs of strangers that unpack or grow without end: each reader refuses them in little memory."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from isal import isal_zlib
from samples.repository import make_repository
from tests.sources.test_layers import bring

from rocbase.errors import ExplainedError
from rocbase.files.bounds import Bound
from rocwheel.wheels.canonicalize import normalise
from rocwheel.wheels.choose import Target
from rocwheel.wheels.diff.wheels import diff
from rocwheel.wheels.inspection import inspect
from rocwheel.wheels.lint.judge import judge
from rocwheel.wheels.slim.wheel import slim_wheel
from rocwheel.wheels.slim.wish import Wish
from rocwheel.wheels.split.device_wheels import split_device_wheels
from rocwheel.wheels.split.manifest import read_neutral
from rocwheel.wheels.split.wheel import split_wheel
from rocwheel.wheels.zipping import ZipWriter
from rocwheel_samples.fatbin import entry_id, gpu_elf, linked_elf, plain_bundle
from rocwheel_samples.wheel_making import METADATA, NAME, WHEEL
from rocwright.catalog.base import ListForm
from rocwright.catalog.model_files import model_facts
from rocwright.execution.install import read_wheel
from rocwright.model.steps import GitOrigin
from rocwright.provenance.bundled import contents
from rocwright.provenance.stranger import read_stranger
from rocwright.serving.models.gguf import read_gguf
from rocwright.serving.models.safetensors import read_safetensors
from rocwright.sources import archive as sources
from rocwright.sources import layers, package_lists, web
from rocwright.sources.git import pack_commit
from rocwright.sources.wheel_metadata import read_metadata

MIB = 1024**2
MOST = 96 * MIB
"""Memory that a reader may take in these tests, whose inputs are smaller than an attacker's."""

INFO = "small-1.0.dist-info"
WISH = Wish(targets=(Target("gfx1100"),), covered={}, allow_missing=True)


@dataclass(frozen=True)
class Case:
    """An input: what writes it into a folder, what reads it, and what its error says; "" if it is allowed."""

    make: Callable[[Path], Path]
    read: Callable[[Path], object]
    says: str


def repeated(begin: bytes, unit: bytes, size: int) -> Iterator[bytes]:
    """Yield `size` bytes in pieces."""
    block = unit * (MIB // len(unit))
    yield begin
    for _ in range((size - len(begin)) // len(block)):
        yield block


def wheel_with(name: str, begin: bytes, unit: bytes, size: int) -> Callable[[Path], Path]:
    """Return what makes a wheel with GPU code, one text of which has `size` bytes."""
    code = plain_bundle([(entry_id("gfx1100"), gpu_elf(0x41)), (entry_id("gfx1030"), gpu_elf(0x36))])
    texts = {
        "small/lib.so": [linked_elf([code])],
        f"{INFO}/METADATA": [METADATA],
        f"{INFO}/WHEEL": [WHEEL],
    }

    def make(folder: Path) -> Path:
        path = folder / NAME
        with path.open("wb") as file:
            writer = ZipWriter(file, 0)
            for member, content in {**texts, f"{INFO}/{name}": list(repeated(begin, unit, size))}.items():
                writer.add(member, 0o644, sum(map(len, content)), content)
            writer.finish()
        assert path.stat().st_size < 2 * MIB
        return path

    return make


def out(path: Path) -> Path:
    folder = path.parent / "out"
    folder.mkdir()
    return folder


def with_another(path: Path) -> object:
    other = path.parent / "other"
    other.mkdir()
    return diff(path, wheel_with("extra", b"", b" ", MIB)(other))


LONG = wheel_with("METADATA", METADATA, b"x", 110 * MIB)
LINES = wheel_with("METADATA", b"", b"a:\n", 3 * MIB)
ROWS = wheel_with("RECORD", b"", b"a,,\n", 24 * MIB)
RECORD = wheel_with("RECORD", b"", b"small/__init__.py,,\n", 110 * MIB)

TAGS = "-".join(".".join(f"{part}{number}" for number in range(300)) for part in "abc").encode()
"""27 million combinations of tags, in 4 KB."""


def text(name: str, content: bytes) -> Callable[[Path], Path]:
    return wheel_with(name, content, b" ", len(content))


READERS: dict[str, Callable[[Path], object]] = {
    "slim": lambda path: slim_wheel(path, out(path), WISH, names={"gfx1100"}, epoch=0),
    "split": lambda path: split_wheel(path, out(path), epoch=0),
    "split --kpack": lambda path: split_device_wheels(path, out(path), epoch=0),
    "diff": with_another,
    "lint": judge,
    "inspect": inspect,
    "install": read_wheel,
    "lock": lambda path: read_metadata(path, path.name),
    "attest": contents,
    "attest of a stranger's": read_stranger,
}
ALL = {f"{name}: long METADATA": Case(LONG, read, "at most") for name, read in READERS.items()}


def gguf(keys: int, tensors: int, body: Iterator[bytes]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / "model.gguf"
        path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, tensors, keys) + b"".join(body) + bytes(64))
        return path

    return make


def array(number: int, kind: int, count: int, width: int) -> bytes:
    key = b"k%d" % number
    head = struct.pack(f"<Q{len(key)}sIIQ", len(key), key, 9, kind, count)
    return head + b"\1" * count * width


def safetensors(begin: bytes, unit: bytes, count: int, end: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / "model.safetensors"
        head = begin + unit * count + end
        path.write_bytes(struct.pack("<Q", len(head)) + head)
        return path

    return make


def of_gguf(path: Path) -> object:
    return read_gguf(path, model_facts())


def numbered(count: int, pax: int = 0) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    """Yield empty files, each with as many bytes in an extended attribute."""
    for number in range(count):
        info = tarfile.TarInfo(f"{number:x}")
        info.pax_headers = {"SCHILY.xattr.user.x": f"x{number:x}" * (pax // 4)} if pax else {}
        yield info, b""


def zeros(size: int) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    info = tarfile.TarInfo("zeros")
    info.size = size
    yield info, bytes(size)


def tar_of(entries: Iterator[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content))
    return data.getvalue()


def image(entries: Callable[[], Iterator[tuple[tarfile.TarInfo, bytes]]]) -> Callable[[Path], Path]:
    """Return what lays out an image of one layer as skopeo does."""

    def make(folder: Path) -> Path:
        plain = tar_of(entries())
        return bring(folder, plain, packed=[isal_zlib.compress(plain, 1, 31)])

    return make


def of_image(path: Path) -> object:
    vars(layers)["LAYERS"] = SMALL
    return layers.pack_layers(path, path / "root.tar.zst", path, "registry.example/x:1")


def archive(entries: Callable[[], Iterator[tuple[tarfile.TarInfo, bytes]]]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / "source.tar.gz"
        path.write_bytes(isal_zlib.compress(tar_of(entries()), 1, 31))
        return path

    return make


def of_archive(path: Path) -> object:
    vars(sources)["SOURCES"] = SMALL
    return sources.unpack(path, path.parent / "tree")


def package_list(unit: bytes, size: int) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / "list"
        path.write_bytes(isal_zlib.compress(b"".join(repeated(b"", unit, size)), 1, 31))
        return path

    return make


def of_lists(form: ListForm) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        vars(web)["read_bytes"] = lambda *_: path.read_bytes()
        vars(package_lists)["PACKAGE_LISTS"] = SMALL
        return package_lists.newest(form, ["http://archive.example/Packages"], "amd64", 10)

    return read


def pax_of(unit: bytes) -> Callable[[], Iterator[tuple[tarfile.TarInfo, bytes]]]:
    """Return what yields members with an extended header of that, as long as it may be."""

    def members() -> Iterator[tuple[tarfile.TarInfo, bytes]]:
        for name in "abcd":
            header = unit * (60_000 // len(unit)) + b"=\n"
            info = tarfile.TarInfo("header")
            info.type, info.size = tarfile.XHDTYPE, len(header)
            yield info, header
            yield tarfile.TarInfo(name), b""

    return members


def git_tree(levels: int, width: int, size: int) -> Callable[[Path], Path]:
    """Return what makes a repository of one file that lies in all folders of each level."""

    def make(folder: Path) -> Path:
        repository = make_repository(folder / "upstream")
        (repository.path / "zeros").write_bytes(bytes(size))
        entry = f"100644 blob {repository.git('hash-object', '-w', 'zeros')}"
        for _ in range(levels):
            rows = "".join(f"{entry}\t{number}\n" for number in range(width))
            words = ("git", "-C", str(repository.path), "mktree")
            made = subprocess.run(words, input=rows, capture_output=True, text=True, check=True)
            entry = f"040000 tree {made.stdout.strip()}"
        tree = entry.split()[2]
        repository.git("update-ref", "HEAD", repository.git("commit-tree", "-m", "bomb", tree))
        return repository.path

    return make


def of_git(path: Path) -> object:
    os.environ["GIT_ALLOW_PROTOCOL"] = "file"
    words = ("git", "-C", str(path), "rev-parse", "HEAD")
    commit = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    target = path.parent / "fetched"
    try:
        return pack_commit(GitOrigin(url=str(path), commit=commit), target)
    finally:
        assert sum(file.stat().st_size for file in target.rglob("*")) < MIB, "it was checked out"


def manifest(count: int) -> Callable[[Path], Path]:
    """Return what writes the manifest of a split wheel with so many parts."""
    library = {"path": "a", "size": 1, "sha256": "0" * 64, "kept": "b", "bundles": []}
    names = {"record": "0" * 64, "epoch": 0, "wheel": NAME, "folder": INFO, "targets": []}
    parts = [{"offset": 1, "size": 1}] * count
    document = names | {"schema": 1, "libraries": [library | {"spans": parts}], "whole": []}

    def make(folder: Path) -> Path:
        path = folder / "manifest.json"
        path.write_text(json.dumps(document))
        return path

    return make


def merged_manifest(path: Path) -> object:
    return read_neutral(path.read_bytes(), path.name)


SMALL = Bound(size=64 * MIB, free=32 * MIB, ratio=50, members=1000, header=64 * 1024)
"""A bound in the place of one of the table, so that the inputs of tests can be small."""

CASES: dict[str, Case] = {
    **ALL,
    "image: a layer of zeros": Case(image(lambda: zeros(64 * MIB)), of_image, "more bytes than"),
    "image: empty files": Case(image(lambda: numbered(1100)), of_image, "more files"),
    "image: attributes": Case(image(lambda: numbered(90, 60_000)), of_image, "bytes of headers"),
    "archive: a header of digits": Case(archive(pax_of(b"1")), of_archive, "extended header"),
    "archive: a header in itself": Case(archive(pax_of(b"2 ")), of_archive, "extended header"),
    "git: a large file in many folders": Case(git_tree(3, 10, MIB), of_git, " came"),
    "git: a file in a million folders": Case(git_tree(5, 20, 1), of_git, "files, or"),
    "archive: zeros": Case(archive(lambda: zeros(64 * MIB)), of_archive, "more bytes"),
    "archive: empty files": Case(archive(lambda: numbered(1100)), of_archive, "more files"),
    "package list: lines": Case(package_list(b"Version: 1\n", 40 * MIB), of_lists("deb"), "more"),
    "package list: one line": Case(package_list(b"x", 40 * MIB), of_lists("deb"), "no end"),
    "package list: zeros": Case(package_list(bytes(64), 120 * MIB), of_lists("rpm"), "valid package list"),
    "lint: METADATA of lines": Case(LINES, judge, "lines of headers"),
    "slim: METADATA of lines": Case(LINES, READERS["slim"], "lines of headers"),
    "lint: long RECORD": Case(RECORD, judge, "at most"),
    "inspect: long RECORD": Case(RECORD, inspect, "at most"),
    "slim: long RECORD": Case(RECORD, READERS["slim"], "at most"),
    "lint: RECORD of rows": Case(ROWS, judge, ""),
    "canonicalize: RECORD of rows": Case(ROWS, lambda path: normalise(path, out(path), epoch=0), "RECORD"),
    "lint: tags multiplied out": Case(text("WHEEL", WHEEL.replace(b"py3-none-any", TAGS)), judge, ""),
    "lint: a version of digits": Case(text("METADATA", b"Name: small\nVersion: " + b"1" * 5000), judge, ""),
    "install: a nested marker": Case(
        text("METADATA", b"Name: small\nRequires-Dist: x; " + b"(" * 3000),
        READERS["install"],
        "cannot be read",
    ),
    "merge: a manifest of small parts": Case(manifest(200_000), merged_manifest, ""),
    "gguf: arrays that nobody needs": Case(
        gguf(3000, 0, (array(number, 0, 4096, 1) for number in range(3000))), of_gguf, ""
    ),
    "gguf: an array of texts": Case(gguf(1, 0, iter([array(0, 8, MIB, 0), bytes(8 * MIB)])), of_gguf, ""),
    "safetensors: names": Case(safetensors(b"{", b'"a":0,', 2 * MIB, b'"b":0}'), read_safetensors, "damaged"),
    "safetensors: one nested list": Case(
        safetensors(b'{"a":[', b"[],", 4 * MIB, b"[]]}"), read_safetensors, "damaged"
    ),
    "safetensors: metadata": Case(
        safetensors(b'{"__metadata__":{', b'"a":"{}",', MIB, b'"b":""}}'), read_safetensors, ""
    ),
}


def memory(field: str) -> int:
    """Return a field of this process's status, in bytes."""
    with Path("/proc/self/status").open() as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))


def measured(case: Case, path: Path) -> tuple[str, int]:
    """Return what reading an input raises and how much memory it takes, in a process of its own."""
    back, there = os.pipe()
    if (child := os.fork()) == 0:
        text = "no error of rocwright"
        try:
            Path("/proc/self/clear_refs").write_text("5")
            before = memory("VmRSS")
            try:
                case.read(path)
                text = ""
            except ExplainedError as error:
                text = f"{error.message}: {error.cause}"
            text += f"\n{memory('VmHWM') - before}"
        finally:
            os.write(there, text.encode())
            os._exit(0)
    os.close(there)
    with os.fdopen(back) as reply:
        text, _, size = reply.read().rpartition("\n")
    os.waitpid(child, 0)
    return text, int(size)


@pytest.mark.parametrize("name", CASES)
def test_an_input_that_grows_is_refused_in_little_memory(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    text, peak = measured(case, case.make(tmp_path))
    assert (case.says in text) if case.says else not text, text
    assert peak < MOST, f"{peak / MIB:.0f} MiB"
