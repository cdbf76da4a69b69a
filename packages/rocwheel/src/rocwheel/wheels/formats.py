"""How containers of files begin: what tells one from another before anything of it is read."""

from __future__ import annotations

ZIP_MAGIC, EMPTY_ZIP_MAGIC = b"PK\x03\x04", b"PK\x05\x06"
AR_MAGIC = b"!<arch>\n"
PE_MAGIC = b"MZ"

PACKED = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\0": "xz",
    b"BZh": "bzip2",
}
"""What a tar is packed with."""

IMAGE_MARK = "oci-layout"
"""The file that makes a folder an image layout."""

TAR_HEAD = 262
"""Bytes that tell a tar."""

_TAR_MAGIC = b"ustar"
_TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.zst", ".tar.bz2")


def packing(head: bytes) -> str:
    """What packed the data that begin so; empty where nothing known did."""
    return next((name for magic, name in PACKED.items() if head.startswith(magic)), "")


def is_tar(head: bytes, name: str) -> bool:
    """Whether a file of that name that begins so is a tar, as it is or packed."""
    is_plain = head[:TAR_HEAD].endswith(_TAR_MAGIC) and len(head) >= TAR_HEAD
    return is_plain or bool(packing(head)) or name.endswith(_TAR_SUFFIXES)
