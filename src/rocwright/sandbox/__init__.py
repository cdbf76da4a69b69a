"""Where a step runs: a job, an engine to run it in, and how it ended; nothing is left behind."""

from rocwright.sandbox.engine import Engine, Launch, Scene
from rocwright.sandbox.lasting import Ready, describe, make_ready
from rocwright.sandbox.model import Ended, Mount, SandboxJob, SandboxOutcome
from rocwright.sandbox.probe import ENGINES, Probe, choose, pick, probe, probe_all
from rocwright.sandbox.runner import foreground, interactive, make_writable, run
from rocwright.sandbox.state import sweep

__all__ = [
    "ENGINES",
    "Ended",
    "Engine",
    "Launch",
    "Mount",
    "Probe",
    "Ready",
    "SandboxJob",
    "SandboxOutcome",
    "Scene",
    "choose",
    "describe",
    "foreground",
    "interactive",
    "make_ready",
    "make_writable",
    "pick",
    "probe",
    "probe_all",
    "run",
    "sweep",
]
