"""What Python programs call, and the command line too, for the same things.

Names are strings as a person says them (a GPU is "RX 580" or "gfx803"), paths are str or Path, sizes are in
bytes, times in UTC. Models are frozen. Every failure is a `RocwrightError` with its class, cause and
next step. What a function needs is imported when it is called.
"""

from rocwheel.errors import RocwrightError as RocwrightError
from rocwright.api.gpus import gpus_here, target, targets
from rocwright.api.machine import diagnose, doctor
from rocwright.api.projects import (
    build,
    export,
    lock,
    plan,
    project,
    records,
    request,
    resolve,
    stacks,
    verify,
)
from rocwright.api.wheels import inspect, runs_on, slim

__all__ = [
    "build",
    "diagnose",
    "doctor",
    "export",
    "gpus_here",
    "inspect",
    "lock",
    "plan",
    "project",
    "records",
    "request",
    "resolve",
    "runs_on",
    "slim",
    "stacks",
    "target",
    "targets",
    "verify",
]
