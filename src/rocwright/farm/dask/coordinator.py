"""The coordinator: dask's scheduler, as a process of its own, and what it knows of its workers."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from rocbase.errors import InputError
from rocwright.farm.dask import worker as remote
from rocwright.farm.dask.client import connect, quiet
from rocwright.farm.dask.security import LOOPBACK
from rocwright.farm.handed import Place

if TYPE_CHECKING:
    from distributed.security import Security

# Seconds after which a worker that says nothing is taken for gone; its steps run elsewhere.
SILENT = 90.0


def coordinate(host: str, port: int, security: Security | None, say: Callable[[str], None]) -> None:
    """Run one until this process is asked to end. Raises InputError where the port is taken."""
    quiet()
    asyncio.run(_coordinate(host, port, security, say))


async def _coordinate(host: str, port: int, security: Security | None, say: Callable[[str], None]) -> None:
    from distributed import Scheduler

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    try:
        scheduler = await Scheduler(
            host=host,
            port=port,
            protocol="tls" if security is not None else "tcp",
            security=security,
            dashboard=False,
            # its pages ask for no certificate
            dashboard_address=f"{LOOPBACK[0]}:0",
            worker_ttl=SILENT,
            # a step that was lost is tried again by who asked for it, who then knows
            allowed_failures=0,
        )
    except OSError as error:
        raise InputError(
            f"a coordinator cannot listen at {host}:{port}",
            cause=str(error),
            next_step="name another --port; rocwright farm status tells whether one runs there already",
        ) from error
    say(f"coordinator at {scheduler.address}")
    say(f"on each machine: rocwright farm worker {scheduler.address}")
    await stop.wait()
    say("ending: workers end what they have and look for it again")
    await scheduler.close(reason="asked to end")


def places(address: str, security: Security | None, seconds: float = 10) -> list[Place]:
    """What each worker of a coordinator is, has and offers; one that does not answer takes nothing.

    Raises NetworkError where nobody answers.
    """
    client = connect(address, security, seconds)
    try:
        names = {worker: str(info["name"]) for worker, info in client.scheduler_info(-1)["workers"].items()}
        replies: dict[str, str] = client.run(remote.place, on_error="ignore")
        listing = [
            Place.model_validate_json(replies[worker])
            if worker in replies
            else Place(name=name, cores=0, memory=0, disk=0, takes=False, why="it does not answer")
            for worker, name in names.items()
        ]
        return sorted(listing, key=lambda place: place.name)
    finally:
        client.close(timeout=5)
