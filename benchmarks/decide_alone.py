"""`python -m benchmarks.decide_alone PLAN.json STORE`: what a plan needs, and the time of each part."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from rocbase.processes import startup


def _started() -> float:
    """When this process started, in seconds after the machine."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    startup.settle()  # as the command does
    from rocwright.model.steps import Plan
    from rocwright.plan.decide import decide
    from rocwright.store.local import LocalStore

    imported = time.clock_gettime(time.CLOCK_BOOTTIME)
    plan = Plan.model_validate_json(Path(sys.argv[1]).read_bytes())
    read = time.clock_gettime(time.CLOCK_BOOTTIME)
    decide(plan, LocalStore(Path(sys.argv[2])), plan)
    decided = time.clock_gettime(time.CLOCK_BOOTTIME)
    print(json.dumps({"imports": imported - _started(), "read": read - imported, "decide": decided - read}))


if __name__ == "__main__":
    main()
