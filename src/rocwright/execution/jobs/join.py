"""Joins a step to the job server of its build: asks its tools in its sandbox, and informs the server."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rocwright import sandbox
from rocwright.execution.jobs.forms import FIFO, Form, JobsRequest, ask_script, choose_form, read_answers
from rocwright.execution.jobs.room import text
from rocwright.execution.jobs.tokens import NAME
from rocwright.sandbox.model import SandboxJob

CLIENTS, SHARES = "clients", "shares"

# Lines to keep of what the tools of a sandbox answer: they may be the step's own, and print anything.
MOST_ANSWERS = 1000


def join(
    engine: sandbox.Engine,
    job: SandboxJob,
    server: Path,
    request: JobsRequest,
    on_line: Callable[[str], None],
) -> Form:
    """Return the form for the tools that `job` would find. `server` is the folder of the job server."""
    answers: deque[str] = deque(maxlen=MOST_ANSWERS)
    sandbox.run(engine, replace(job, argv=("/bin/sh", "-c", ask_script())), answers.append)
    tools = read_answers(answers)
    form = choose_form(tools, FIFO if engine.isolates else str(server / NAME), request)
    versions = ", ".join(f"{name} {version}" for name, version in tools.items()) or "neither make nor ninja"
    if form.clients:
        tell_joined(server, os.getpid(), SHARES if form.shares else CLIENTS)
        names = ", ".join(form.clients)
        on_line(f"shares jobs with the steps that run at the same time: {names} (here: {versions})")
    else:
        on_line(f"has {request.jobs} jobs of its own: its tools do not support a job server ({versions})")
    return form


def tell_joined(server: Path, pid: int, how: str) -> None:
    """Inform the server about a step, by its process: some of its tools take tokens (CLIENTS), or all."""
    _joined(server, pid).write_text(how)


def read_joined(server: Path, pid: int) -> str:
    """Return how the step with that process joined, "" if it did not."""
    return text(_joined(server, pid))


def _joined(server: Path, pid: int) -> Path:
    return server / f"joined-{pid}"
