"""How a file comes out of a step's folder, so that nobody else can write to it."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path
from typing import BinaryIO

from rocbase.errors import OutOfDiskError
from rocbase.files.atomic import CHUNK


def is_written(descriptor: int) -> bool:
    """Whether somebody has the file open for writing: the kernel gives a read lease only where nobody has."""
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        # a file system without leases cannot tell; the step has ended by then
        return error.errno == errno.EAGAIN
    return False


def copy(source: BinaryIO, into: Path) -> None:
    """Write what is read from `source` to the new path `into`. Raises OutOfDiskError."""
    with source, into.open("xb") as target:
        try:
            while chunk := source.read(CHUNK):
                target.write(chunk)
            target.flush()
        except BaseException as error:
            into.unlink()
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise OutOfDiskError(
                    f"the disk that holds {into.parent} is full",
                    cause="an output file of a step could not be copied",
                    next_step="free some disk space (rocwright clean --dry-run lists what can be "
                    "removed), then run again",
                ) from error
            raise
