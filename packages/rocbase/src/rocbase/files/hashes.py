"""The sha256 of files that are asked for again and again: each is read once, and anew where it changed."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict
from io import BufferedReader

MOST_KEPT = 1000
"""Files whose sha256 is remembered, those asked for last."""

SETTLED = 2.0
"""Seconds after a file's last change in which another could bear the same time."""

Mark = tuple[int, int, int, int, int]


class Hashes:
    """Remembers what files gave, by all that changes with their bytes: device, inode, size, and the times of
    the last change of the bytes and of the inode, of which nobody can set the second back. It may be asked by
    several threads; one file is read at a time."""

    def __init__(self) -> None:
        self._known: OrderedDict[Mark, str] = OrderedDict()
        self._lock, self._reading = threading.Lock(), threading.Lock()

    def of(self, file: BufferedReader) -> str:
        """Hex sha256 of an open file."""
        return self._find(_mark(file)) or self._read(file)

    def _find(self, mark: Mark) -> str:
        with self._lock:
            if mark not in self._known:
                return ""
            self._known.move_to_end(mark)
            return self._known[mark]

    def _read(self, file: BufferedReader) -> str:
        with self._reading:
            started, mark = time.time(), _mark(file)
            if cached := self._find(mark):
                return cached
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            if _mark(file) == mark and mark[-1] < (started - SETTLED) * 1e9:
                with self._lock:
                    self._known[mark] = digest
                    while len(self._known) > MOST_KEPT:
                        self._known.popitem(last=False)
            return digest


def _mark(file: BufferedReader) -> Mark:
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
