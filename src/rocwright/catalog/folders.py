"""Where the catalog lies."""

from __future__ import annotations

from pathlib import Path

from rocwheel.tables import overlay

# The catalog that rocwright carries; the tables that wheels need lie with rocwheel.
DATA = Path(__file__).parent / "data"

# The table of what is known of the machines around the cards.
HOST = "host.toml"


def catalog_folders() -> tuple[Path, ...]:
    """The folders of the catalog in use, the user's own first. Raises InputError where that is no folder."""
    return *overlay(), DATA
