"""`python -m benchmarks.slow_server FOLDER`: a web server that takes its time, apart from who measures.

It serves the folder and prints its port. `delays.json` in it has the seconds before each answer, by the first
part of the path.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PAGE = "application/vnd.pypi.simple.v1+json"


class Handler(SimpleHTTPRequestHandler):
    """Files of the folder; a folder's `index.json` is a page of a package index."""

    delays: dict[str, float]

    def send_head(self):  # type: ignore[no-untyped-def]
        first = self.path.strip("/").partition("/")[0]
        time.sleep(self.delays.get(first, 0))
        return super().send_head()

    def translate_path(self, path: str) -> str:
        found = Path(super().translate_path(path))
        return str(found / "index.json" if (found / "index.json").exists() else found)

    def guess_type(self, path: object) -> str:
        return PAGE if str(path).endswith("index.json") else "application/octet-stream"

    def log_message(self, *_: object) -> None: ...


class Server(ThreadingHTTPServer):
    """Many may knock at once."""

    request_queue_size = 256
    daemon_threads = True


def main() -> None:
    """Serve until the process is ended."""
    folder = Path(sys.argv[1])
    Handler.delays = json.loads((folder / "delays.json").read_text())
    server = Server(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
