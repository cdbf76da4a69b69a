"""Records, and a site that shows them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rocwright.home import Home
from rocwright.records.opening import open_records
from rocwright.records.read import Records
from tests.web.serving import Served, serve_site


@pytest.fixture
def records(home: Home) -> Iterator[Records]:
    with open_records(home) as records:
        yield records


@pytest.fixture
def served(home: Home, records: Records) -> Served:
    """Open for reading."""
    return serve_site(home, records)
