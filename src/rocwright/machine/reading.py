"""A program that reads files for another, which can leave it behind where a driver never answers.

It says an empty line when it is ready. Asked by a line of JSON, `[what, path]`, it answers with one:
`{"got": ...}`, `{"missing": true}` or `{"failed": "Permission denied"}`. It needs nothing but the standard
library.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import sys

MOST = 1024 * 1024
"""Bytes of a file that are read; what the kernel tells is far shorter."""

ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO)


def answer(what: str, path: str) -> object:
    """What was asked of one path. Raises OSError as the kernel does."""
    match what:
        case "text":
            return content(path).decode(errors="replace")
        case "hex":
            return content(path).hex()
        case "names":
            return sorted(os.listdir(path))
        case "link":
            return os.readlink(path)
        case "real":
            return os.path.realpath(path, strict=True)
        case "held":
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))  # refused where nobody reads it: fifo(7)
            return True
        case "may":
            return os.access(path, os.R_OK | os.W_OK)
        case "stat":
            found = os.stat(path)
            return {
                "mode": stat.S_IMODE(found.st_mode),
                "kind": stat.S_IFMT(found.st_mode),
                "uid": found.st_uid,
                "gid": found.st_gid,
            }
        case "room":
            room = os.statvfs(path)
            return {
                "total": room.f_frsize * room.f_blocks,
                "free": room.f_frsize * room.f_bavail,
                "inodes": room.f_files,
                "inodes_free": room.f_favail,
                "device": os.stat(path).st_dev,
            }
        case _:
            raise OSError(errno.EINVAL, f"no process can run as {what}")


def content(path: str) -> bytes:
    """A file's first bytes."""
    with open(path, "rb") as file:
        return file.read(MOST)


def main() -> None:
    print(flush=True)
    for line in sys.stdin:
        what, path = json.loads(line)
        try:
            told = {"got": answer(what, path)}
        except OSError as error:
            told = {"missing": True} if error.errno in ABSENT else {"failed": error.strerror or str(error)}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
