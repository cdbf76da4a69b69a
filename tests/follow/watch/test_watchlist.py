"""The watch-list of the catalog."""

from __future__ import annotations

from pathlib import Path

from rocbase.toml.read import Reader
from rocwheel_samples.trees import write_tree
from rocwright.catalog.folders import DATA
from rocwright.catalog.watchlist import read_watchlist
from rocwright.catalog_lint.recipes import check_catalog

ROW = (
    '[[followed]]\nname = "rocm-5339"\nabout = "x"\naddress = "https://example.org/1"\nstands = "closed"\n'
    'issues = ["no-such-issue"]\nsource = "x"\n'
)


def test_the_documents_watch_list_is_data_and_each_entry_says_how_it_stood() -> None:
    found = {one.name: one for one in read_watchlist(Reader((DATA,)))}
    assert {"rocm-on-ryzen", "rocm-5339", "invalid-device-function", "ttm-limit"} <= set(found)
    assert all("document 002" in found[name].source for name in ("rocm-on-ryzen", "rocm-5339"))


def test_a_folder_of_ones_own_lays_its_entries_over_them_and_is_checked(tmp_path: Path) -> None:
    folder = write_tree(tmp_path / "own", {"watchlist.toml": ROW})
    found = {one.name: one for one in read_watchlist(Reader((folder, DATA)))}
    assert found["rocm-5339"].stands == "closed"
    assert [fault.what for fault in check_catalog((folder, DATA))] == ["no-such-issue is not known"]
