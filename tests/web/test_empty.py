"""A page with nothing on it says what fills it, and with which command."""

from __future__ import annotations

import pytest

from rocwright.home import Home
from rocwright.records.read import Records
from rocwright.web.app import app
from rocwright.web.queue import Queue
from tests.web.serving import Served, a_run


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("/", "rocwright build"),
        ("/runs", "rocwright build"),
        ("/queue", "rocwright build"),
        ("/artifacts", "rocwright build"),
        ("/trends", "rocwright build"),
        ("/compare", "rocwright build"),
        ("/watch", "rocwright watch"),
        ("/cycle", "rocwright cycle"),
        ("/farm", "rocwright farm up"),
        ("/servers", "rocwright run"),
    ],
)
def test_an_empty_page_names_the_command_that_fills_it(
    served: Served, records: Records, home: Home, path: str, command: str
) -> None:
    served.made = app(served.site, ("localhost",), Queue(records, home.path))
    page = served.client("run").get(path).text
    assert f"<code>{command}" in page
    assert ">None.<" not in page


def test_a_filter_that_leaves_nothing_leads_back_to_all(served: Served, records: Records) -> None:
    records.put(a_run())
    page = served.client().get("/runs?outcome=failed").text
    assert "No such run is on record" in page and '<a href="/runs">Show all</a>' in page
