"""A PostgreSQL server of one's own, from the archive's packages: in a temporary folder, on a socket in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USER = "nobody"
"""The server refuses to run as root."""


def programs() -> Path | None:
    """The folder of the server's programs, of the newest version that is there."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


@contextmanager
def postgres(bin_: Path) -> Iterator[tuple[str, Path]]:
    """A running server: its URL, and its folder; gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="rocwright-pg-", dir="/tmp"))
    as_user = ["setpriv", f"--reuid={USER}", "--clear-groups"] if os.geteuid() == 0 else []
    if as_user:
        shutil.chown(folder, USER)
    control = [*as_user, str(bin_ / "pg_ctl"), "-D", str(folder / "data"), "-w", "-s"]
    try:
        made = [str(bin_ / "initdb"), "-D", str(folder / "data"), "-U", "rocwright", "-A", "trust", "-N"]
        subprocess.run([*as_user, *made], check=True, capture_output=True, cwd="/")
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        log = ["-l", str(folder / "log")]
        subprocess.run([*control, *log, "-o", options, "start"], check=True, capture_output=True, cwd="/")
        yield f"postgresql://rocwright:secret@/postgres?host={folder}", folder
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=False, capture_output=True, cwd="/")
        shutil.rmtree(folder, ignore_errors=True)
