"""One function extracts members to a disk, and one module decompresses: nothing else in the product does."""

from __future__ import annotations

import ast
from pathlib import Path

import rocbase
import rocwheel
import rocwright

EXTRACTS = frozenset({"extract", "extractall", "unpack_archive"})
DECOMPRESSES = frozenset(
    {
        *("gzip.open", "gzip.GzipFile", "gzip.decompress", "igzip.open", "lzma.open", "lzma.LZMAFile"),
        *("lzma.LZMADecompressor", "lzma.decompress", "bz2.open", "bz2.BZ2File", "bz2.decompress"),
        *("bz2.BZ2Decompressor", "zlib.decompress", "zlib.decompressobj", "isal_zlib.decompressobj"),
        *("igzip_lib.IgzipDecompressor", "zstandard.ZstdDecompressor", "zstandard.open"),
        *("zstandard.decompress", "tarfile.open", "zipfile.ZipFile"),
    }
)
BOUNDED = {
    "rocbase/files/unpacking.py": "the one module, which takes a bound of the table",
    "rocwheel/wheels/archive.py": "a member has the size that its zip declares, paid from a budget",
    "rocwheel/wheels/canonicalize.py": "directories alone, of wheels that were opened by archive.py",
    "rocwheel/wheels/devicecode/unpacking.py": "paid from the budget of the file around it",
    "rocwheel/wheels/index/examine.py": "as many bytes as METADATA may have",
    "rocwheel/wheels/inflating.py": "blocks, paid from a budget by their reader",
    "rocwheel/wheels/zips.py": "the first bytes of a member",
    "rocwright/diagnosis/read_log.py": "a log, piece by piece and within the table's bound",
    "rocwright/doctor/bundle.py": "written",
    "rocwright/execution/image.py": "written",
    "rocwright/serving/environment_image.py": "written",
    "rocwright/sources/patching/foreign.py": "as many bytes as a patch may have",
    "rocwright/records/read.py": "as many bytes as a lock may have",
    "rocwright/verify/carry.py": "written",
    "rocwright/verify/reproduce/from_lock.py": "directories alone, of wheels that were opened by archive.py",
    "rocwright/serving/container.py": "an image's archive of the store, which rocwright wrote",
    "rocwright/sources/archive.py": "zips, by the sizes of their directory; tars are written",
    "rocwright/sources/file_index.py": "a list that the base's key signed, for a bounded time",
    "rocwright/sources/layers.py": "written",
    "rocwright/sources/remote_wheel.py": "as many bytes as a file that is looked into may have",
    "rocwright/store/signed.py": "as many bytes as an envelope may have",
}
"""Modules that name what decompresses, and why that is bounded."""

PACKAGES = [Path(package.__file__ or "").parent for package in (rocwright, rocwheel, rocbase)]


def test_no_module_extracts_members_by_itself() -> None:
    calls = [
        f"{path}:{node.lineno}"
        for package in PACKAGES
        for path in package.rglob("*.py")
        if "data" not in path.relative_to(package).parts  # checks and guards run in a sandbox
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in EXTRACTS
    ]
    assert calls == []


def test_what_decompresses_is_known_and_bounded() -> None:
    callers = {
        f"{package.name}/{path.relative_to(package)}"
        for package in PACKAGES
        for path in package.rglob("*.py")
        if "data" not in path.relative_to(package).parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in DECOMPRESSES
    }
    assert callers == BOUNDED.keys()
