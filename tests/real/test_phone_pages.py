"""Every page in a real browser, on a phone and on a desk: nothing overflows, all is legible."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tests.web import filled
from tests.web.serving import listening, serve_site

from rocwright.home import Home
from rocwright.records.opening import open_records
from rocwright.web.app import app
from rocwright.web.queue import Queue

pytestmark = pytest.mark.real

CHROMIUM = "/usr/bin/chromium"
PATIENCE = 60_000.0
"""Milliseconds that anything may take on a busy machine."""

SIZES = ((360, 740), (414, 896), (1280, 800))
EMPTY = (
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
)
RUNS = ("FAILED", "SILENT", "KILLED", "NEVER", "BUILT", "RUNNING", "QUEUED")
FILLED = (
    *EMPTY,
    "/enter",
    "/nowhere",
    f"/compare?a={filled.BUILT}&b={filled.FAILED}",
    *(f"/runs/{getattr(filled, name)}" for name in RUNS),
    f"/runs/{filled.VERIFIED}3",
    f"/runs/{filled.SILENT}/log/gloo",
    f"/artifacts/{filled.SHA256}",
    "/cell?stack=pytorch&gpu=gfx1151&base=rocm-ubuntu-24.04:6.4.1",
    "/cell?stack=psimd&gpu=gfx1151&base=debian:sid",
    "/gpu/gfx1151",
)
LEAST_CONTRAST = 4.5
"""Of text on what is behind it (WCAG 2.2, 1.4.3)."""

OVERFLOWS = """() => {
  const wide = document.documentElement.clientWidth;
  const beyond = [...document.querySelectorAll("body *")].filter((one) => {
    const box = one.getBoundingClientRect();
    return box.width > 1 && box.right > wide + 1 && !one.closest(".skip, .sr, thead, svg, .wide .scroll");
  }).slice(0, 5).map((one) => `${one.outerHTML.slice(0, 80)} ends at ${one.getBoundingClientRect().right}`);
  return [document.scrollingElement.scrollWidth, window.innerWidth, beyond];
}"""
"""How wide the page is, how wide the window, and what ends beyond the right edge, also within what could be
scrolled; a matrix on a desk may."""

PAINT = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const bytes = (colours) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const one of colours) { canvas.fillStyle = one; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const found = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const one = text.parentElement;
    if (!text.data.trim() || !one.getClientRects().length) continue;
    if (one.closest("svg, noscript, script, .skip, .sr")) continue;
    const behind = [];
    for (let at = one; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
    const ink = getComputedStyle(one).color;
    const key = [ink, ...behind].join();
    const said = text.data.trim().slice(0, 40);
    if (!found.has(key)) found.set(key, [bytes([...behind, ink]), bytes(behind), said]);
  }
  return [...found.values()];
}"""
"""Each pair of colours that text is drawn in: the ink, what is behind it, some of the text."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module", params=["filled", pytest.param("empty", marks=pytest.mark.nightly)])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """A server: its address, a token for everything, its pages."""
    full, home = request.param == "filled", Home(tmp_path_factory.mktemp("home"))
    with open_records(home) as records:
        if full:
            filled.fill(home, records)
        served = serve_site(home, records)
        token = served.site.access.tokens.add("owner", ("read", "run", "promote"))
        made = app(served.site, ("localhost",), Queue(records, home.path))
        with listening(made) as (host, port):
            yield f"http://{host}:{port}", token, FILLED if full else EMPTY


def open_page(browser: Browser, site: tuple[str, str, tuple[str, ...]], **more: object) -> Page:
    """A page of somebody who may do everything."""
    page = browser.new_page(base_url=site[0], **more)  # type: ignore[arg-type]
    page.set_default_timeout(PATIENCE)
    page.goto(f"/enter?token={site[1]}")
    return page


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_no_page_is_wider_than_the_screen(
    browser: Browser, site: tuple[str, str, tuple[str, ...]], script: bool
) -> None:
    faults = []
    page = open_page(browser, site)
    state = page.context.storage_state()
    page.close()
    context = browser.new_context(base_url=site[0], java_script_enabled=script, storage_state=state)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    for path in site[2]:
        page.goto(path)
        for width, height in SIZES if script else SIZES[:1]:
            page.set_viewport_size({"width": width, "height": height})
            wide, inner, beyond = page.evaluate(OVERFLOWS)
            if wide > inner or inner > width:
                faults.append(f"{path} is {wide} wide on {width}")
            faults += [f"{path} on {width}: {one}" for one in beyond]
    context.close()
    assert faults == []


def test_every_page_is_reached_on_a_phone_without_scrolling_sideways(
    browser: Browser, site: tuple[str, str, tuple[str, ...]]
) -> None:
    page = open_page(browser, site, viewport={"width": 360, "height": 740})
    links = page.get_by_role("navigation", name="Pages").get_by_role("link")
    boxes = [one.bounding_box() for one in links.all()]
    assert len(boxes) >= len(EMPTY)
    for box in boxes:
        assert box is not None
        assert box["x"] >= 0 and box["x"] + box["width"] <= 360
        assert box["height"] >= 24, "WCAG 2.2, 2.5.8: a target has 24 pixels"
    page.close()


def test_all_text_stands_out_from_what_is_behind_it(
    browser: Browser, site: tuple[str, str, tuple[str, ...]]
) -> None:
    page = open_page(browser, site, viewport={"width": 1280, "height": 800})
    schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    faults = []
    for path in site[2]:
        page.goto(path)
        for scheme in schemes:
            page.emulate_media(color_scheme=scheme)
            for ink, behind, text in page.evaluate(PAINT):
                ratio = contrast(ink, behind)
                if ratio < LEAST_CONTRAST:
                    faults.append(f"{path}, {scheme}: {text!r} {ink} on {behind} is {ratio:.2f}")
    page.close()
    assert faults == []


def test_every_page_is_usable_by_keyboard(browser: Browser, site: tuple[str, str, tuple[str, ...]]) -> None:
    page = open_page(browser, site, viewport={"width": 1280, "height": 800})
    faults = []
    for path in site[2]:
        page.goto(path)
        page.keyboard.press("Tab")
        first = page.evaluate("document.activeElement.innerText")
        # the form to sign in has the keyboard at once
        if path != "/enter" and first != "Skip to content":
            faults.append(f"{path}: the first stop is {first!r}")
        page.keyboard.press("Enter")
        if path != "/enter":
            page.wait_for_url("**#main", timeout=PATIENCE)
        outlined = "getComputedStyle(document.activeElement).outlineStyle"
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement !== document.body") and page.evaluate(outlined) == "none":
            faults.append(f"{path}: what has the keyboard is not marked")
        faults += [f"{path}: {one}" for one in page.evaluate(BARE_TABLES)]
    page.close()
    assert faults == []


BARE_TABLES = """() => [...document.querySelectorAll("table")]
  .filter((one) => !one.querySelector("th[scope]")).map((one) => one.outerHTML.slice(0, 80))"""
"""Tables without a header that says of what it is."""


def contrast(one: list[int], other: list[int]) -> float:
    """How far two colours are apart, 1 to 21 (WCAG 2.2)."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: list[int]) -> float:
    """Of a colour in sRGB, 0 to 1 (WCAG 2.2)."""
    parts = (value / 255 for value in colour)
    linear = [one / 12.92 if one <= 0.04045 else math.pow((one + 0.055) / 1.055, 2.4) for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
