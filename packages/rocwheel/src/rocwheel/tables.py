"""Where tables of facts about wheels lie: those that rocwheel carries, and the user's own over them."""

from __future__ import annotations

import os
from pathlib import Path

from rocbase.errors import InputError

DATA = Path(__file__).parent / "data"
"""The tables that rocwheel carries."""

OVERLAY = "ROCWRIGHT_CATALOG"
"""The variable that names a folder of the user's own, laid over what is carried."""


def overlay() -> tuple[Path, ...]:
    """The folder of the user's own, where one is named. Raises InputError where that is no folder."""
    named = os.environ.get(OVERLAY)
    if not named:
        return ()
    folder = Path(named).absolute()
    if not folder.is_dir():
        raise InputError(
            f"{OVERLAY} names {folder}, which is not a folder",
            cause="it does not exist, or is a file",
            next_step="create the folder, correct the variable, or unset it",
        )
    return (folder,)


def data_folders() -> tuple[Path, ...]:
    """The folders of the tables in use, the user's own first. Raises InputError where that is no folder."""
    return *overlay(), DATA
