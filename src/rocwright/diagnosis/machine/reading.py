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
from collections import deque

# Bytes of a file that are read; what the kernel tells is far shorter.
LIMIT = 1024 * 1024

# Bytes of one record of the kernel's log, at most (Documentation/ABI/testing/dev-kmsg).
_RECORD = 8192

ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO)


def answer(kind: str, path: str) -> object:
    """What was asked of one path. Raises OSError as the kernel does."""
    match kind:
        case "text":
            return content(path).decode(errors="replace")
        case "hex":
            return content(path).hex()
        case "log":
            return log(path).decode(errors="replace")
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
            status = os.stat(path)
            return {
                "mode": stat.S_IMODE(status.st_mode),
                "kind": stat.S_IFMT(status.st_mode),
                "uid": status.st_uid,
                "gid": status.st_gid,
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
            raise OSError(errno.EINVAL, f"no process can run as {kind}")


def content(path: str) -> bytes:
    """A file's first bytes."""
    with open(path, "rb") as file:
        return file.read(LIMIT)


def log(path: str) -> bytes:
    """The end of a log, by whole lines; of the kernel's own device all that it still has, a line a record.

    What this user may not read is empty: logs are for administrators on many machines.
    """
    try:
        if stat.S_ISCHR(os.stat(path).st_mode):
            return _records(path)
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LIMIT))
            tail = file.read(LIMIT)
    except PermissionError:
        return b""
    return tail if size <= LIMIT else tail.partition(b"\n")[2]


def _records(path: str) -> bytes:
    """The newest lines of /dev/kmsg, their times as in dmesg."""
    lines: deque[bytes] = deque()
    size = 0
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        while True:
            try:
                line = kernel_line(os.read(descriptor, _RECORD))
            except BrokenPipeError:
                continue  # newer records took the place of the next one
            except BlockingIOError:
                break
            if line is None:
                break
            lines.append(line)
            size += len(lines[-1]) + 1
            while size > LIMIT:
                size -= len(lines.popleft()) + 1
    finally:
        os.close(descriptor)
    return b"\n".join(lines)


def kernel_line(record: bytes) -> bytes | None:
    """A record (`6,339,5140900,-;text`, and lines of more about it) as dmesg shows it; None for no record."""
    head, _, text = record.partition(b";")
    fields = head.split(b",")
    if not text or len(fields) < 3 or not fields[2].isdigit():
        return None
    return b"[%12.6f] %s" % (int(fields[2]) / 1e6, text.partition(b"\n")[0])


def main() -> None:
    print(flush=True)
    for line in sys.stdin:
        kind, path = json.loads(line)
        try:
            reply = {"got": answer(kind, path)}
        except OSError as error:
            reply = {"missing": True} if error.errno in ABSENT else {"failed": error.strerror or str(error)}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
