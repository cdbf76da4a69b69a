"""The side of dask's worker: the functions that a build calls there, and the worker's process itself."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING

import dask.config
from distributed import Worker, get_worker

from rocbase.folders.temporary import temporary_folder
from rocbase.http.address import split
from rocwright.farm.dask.client import quiet
from rocwright.farm.dask.security import LOOPBACK
from rocwright.farm.handed import Handed, TaskEvent
from rocwright.farm.host import TaskHost
from rocwright.home import Home

if TYPE_CHECKING:
    from collections.abc import Callable

    from distributed.security import Security

# Steps that a worker may have at once; how many of them compile, its job server says.
THREADS = 16

# What dask calls the cores that steps which compile have: two that take all are better on two machines.
CORES = "cores"

# Seconds after which a worker whose coordinator is gone looks for it again.
AGAIN = 2.0

# Seconds after which a worker takes a coordinator that says nothing for one that is gone.
LOOK = 20.0

# Seconds between two tries to reach a coordinator, at most: dask waits longer after each (30 by itself).
CONNECT = 5.0

# Seconds that each part of leaving a coordinator may take.
CLOSE = 5.0

# Seconds that a worker which ends waits for its last results to be fetched.
FETCHED = 10.0

FEATURES = frozenset({"network"})

_lock = threading.Lock()
_started: list[TaskHost] = []


def host(name: str = "") -> TaskHost:
    """What runs steps in this process; it is started, and called so, when it is first asked for."""
    with _lock:
        if not _started:
            _started.append(TaskHost(Home.default(), FEATURES, name))
            _started[0].start()
        return _started[0]


def place() -> str:
    """What this worker is, has and offers, as JSON."""
    return host().place().model_dump_json()


def run(handed: str, topic: str) -> str:
    """Run a task; gives how it ended. What happens meanwhile is logged under the topic."""
    worker = get_worker()

    def tell(report: TaskEvent) -> None:
        worker.log_event(topic, report.model_dump_json())

    return host().run(Handed.model_validate_json(handed), tell).model_dump_json()


def cancel(task_id: str) -> bool:
    """End a task; whether it was here."""
    return host().cancel(task_id)


def serve(address: str, security: Security | None, name: str, say: Callable[[str], None]) -> None:
    """Be a worker of the coordinator at an address until this process is asked to end: once, and what runs
    here ends by itself first; twice, and it is ended.

    Without a coordinator it looks for one again and again: what runs here goes on meanwhile.
    """
    quiet()
    dask.config.set({"distributed.comm.timeouts.connect": CONNECT})
    asyncio.run(_serve(address, security, name, say))


class _Worker(Worker):
    """One that leaves its coordinator at once: what runs goes on in the host, and dask would wait for it."""

    async def close(  # type: ignore[override]
        self,
        timeout: float = CLOSE,
        executor_wait: bool = False,
        nanny: bool = True,
        reason: str = "worker-close",
    ) -> str | None:
        return await super().close(timeout, executor_wait, nanny, reason)


async def _serve(address: str, security: Security | None, name: str, say: Callable[[str], None]) -> None:
    ours, stop, abort = host(name), asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        (abort if ours.draining else stop).set()
        ours.drain()
        stop.set()

    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, on_signal)
    with temporary_folder("farm") as folder:
        while not stop.is_set():
            await _until_gone(address, security, name, say, str(folder), stop, abort)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), AGAIN)
        # asked to end while it looked for its coordinator
        await _idle(abort)
    ours.close()


async def _idle(abort: asyncio.Event) -> None:
    """Until nothing runs here, or it is to end now."""
    while not host().idle and not abort.is_set():
        await asyncio.sleep(0.1)


async def _until_gone(
    address: str,
    security: Security | None,
    name: str,
    say: Callable[[str], None],
    folder: str,
    stop: asyncio.Event,
    abort: asyncio.Event,
) -> None:
    """One worker, until it is to stop, or its coordinator is gone."""
    worker = _Worker(
        address,
        nthreads=THREADS,
        resources={CORES: os.cpu_count() or 1},
        name=name,
        local_directory=folder,
        memory_limit=0,
        security=security,
        # whoever reaches a worker can run any program on it: beside its coordinator nobody else need reach it
        host=LOOPBACK[0] if split(address).hostname in LOOPBACK else None,
        dashboard=False,
        dashboard_address=f"{LOOPBACK[0]}:0",
        death_timeout=LOOK,
    )
    loop = asyncio.get_running_loop()
    ending = asyncio.create_task(stop.wait())
    started = asyncio.ensure_future(worker)
    await asyncio.wait([started, ending], return_when=asyncio.FIRST_COMPLETED)
    if not started.done():
        started.cancel()
        await asyncio.wait([started])
        return
    if error := started.exception():
        ending.cancel()
        if not isinstance(error, OSError | TimeoutError | RuntimeError):
            raise error
        say(f"no coordinator answers at {address} ({type(error).__name__}): looking again in {AGAIN:.0f} s")
        return
    say(f"{name} is a worker of {address}")
    finished = asyncio.create_task(worker.finished())
    await asyncio.wait([finished, ending], return_when=asyncio.FIRST_COMPLETED)
    if not stop.is_set():
        say(f"the coordinator at {address} is gone: looking for it again")
        ending.cancel()
        return
    say("ending: nothing more is taken, what runs goes on (ask again to end it now)")
    await _idle(abort)
    # a result that was not fetched goes with this process, and its step is asked for again
    end = loop.time() + FETCHED
    while worker.state.tasks and not abort.is_set() and loop.time() < end:
        await asyncio.sleep(0.1)
    await worker.close(reason="asked to end")
    finished.cancel()
