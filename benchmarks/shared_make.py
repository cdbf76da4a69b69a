"""`python -m benchmarks.shared_make FOLDER JOBS server|plain`: the Makefile of a folder in a sandbox, as a
step is run: as a client of the job server, or with a plain number."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks.place import ENGINE
from rocwright.execution.jobs.forms import FIFO, Wanted, numbers
from rocwright.execution.jobs.join import join
from rocwright.execution.jobs.server import JobServer
from rocwright.execution.jobs.tokens import NAME
from rocwright.home import Home
from rocwright.model.steps import Resources, RunAction, Step
from rocwright.sandbox import ENGINES, Job, Mount, make_writable, run

TREE = "/build"


def main(folder: Path, jobs: int, how: str) -> int:
    """The exit code of make."""
    make_writable(folder)
    wanted = Wanted(jobs=jobs)
    job = Job(
        root=Path("/"),
        argv=("make", "--silent"),
        env={"PATH": "/usr/bin:/bin", **numbers(wanted).env},
        workdir=TREE,
        mounts=(Mount(source=folder, target=TREE, writable=True),),
    )
    if how == "plain":
        return run(ENGINES[ENGINE], job, print).code
    step = Step(
        name="make",
        component="make",
        action=RunAction(commands=("make",), outputs=()),
        resources=Resources(cores=jobs),
    )
    with JobServer(Home(folder.parent / "home"), jobs=jobs) as server:
        seat = server.seat(step)
        assert seat is not None
        seat.started(os.getpid())
        fifo = Mount(source=server.folder / NAME, target=FIFO, writable=True)
        job = replace(job, mounts=(*job.mounts, fifo))
        form = join(ENGINES[ENGINE], job, server.folder, wanted, print)
        script = f"{form.opens}\nexec make --silent"
        told = run(
            ENGINES[ENGINE],
            replace(job, argv=("/bin/sh", "-c", script), env={"PATH": "/usr/bin:/bin"} | dict(form.env)),
            print,
        )
        print(seat.close())
    return told.code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
