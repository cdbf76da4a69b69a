"""The pages in a real browser: a build is started, watched, fails, is healed, and its wheel installed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright
from samples.project import make_sources, open_project, put_roots

from rocwright.home import Home
from rocwright.plan.resolve.files import read_lock, write_lock, write_request

pytestmark = pytest.mark.real

CHROMIUM = "/usr/bin/chromium"
PHONE = {"width": 390, "height": 800}
PATIENCE = 30_000.0
"""Milliseconds that anything may take on a busy machine."""

ISSUE = """
[[issue]]
name       = "old-minimum"
class      = "compile"
means      = "the tree asks for something too old"
cause      = "a newer tool refuses it"
remedy     = "Set MINIMUM=3.5."
remedies   = [{ kind = "set", variables = { MINIMUM = "3.5" } }]
patterns   = ["minimum is too old"]
examples   = ["minimum is too old"]
no_match   = ["minimum is fine"]
source     = ["this test"]
confidence = "high: reproduced"
"""

MAKE = """
import sys, zipfile
info = 'beta-1.0.dist-info'
with zipfile.ZipFile(sys.argv[1] + '/beta-1.0-py3-none-any.whl', 'w') as made:
    for name, text in (
        ('beta.py', 'SAID = 42\\n'),
        (info + '/METADATA', 'Metadata-Version: 2.1\\nName: beta\\nVersion: 1.0\\n'),
        (info + '/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'),
        (info + '/RECORD', ''),
    ):
        made.writestr(zipfile.ZipInfo(name), text)
"""

WAIT = f"300.{os.getpid()}"
"""Seconds that the step sleeps, unless the test ends that: a build that waits for who watches it."""

RECIPE = {
    "beta": {
        "kind": "wheel",
        "run": [
            "echo '[1/2] <b>first</b>'",
            f'test -n "${{MINIMUM-}}" || sleep {WAIT} || echo "[2/2] second"',
            'test "${MINIMUM-}" = 3.5 || { echo "error: minimum is too old"; exit 1; }',
            f'python3 -c "{MAKE}" $OUT',
        ],
        "output": [{"name": "wheel", "pattern": "beta-*.whl"}],
    }
}

PAGES = (
    "/",
    "/runs",
    "/queue",
    "/servers",
    "/artifacts",
    "/trends",
    "/compare",
    "/watch",
    "/cycle",
    "/farm",
    "/issues",
    "/enter",
)


@dataclass
class Server:
    """A server that runs: its address, the token of owner, its process."""

    address: str
    token: str
    process: psutil.Process

    def let_go(self) -> None:
        """End the sleep of the step that it builds."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            # not all of a sandbox are children of who began it
            for one in psutil.process_iter(["cmdline"]):
                if (one.info["cmdline"] or [])[-2:] == ["sleep", WAIT]:
                    return one.terminate()
            time.sleep(0.05)
        raise AssertionError("no step waits")


@dataclass
class Watched:
    """A page, and all that its console said was wrong."""

    page: Page
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"{message.text} {message.location}")


@pytest.fixture
def project(tmp_path: Path, home: Home, engine: str, python_root: Path) -> Path:
    """A folder with a project whose build fails in a way that is known, and a root in the store."""
    make_sources(tmp_path / "sources", RECIPE)
    (tmp_path / "sources/catalog/issues").mkdir()
    (tmp_path / "sources/catalog/issues/own.toml").write_text(ISSUE)
    put_roots(open_project(tmp_path / "sources", home.path), python_root)
    lock = read_lock(tmp_path / "sources/rocwright.lock")
    write_request(tmp_path / "project/rocwright.toml", lock.request)
    write_lock(tmp_path / "project/rocwright.lock", lock)
    return tmp_path / "project"


@pytest.fixture
def server(project: Path, home: Home, engine: str) -> Iterator[Server]:
    """`rocwright serve` in that folder."""
    env = os.environ | {
        "ROCWRIGHT_HOME": str(home.path),
        "ROCWRIGHT_CATALOG": str(project.parent / "sources/catalog"),
    }
    with subprocess.Popen(
        [sys.executable, "-m", "rocwright", "serve", "--port", "0", "--engine", engine],
        cwd=project,
        env=env,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stderr
        said = [child.stderr.readline() for _ in range(2)]
        found = re.search(r"(http://[\d.:]+)/enter\?token=(\S+)", "".join(said))
        assert found, said
        try:
            yield Server(found[1], found[2], psutil.Process(child.pid))
        finally:
            child.terminate()
            child.stderr.read()
            child.wait(30)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def watching(browser: Browser, server: Server) -> Iterator[Watched]:
    """A page of somebody with a token; nothing may go wrong in its console."""
    context = browser.new_context(base_url=server.address)
    watched = Watched(context.new_page())
    watched.page.goto(f"/enter?token={server.token}")
    yield watched
    context.close()
    assert watched.wrong == []


def test_a_build_is_started_watched_healed_and_installed(
    browser: Browser, server: Server, tmp_path: Path
) -> None:
    with watching(browser, server) as watched:
        page = watched.page
        left = Watched(page.context.new_page())
        left.page.clock.install()
        left.page.goto("/")
        expect(left.page).to_have_title("Nothing yet · rocwright")
        page.get_by_role("link", name="Queue", exact=True).click()
        page.get_by_role("button", name="Build the project").click()
        row = page.locator('tr[data-row="beta"]')
        expect(row.locator(".look")).to_have_text("running", timeout=PATIENCE)
        # what is seen from here on comes without the page being asked for again
        log = browser.new_context(base_url=server.address, storage_state=page.context.storage_state())
        lines = Watched(log.new_page())
        lines.page.goto(str(row.get_by_role("link", name="log").get_attribute("href")))
        expect(lines.page.get_by_text("[1/2] <b>first</b>", exact=False).last).to_be_visible(timeout=PATIENCE)
        server.let_go()
        expect(lines.page.locator(".line.error").last).to_contain_text("too old", timeout=PATIENCE)
        assert lines.wrong == []
        log.close()
        trouble = page.locator(".trouble")
        expect(trouble).to_contain_text("Set MINIMUM=3.5.", timeout=PATIENCE)
        failed = page.url.partition("?")[0]
        expect(page).to_have_title("failed: build tiny gfx1151 · rocwright")
        # a tab that is left open says so too, and what is to be done
        left.page.clock.fast_forward(31_000)
        expect(left.page).to_have_title("1 failing · rocwright")
        expect(left.page.locator(".broken")).to_contain_text("rocwright build --heal repairs it")
        assert left.wrong == []
        left.page.close()
        page.get_by_role("button", name="Heal").click()
        server.let_go()
        expect(page.locator("#outcome")).to_have_text("built", timeout=PATIENCE)
        assert not page.url.startswith(failed)
        page.get_by_role("link", name="beta-1.0-py3-none-any.whl").click()
        shown = install_line(page)
        assert_fit(page)
        check_pages(watched, failed.removeprefix(server.address))
    _install(shown.replace("TOKEN", server.token), tmp_path / "installed")
    read_without_scripts(browser, server, failed)


def install_line(page: Page) -> str:
    """The line for pip: what was healed is laid out a moment after its run is on record."""
    line = page.locator("pre.install").first
    until = time.monotonic() + PATIENCE / 1000
    while not line.count() and time.monotonic() < until:
        time.sleep(0.5)
        page.reload()
    expect(line).to_contain_text("me:TOKEN@")
    return line.inner_text()


def check_pages(watched: Watched, run: str) -> None:
    """Every page: fit for a keyboard and a screen reader, and for a telephone."""
    page = watched.page
    for path in (
        *PAGES,
        run,
        f"{run}/log/beta",
        "/cell?stack=tiny&gpu=gfx1151&base=debian:sid",
        "/gpu/gfx1151",
    ):
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(path)
        assert_fit(page)
        page.keyboard.press("Tab")
        if path != "/enter":
            expect(page.locator(":focus")).to_have_text("Skip to content")
        page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
        wide = page.evaluate("document.scrollingElement.scrollWidth")
        assert wide <= PHONE["width"], f"{path} is {wide} wide on a telephone"


def assert_fit(page: Page) -> None:
    """What a screen reader needs."""
    faults = page.evaluate(
        """() => [
            document.documentElement.lang ? "" : "no language",
            document.querySelectorAll("h1").length === 1 ? "" : "not one h1",
            document.querySelectorAll("main").length === 1 ? "" : "not one main",
            ...[...document.querySelectorAll("img:not([alt]), svg:not([aria-label]):not([aria-hidden])")]
                .map((one) => `no words for ${one.outerHTML.slice(0, 60)}`),
            ...[...document.querySelectorAll("input:not([type=hidden]), select")]
                .filter((one) => !one.labels.length && !one.ariaLabel).map((one) => `no label: ${one.name}`),
            ...[...document.querySelectorAll("th:not([scope])")].map((one) => `no scope: ${one.innerText}`),
            ...[...document.querySelectorAll("a[href], button")]
                .filter((one) => !(one.innerText.trim() || one.ariaLabel || one.querySelector("img[alt]")))
                .map((one) => `no name: ${one.outerHTML.slice(0, 80)}`),
        ].filter(Boolean)"""
    )
    assert faults == [], page.url


def _install(line: str, target: Path) -> None:
    """The line of the page, into a folder of its own."""
    words = [sys.executable, "-m", *shlex.split(line), "--quiet", "--no-deps", "--isolated"]
    words += ["--disable-pip-version-check", "--target", str(target)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    shown = subprocess.run(
        [sys.executable, "-c", "import beta; print(beta.SAID)"],
        env=os.environ | {"PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == "42\n"


def read_without_scripts(browser: Browser, server: Server, run: str) -> None:
    """Everything can be read without JavaScript."""
    context = browser.new_context(base_url=server.address, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"/enter?token={server.token}")
    page.goto(run)
    expect(page.locator(".trouble")).to_contain_text("old-minimum")
    page.locator('tr[data-row="beta"]').get_by_role("link", name="log").click()
    expect(page.locator(".line.error").last).to_contain_text("too old")
    context.close()
