"""What Python programs call, and the command line too, for the same things.

Names are strings as a person says them (a GPU is "RX 580" or "gfx803"), paths are str or Path, sizes are in
bytes, times in UTC. Models are frozen. Every failure is a `ExplainedError` with its class, cause and
next step. What a function needs is imported when it is called.
"""

from rocbase.errors import ExplainedError as ExplainedError
from rocwright.api.gpus import gpus_here, target, targets
from rocwright.api.lending import lender, verify_elsewhere
from rocwright.api.machine import apply_remedies, diagnose, doctor, new_lines
from rocwright.api.measuring import bench
from rocwright.api.patches import check_offered
from rocwright.api.projects import (
    build,
    carry,
    export,
    forget_remedies,
    lock,
    plan,
    project,
    records,
    remedies,
    request,
    resolve,
    stacks,
    verify,
    verify_carried,
    verify_environment,
)
from rocwright.api.rehearsals import rehearse
from rocwright.api.sharing import check_shared, clean_shared, pull, push, shared_usage, sync
from rocwright.api.wheels import audit_override, check, inspect, reproduce_wheel, runs_on, slim, wheel_sbom
from rocwright.execution.options import BuildOptions

__all__ = [
    "BuildOptions",
    "apply_remedies",
    "audit_override",
    "bench",
    "build",
    "carry",
    "check",
    "check_offered",
    "check_shared",
    "clean_shared",
    "diagnose",
    "doctor",
    "export",
    "forget_remedies",
    "gpus_here",
    "inspect",
    "lender",
    "lock",
    "new_lines",
    "plan",
    "project",
    "pull",
    "push",
    "records",
    "rehearse",
    "remedies",
    "reproduce_wheel",
    "request",
    "resolve",
    "runs_on",
    "shared_usage",
    "slim",
    "stacks",
    "sync",
    "target",
    "targets",
    "verify",
    "verify_carried",
    "verify_elsewhere",
    "verify_environment",
    "wheel_sbom",
]
