"""Whether a file that came from outside is the one that the lock names."""

from __future__ import annotations

from pathlib import Path

from rocbase.errors import FetchError
from rocbase.files.atomic import sha256_file
from rocwright.model.steps import FilePin


def check_pin(path: Path, pin: FilePin) -> None:
    """Raise FetchError unless the file is there and exactly what the lock says."""
    if not path.exists():
        raise FetchError(
            f"{pin.filename} did not arrive",
            cause="what was asked for it said that all went well, and left no file of that name",
            next_step="try again; if it happens again, report it with the log",
            subject=pin.filename,
        )
    size = path.stat().st_size
    digest = sha256_file(path) if size == pin.size else ""
    if digest != pin.sha256:
        raise FetchError(
            f"{pin.filename} does not match the lock",
            cause=f"size {size}, sha256 {digest[:12] or 'not computed'}; the lock says {pin.size}, "
            f"{pin.sha256[:12]}",
            next_step="try again; if it happens again, the file was changed upstream: find out why "
            "before you trust it, "
            "then rocwright lock",
            subject=pin.filename,
        )
