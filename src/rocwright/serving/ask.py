"""Asks a running server something: does it answer, and in the shape that its recipe tells?"""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from rocwheel.errors import CheckError
from rocwright.catalog.server import FirstRequest
from rocwright.serving.model import ServerState

_SECONDS = 600.0
_MOST = 1 << 20


def ask(server: ServerState, request: FirstRequest, key: str = "") -> str:
    """The text of the answer. Raises CheckError where there is none, or it has another shape."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    where = urlsplit(server.url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=_SECONDS)
    try:
        connection.request("POST", request.path, request.body.encode(), headers)
        reply = connection.getresponse()
        body = reply.read(_MOST)
    except (OSError, http.client.HTTPException) as error:
        raise _silent(server, f"{request.path}: {error or type(error).__name__}") from error
    finally:
        connection.close()
    if reply.status != http.client.OK:
        said = body[:200].decode(errors="replace")
        raise _silent(server, f"{request.path} answered with status {reply.status}: {said}")
    try:
        return str(_at(json.loads(body), request.answer))
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise _silent(server, f"{request.path} answered without {request.answer}") from error


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def _silent(server: ServerState, cause: str) -> CheckError:
    return CheckError(
        f"{server.name} runs, but did not answer as it should",
        cause=cause,
        next_step=f"rocwright logs {server.name}; rocwright stop {server.name} ends it",
    )
