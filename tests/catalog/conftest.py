"""What tests of the catalog share."""

from __future__ import annotations

import pytest

from rocbase.toml.read import Reader, parse
from rocwright.catalog.folders import DATA
from rocwright.catalog_lint.for_people import ForPeopleFile


@pytest.fixture(scope="session")
def for_people() -> ForPeopleFile:
    """The facts that are marked as for people."""
    return parse(ForPeopleFile, Reader((DATA,)).data(DATA / "for_people.toml"), DATA / "for_people.toml")
