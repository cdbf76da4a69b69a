"""A machine as a tree of files, this one or one in a folder: read with a time limit, failures told."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

from rocbase.model import Frozen
from rocbase.processes import run as process
from rocbase.processes.outlive import stat_of

# Seconds that one answer may take; the kernel's own files take microseconds.
LIMIT = 1.0

_PARTING = 0.2
_READER = Path(__file__).with_name("reading.py")


class Unread(Frozen):
    """A file that is there and could not be read, and why."""

    path: str
    why: str


class Stat(Frozen):
    """Mode bits, kind (S_IFMT), and numeric owners of a file."""

    mode: int
    kind: int
    uid: int
    gid: int


class Tree:
    """The files below `root` by the paths that they have on the machine (`/sys/...`).

    A companion process reads them: one that hangs in a driver is left behind, as no thread could be, and
    the folder whose file hung is not asked again. What is not there is None; what cannot be read is None too,
    and is in `unread`.
    """

    def __init__(self, root: Path = Path("/"), limit: float = LIMIT) -> None:
        self.root = root
        self.unread: list[Unread] = []
        self._limit = limit
        self._hung: set[str] = set()
        self._reader: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    @property
    def live(self) -> bool:
        """Whether it is the machine that this runs on."""
        return self.root == Path("/")

    def text(self, path: str) -> str | None:
        """A file's text without white space around it."""
        content = self._ask("text", path)
        return content.strip() if isinstance(content, str) else None

    def log(self, path: str) -> str | None:
        """The end of a log, or all that the kernel's device has; empty where this user may not read it."""
        content = self._ask("log", path)
        return content if isinstance(content, str) else None

    def number(self, path: str) -> int | None:
        """A file that holds a number, in any of the kernel's spellings."""
        text = self.text(path)
        try:
            return int(text, 0) if text else None
        except ValueError:
            self._cannot(path, "is not a number")
            return None

    def table(self, path: str) -> dict[str, int]:
        """A file of lines `name number`, also `name: number kB` (in bytes then)."""
        numbers: dict[str, int] = {}
        for line in (self.text(path) or "").splitlines():
            words = line.replace(":", " ").split()
            if len(words) > 1 and is_number(words[1]):
                numbers[words[0]] = int(words[1]) * (1024 if words[2:] == ["kB"] else 1)
        return numbers

    def raw(self, path: str) -> bytes | None:
        """A file's bytes."""
        content = self._ask("hex", path)
        return bytes.fromhex(content) if isinstance(content, str) else None

    def names(self, path: str) -> list[str]:
        """What lies in a folder, by name; nothing where it is not there."""
        entries = self._ask("names", path)
        return [str(name) for name in entries] if isinstance(entries, list) else []

    def link(self, path: str) -> str | None:
        """The last part of where a link points to: a device's `driver` -> amdgpu."""
        target = self._ask("link", path)
        return PurePosixPath(target).name if isinstance(target, str) else None

    def real(self, path: str) -> str | None:
        """The path with no links in it."""
        target = self._ask("real", path)
        if not isinstance(target, str):
            return None
        return target if self.live else "/" + os.path.relpath(target, os.path.realpath(self.root))

    def stat(self, path: str) -> Stat | None:
        """Rights and owners."""
        status = self._ask("stat", path)
        return Stat.model_validate(status) if status else None

    def may_use(self, path: str) -> bool:
        """Whether the kernel lets this process read and write the file (lists of rights and all)."""
        return bool(self._ask("may", path))

    def held(self, path: str) -> bool:
        """Whether somebody has a fifo open for reading."""
        return bool(self._ask("held", path))

    def room(self, path: str) -> dict[str, int] | None:
        """The file system that holds a path: bytes, inodes, device; of what exists of the path."""
        existing = PurePosixPath(path)
        while (usage := self._ask("room", str(existing))) is None and existing != existing.parent:
            existing = existing.parent
        return {str(name): int(value) for name, value in usage.items()} if isinstance(usage, dict) else None

    def _ask(self, kind: str, path: str) -> Any:
        folder = str(PurePosixPath(path).parent)
        if folder in self._hung:
            return self._cannot(path, "not read: a file next to it does not answer")
        reply = self._answer(json.dumps([kind, str(self.root / path.lstrip("/"))]).encode() + b"\n")
        if reply is None:
            self._hung.add(folder)
            self._leave()
            return self._cannot(path, f"no answer in {self._limit:g} s")
        if "failed" in reply:
            return self._cannot(path, str(reply["failed"]))
        return reply.get("got")

    def _answer(self, question: bytes) -> dict[str, Any] | None:
        """The reader's answer; None where it does not come in time."""
        if self._reader is None:
            self._reader = process.talk([sys.executable, "-I", "-S", _READER])
            assert self._reader.stdout is not None
            self._reader.stdout.readline()
        requests, replies = self._reader.stdin, self._reader.stdout
        assert requests is not None
        assert replies is not None
        requests.write(question)
        requests.flush()
        line = b""
        while not line.endswith(b"\n"):
            if not select.select([replies], [], [], self._limit)[0]:
                if _runs(self._reader.pid):
                    continue
                return None
            chunk = os.read(replies.fileno(), 1 << 20)
            if not chunk:
                return {"failed": "the reader ended"}
            line += chunk
        reply: dict[str, Any] = json.loads(line)
        return reply

    def _cannot(self, path: str, reason: str) -> None:
        failure = Unread(path=path, why=reason)
        if failure not in self.unread:
            self.unread.append(failure)

    def _leave(self) -> None:
        """Be rid of the reader, hardly waiting: one that is stuck in the kernel cannot be ended."""
        if self._reader is not None:
            process.kill_group(self._reader)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._reader.wait(_PARTING)
            for end in (self._reader.stdin, self._reader.stdout):
                if end is not None:
                    end.close()
            self._reader = None


def _runs(pid: int) -> bool:
    """Whether a process computes, or waits for a processor: on a busy machine it is slow, and not stuck."""
    return stat_of(pid)[:1] == ["R"]


def is_number(word: str) -> bool:
    """Whether a word is a number of plain digits."""
    return word.isascii() and word.isdigit()
