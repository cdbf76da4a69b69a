"""How old each row of the stacks is, against the releases that the catalog knows."""

from __future__ import annotations

from rocwright.catalog.load import the_catalog
from rocwright.verify.standing import newer_releases, standings


def test_a_row_tells_how_many_newer_releases_are_known() -> None:
    row = next(row for row in standings(the_catalog(), stack="ollama", plans=False) if row.newer)
    releases = [release.version for release in the_catalog().component("ollama").release]
    assert "0.6.2" in row.holds
    assert (row.newest, row.newer) == (releases[0], releases.index("0.6.2"))


def test_the_newest_release_and_an_open_version_have_no_newer_one() -> None:
    catalog = the_catalog()
    newest = catalog.component("pytorch").release[0].version
    assert newer_releases(catalog, "pytorch", newest) == []
    assert newer_releases(catalog, "pytorch", "") == []


def test_numbers_of_builds_are_in_their_own_order() -> None:
    assert newer_releases(the_catalog(), "llama.cpp", "9999")[-1] == "11312"
