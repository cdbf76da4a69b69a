"""The page of a farm in a real browser, with two real workers, one of which is killed while one looks."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator

import psutil
import pytest
from playwright.sync_api import Browser, expect
from tests.farm.machines import running, until
from tests.farm.test_dask import Farm, busy, sleeps
from tests.farm.test_dask import frail as frail
from tests.farm.test_dask import server as server
from tests.real.test_browser import PATIENCE, Server, watching
from tests.real.test_browser import browser as browser

pytestmark = [pytest.mark.real, pytest.mark.nightly]


@pytest.fixture
def served(frail: Farm) -> Iterator[Server]:
    with running(frail.homes["asks"], "serve", "--port", "0") as child:
        found = re.search(r"(http://[\d.:]+)/enter\?token=(\S+)", child.wait_for("/enter?token="))
        assert found
        yield Server(found[1], found[2], psutil.Process(child.process.pid))


def test_the_page_shows_who_runs_what_and_who_went(frail: Farm, served: Server, browser: Browser) -> None:
    shop, mark = frail.workshop, "1515.1"
    step = shop.step(f"sleep {mark}", "touch $OUT/result", name="engine")
    build = threading.Thread(target=lambda: frail.build(step))
    with watching(browser, served) as watched:
        page = watched.page
        page.get_by_role("link", name="Farm", exact=True).click()
        rows = {
            name: page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=name))
            for name in frail.workers
        }
        for row in rows.values():
            expect(row.locator(".look")).to_have_text("idle", timeout=PATIENCE)
        build.start()
        until(lambda: bool(busy(frail, mark)))
        first = busy(frail, mark)
        # nobody asks for the page again
        expect(rows[first].locator(".look")).to_have_text("busy", timeout=PATIENCE)
        expect(rows[first]).to_contain_text("engine")
        os.killpg(frail.workers[first].process.pid, signal.SIGKILL)
        expect(rows[first].locator(".look")).to_have_text("gone", timeout=PATIENCE)
        expect(rows[first]).to_contain_text("had engine")
        [other] = set(rows) - {first}
        expect(rows[other].locator(".look")).to_have_text("busy", timeout=PATIENCE)
        # a worker is busy before its step runs
        until(lambda: busy(frail, mark) == other)
        page.screenshot(path=os.environ.get("ROCWRIGHT_FARM_PICTURE") or shop.folder / "farm.png")
    for one in psutil.process_iter(["cmdline"]):
        if one.info["cmdline"] == ["sleep", mark]:
            one.terminate()
    build.join(60)
    assert not build.is_alive()
    assert not sleeps(mark)
