"""A step joins the job server of its build: its tools are asked in its sandbox, and the server is told."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rocwright import sandbox
from rocwright.execution.jobs.forms import FIFO, Form, JobsRequest, ask_script, choose_form, read_answers
from rocwright.execution.jobs.tokens import NAME
from rocwright.sandbox.model import SandboxJob

MOST_ANSWERS = 1000
"""Lines that are kept of what the tools of a sandbox answer: they may be the step's own, and say anything."""


def join(
    engine: sandbox.Engine,
    job: SandboxJob,
    server: Path,
    request: JobsRequest,
    on_line: Callable[[str], None],
) -> Form:
    """The form for the tools that `job` would find; `server` is the folder of the job server."""
    answers: deque[str] = deque(maxlen=MOST_ANSWERS)
    sandbox.run(engine, replace(job, argv=("/bin/sh", "-c", ask_script())), answers.append)
    tools = read_answers(answers)
    form = choose_form(tools, FIFO if engine.isolates else str(server / NAME), request)
    description = (
        ", ".join(f"{name} {version}" for name, version in tools.items()) or "neither make nor ninja"
    )
    if form.clients:
        on_line(
            f"shares jobs with the steps that run at the same time: {', '.join(form.clients)} "
            f"(here: {description})"
        )
    else:
        on_line(f"has {request.jobs} jobs of its own: its tools do not support a job server ({description})")
    if form.clients:
        tell_clients(server, os.getpid())
    if form.shares:
        tell_to_share(server, os.getpid())
    return form


def tell_clients(server: Path, pid: int) -> None:
    """Some tools of a step are clients: how many processes it has goes by tokens, as far as they do."""
    _clients(server, pid).touch()


def told_clients(server: Path, pid: int) -> bool:
    """Whether that was told, by the process of the step."""
    return _clients(server, pid).exists()


def tell_to_share(server: Path, pid: int) -> None:
    """All tools of a step are clients: it has no more processes than it holds tokens, and its first one."""
    _shares_file(server, pid).touch()


def told_to_share(server: Path, pid: int) -> bool:
    """Whether that was told, by the process of the step."""
    return _shares_file(server, pid).exists()


def _shares_file(server: Path, pid: int) -> Path:
    return server / f"shares-{pid}"


def _clients(server: Path, pid: int) -> Path:
    return server / f"clients-{pid}"
