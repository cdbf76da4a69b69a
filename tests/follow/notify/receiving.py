"""Who receives messages in tests: a real HTTP server, and a real mail server, on this machine."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message as Mailbox
from aiosmtpd.smtp import SMTP, Envelope, Session

MATRIX = b'{"room_id": "!room:example.org", "user_id": "@a:example.org", "event_id": "$1"}'
"""What a Matrix server would say of a room, a user and a message; others do not look at it."""


@dataclass
class Receiver:
    """An HTTP server: what came, and how it answers. `wait` seconds pass between the two."""

    port: int = 0
    status: int = 200
    wait: float = 0
    drip: bool = False
    posts: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    asked: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """As apprise has it."""
        return f"json://127.0.0.1:{self.port}/hook"

    @property
    def messages(self) -> list[str]:
        """The texts that came."""
        return [one["message"] for one in self.posts]

    @property
    def titles(self) -> list[str]:
        return [one["title"] for one in self.posts]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver on a free port."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.posts.append(json.loads(body))
            self._answer()

        def do_PUT(self) -> None:
            self.do_POST()

        def do_GET(self) -> None:
            receiver.paths.append(self.path)
            self._answer()

        def _answer(self) -> None:
            receiver.asked.set()
            time.sleep(receiver.wait)
            self.send_response(receiver.status)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(MATRIX)
            while receiver.drip:
                # each byte comes in time, the whole never does
                self.wfile.write(b".")
                time.sleep(0.2)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        receiver.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield receiver
        finally:
            receiver.drip = False
            server.shutdown()


@contextmanager
def mailbox(refusal: str = "") -> Iterator[tuple[int, list[Message]]]:
    """A mail server on a free port, and the mail that came; all of it is refused with `refusal`."""
    found: list[Message] = []

    class Kept(Mailbox):
        def handle_message(self, message: Message) -> None:
            found.append(message)

        async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
            self, _: SMTP, __: Session, envelope: Envelope, address: str, ___: list[str]
        ) -> str:
            if not refusal:
                envelope.rcpt_tos.append(address)
            return refusal or "250 OK"

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    controller = Controller(Kept(), hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield port, found
    finally:
        controller.stop()
