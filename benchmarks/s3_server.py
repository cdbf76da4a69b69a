"""An S3 server (moto) that notes each answer: `python -m benchmarks.s3_server PORT FILE`.

FILE gets a line of JSON for each: method, path, and bytes of the body.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Lock
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple


class Counting:
    """An application that notes what it answers."""

    def __init__(self, application: Callable[..., Iterable[bytes]], log: Path) -> None:
        self.application, self.log, self.lock = application, log, Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        size = 0
        for chunk in self.application(environ, start_response):
            size += len(chunk)
            yield chunk
        # the server sends no body there
        size = 0 if environ["REQUEST_METHOD"] == "HEAD" else size
        told = {"method": environ["REQUEST_METHOD"], "path": environ["PATH_INFO"], "bytes": size}
        with self.lock, self.log.open("a") as file:
            file.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    application = Counting(DomainDispatcherApplication(create_backend_app), Path(sys.argv[2]))
    run_simple("127.0.0.1", int(sys.argv[1]), application, threaded=True)
