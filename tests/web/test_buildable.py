"""The form of the queue offers what can be built on this machine, and nothing else."""

from __future__ import annotations

import re

import pytest

from rocwright.catalog.load import the_catalog
from rocwright.home import Home
from rocwright.model.architecture import Architecture
from rocwright.plan.resolve.shipped import requests, shipped_lock
from rocwright.records.read import Records
from rocwright.web.app import app
from rocwright.web.buildable import Buildable
from rocwright.web.queue import MOST_WAITING, Queue
from tests.web.serving import Served


@pytest.fixture
def doing(served: Served, records: Records, home: Home) -> Served:
    """A server whose queue takes orders and builds nothing."""
    served.made = app(served.site, ("localhost",), Queue(records, home.path))
    return served


def offered(page: str) -> list[str]:
    return re.findall(r'<option value="([^"]+)"', page)


def test_the_form_offers_rows_whose_plan_can_be_made(doing: Served) -> None:
    page = doing.client("run").get("/queue").text
    rows = {one.name: one for one in requests(the_catalog())}
    assert offered(page)
    assert all(shipped_lock(the_catalog(), rows[name]) is not None for name in offered(page))


def test_what_is_offered_is_taken_as_its_row_asks_for_it(doing: Served, records: Records) -> None:
    client = doing.client("run")
    rows = {one.name: one for one in requests(the_catalog())}
    # as many as the queue takes
    for name in [*offered(client.get("/queue").text)][:MOST_WAITING]:
        sent = client.post("/queue", data={"row": name, "secret": doing.secret(client)})
        run = records.run(sent.headers["location"].rpartition("/")[2])
        assert run is not None
        asked = rows[name]
        assert (run.stack, run.gpu, run.base, run.variant) == (
            asked.stack,
            asked.gpu,
            asked.base,
            asked.variant,
        )


def test_another_machine_is_offered_nothing_that_it_cannot_build(
    doing: Served, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = Buildable().of(the_catalog())[0][1].name
    monkeypatch.setattr("rocwright.web.buildable.host", lambda: Architecture.AARCH64)
    client = doing.client("run")
    page = client.get("/queue").text
    assert offered(page) == [] and "No stack has a lock for this machine" in page
    sent = client.post("/queue", data={"row": name, "secret": doing.secret(client)})
    assert sent.status_code == 400
    assert records.count() == 0


def test_a_row_that_nobody_knows_is_refused(doing: Served, records: Records) -> None:
    client = doing.client("run")
    sent = client.post("/queue", data={"row": "--help", "secret": doing.secret(client)})
    assert sent.status_code == 400
    assert records.count() == 0
