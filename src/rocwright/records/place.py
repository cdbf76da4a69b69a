"""Where the records are: cheap to ask, nothing of the database is loaded for it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rocwright.config import config
from rocwright.errors import RocwrightError
from rocwright.home import Home

if TYPE_CHECKING:
    from rocwright.records.read import Records

VARIABLE = "ROCWRIGHT_RECORDS"
"""A `postgresql://` URL or a file; it stands over `records` of config.toml."""

RUN = "run.json"
"""A run that is kept as a file, in its folder (takeover.py)."""
TAKEN = ".taken-over"
"""Says into which database the files went; away where a file waits."""


def place(home: Home) -> str | Path:
    """The URL of the server, or the file."""
    named = os.environ.get(VARIABLE) or config().records
    if "://" in named:
        return named
    return Path(named).expanduser().absolute() if named else home.records


def there(home: Home) -> bool:
    """Whether there may be anything on record."""
    where = place(home)
    return isinstance(where, str) or where.exists() or home.runs.exists()


def open_records(home: Home) -> Records:
    """The records, to be read and written; made where there are none, brought up to date where they are old.

    Runs that were kept as files are taken over, and runs whose process is gone are ended.
    """
    from rocwright.records.database import open_database
    from rocwright.records.ended import end_the_dead
    from rocwright.records.read import Records
    from rocwright.records.spool import take_over

    records = Records(open_database(place(home)))
    if not records.database.read_only:
        # who cannot do it now leaves it to the next, and can read all the same
        with suppress(RocwrightError, OSError):
            take_over(records, home)
            end_the_dead(records)
    return records


def read_records(home: Home) -> Records:
    """The same for one who only asks: where nothing is on record, nothing is made on the disk."""
    if there(home):
        return open_records(home)
    from rocwright.records.database import in_memory
    from rocwright.records.read import Records

    return Records(in_memory())
