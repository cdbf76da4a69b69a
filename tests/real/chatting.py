"""The chat page of a server in a real browser, for the tests that write to one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import ConsoleMessage, Page, expect, sync_playwright

CHROMIUM = "/usr/bin/chromium"
PHONE = {"width": 390, "height": 800}
PATIENCE = 120_000.0
"""Milliseconds that anything may take on a busy machine."""


@dataclass
class Chat:
    """The page, and what its console said was wrong."""

    page: Page
    wrong: list[str] = field(default_factory=list)

    def heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(message.text)

    def write(self, text: str) -> None:
        self.page.get_by_label("Message").fill(text)
        self.page.get_by_role("button", name="Send").click()

    def answer(self, text: str) -> str:
        """Write something; what is answered, once it is whole."""
        before = self.page.locator("article.assistant").count()
        self.write(text)
        expect(self.page.locator("article.assistant")).to_have_count(before + 1)
        expect(self.page.get_by_role("button", name="Send")).to_be_visible()
        return self.page.locator("article.assistant .text").last.inner_text()


@contextmanager
def chat(url: str, size: dict[str, int] | None = None) -> Iterator[Chat]:
    """The page at `url`, on a phone unless another size is named."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport=size or PHONE)  # type: ignore[arg-type]  # of its own kind
        page.set_default_timeout(PATIENCE)
        found = Chat(page)
        page.on("console", found.heard)
        page.on("pageerror", lambda error: found.wrong.append(str(error)))
        expect.set_options(timeout=PATIENCE)
        page.goto(url)
        yield found
        browser.close()
