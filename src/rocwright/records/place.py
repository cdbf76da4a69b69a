"""Where the records are: cheap to ask, nothing of the database is loaded for it."""

from __future__ import annotations

import os
from pathlib import Path

from rocwright.config import config
from rocwright.home import Home

# A `postgresql://` URL or a file; it stands over `records` of config.toml.
VARIABLE = "ROCWRIGHT_RECORDS"

# A run that is kept as a file, in its folder (spool.py).
RUN = "run.json"
# Says into which database the files went; away where a file waits.
TAKEN = ".taken-over"


def place(home: Home) -> str | Path:
    """The URL of the server, or the file."""
    named = os.environ.get(VARIABLE) or config().records
    if "://" in named:
        return named
    return Path(named).expanduser().absolute() if named else home.records


def there(home: Home) -> bool:
    """Whether there may be anything on record."""
    location = place(home)
    return isinstance(location, str) or location.exists() or home.runs.exists()
