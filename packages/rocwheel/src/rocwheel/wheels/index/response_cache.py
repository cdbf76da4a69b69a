"""The same request again gets the same answer again, without being looked at."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

SAME = "rocwright.same"
"""What a handler sets in the scope of a request whose answer follows from the request alone, until the mark
changes."""

MOST_KEPT, MOST_BODY, MOST_HEAD = 256, 128 * 1024, 4 * 1024
"""Answers that are kept, and bytes of the body and of the request's head of one."""


class Again:
    """Keeps answers of `inner` to GET while `mark()` stays what it was. Who gives a password is never
    answered so."""

    def __init__(self, inner: ASGIApp, mark: Callable[[], Hashable]) -> None:
        self.inner, self._mark = inner, mark
        self._kept: dict[Hashable, tuple[Message, Message]] = {}
        self._made_at: Hashable = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self.inner(scope, receive, send)
            return
        mark = self._mark()
        if mark != self._made_at:
            self._kept, self._made_at = {}, mark
        key = (scope["path"], scope["query_string"], tuple(scope["headers"]))
        known = self._kept.get(key)
        if known is not None:
            for message in known:
                await send(message)
            return
        sent: list[Message] = []

        async def noted(message: Message) -> None:
            if SAME in scope:
                sent.append(message)
            await send(message)

        await self.inner(scope, receive, noted)
        if mark == self._made_at and _is_small(scope, sent):
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            start, body = sent
            self._kept[key] = (start, body)


def _is_small(scope: Scope, sent: list[Message]) -> bool:
    """Whether an answer is one that can be kept: whole, small, and given without a password."""
    headers = scope["headers"]
    return (
        len(sent) == 2
        and not sent[1].get("more_body")
        and len(sent[1].get("body", b"")) <= MOST_BODY
        and sum(len(name) + len(value) for name, value in headers) <= MOST_HEAD
        and all(name != b"authorization" for name, _ in headers)
    )
