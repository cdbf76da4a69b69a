"""Run a command as root of a user namespace that owns nothing of the host: `enter COMMAND...`.

For root of the host, whom unshare gives no range of user ids. It imports little: each command starts it.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

# The user ids of the host that the namespace has, which no user or container is given.
#
# Source: systemd, UIDS-GIDS (1879048192 and above is unused).
FIRST, COUNT = 0x7000_0000, 65536

_NEWUSER = 0x1000_0000
_REFUSED = 125


def main() -> None:
    """Enter the namespace and become the command."""
    try:
        _enter()
    except OSError as refusal:
        print(f"unshare: {refusal}", file=sys.stderr)
        raise SystemExit(_REFUSED) from refusal
    os.chdir("/")
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606


def _enter() -> None:
    ready, writer = os.pipe()
    mapper = os.fork()
    if mapper == 0:
        # only a process outside of a namespace may map its ids
        os.close(writer)
        os._exit(_map(os.getppid()) if os.read(ready, 1) else _REFUSED)
    if ctypes.CDLL(None, use_errno=True).unshare(_NEWUSER) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    os.write(writer, b"1")
    if os.waitpid(mapper, 0)[1] != 0:
        raise SystemExit(_REFUSED)
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)


def _map(pid: int) -> int:
    """Say which user ids the namespace of a process has; return an exit status."""
    try:
        for name in ("uid_map", "gid_map"):
            Path(f"/proc/{pid}/{name}").write_text(f"0 {FIRST} {COUNT}\n")
    except OSError as refusal:
        print(f"unshare: {refusal}", file=sys.stderr)
        return _REFUSED
    return 0


if __name__ == "__main__":
    main()
