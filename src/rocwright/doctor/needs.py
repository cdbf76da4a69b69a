"""Reads off its plan what building a stack takes, as `plan`, `build` and `run` do."""

from __future__ import annotations

import os
from pathlib import Path

from rocbase.errors import ExplainedError
from rocbase.model import Frozen
from rocwright.catalog.load import Catalog
from rocwright.diagnosis.machine.model import Machine
from rocwright.execution.estimate import expected
from rocwright.execution.jobs.learn import Learnt
from rocwright.execution.jobs.room import MemoryBudget, read_room
from rocwright.execution.requirements import Outlook, outlook
from rocwright.home import Home
from rocwright.plan.decide import Decision, State, needed
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.model import Request
from rocwright.project import lock_offline, project_of
from rocwright.verify.proven import proven_base

# The home folder of a machine that is known by its files alone: nothing was built there.
NOWHERE = Home(Path(os.devnull))

# Bytes of memory of a machine that does not report them: no bound.
_UNBOUNDED = 2**60


class BuildNeed(Frozen):
    """What a whole build of a stack takes; without an `outlook`, `reason` says why it cannot be planned."""

    stack: str
    outlook: Outlook | None = None
    reason: str = ""

    @property
    def disk(self) -> int:
        """Return the bytes of disk, 0 if they are unknown."""
        return self.outlook.disk if self.outlook else 0

    @property
    def memory_per_job(self) -> int:
        """Return the bytes of memory of the largest compiler, 0 if they are unknown."""
        return self.outlook.memory_per_job if self.outlook else 0


def need_of(machine: Machine, catalog: Catalog, stack: str, target: str, home: Home | None) -> BuildNeed:
    """Plan a whole build for a target, with the lock that is in `home`, else without a network.

    Nothing is looked up in a store. Without `home`, nothing is known of earlier builds.
    """
    bare = Request(stack=stack, gpu=(target,), base=catalog.stack(stack).bases[0])
    request = bare.model_copy(update={"base": proven_base(bare, catalog)})
    project = project_of(request, Path(), home or NOWHERE)
    try:
        plan = make_plan(lock_offline(project), project.catalog)
    except ExplainedError as error:
        return BuildNeed(stack=stack, reason=": ".join(filter(None, (error.message, error.cause))))
    keys = needed(plan)
    decisions = [Decision(step=step, state=State.RUN) for step in plan.steps if step.key in keys]
    forecast = outlook(
        decisions,
        expected(project, decisions),
        machine.processors,
        disk=min((space.free for space in machine.rooms), default=0),
        room=read_room(None, None) if home else _memory_of(machine),
        learnt=Learnt.load(project.home),
    )
    return BuildNeed(stack=stack, outlook=forecast)


def _memory_of(machine: Machine) -> MemoryBudget:
    memory = machine.memory
    if memory is None:
        return MemoryBudget(total=_UNBOUNDED, used=0)
    total = min(memory.total, memory.limit or memory.total)
    return MemoryBudget(total=total, used=max(0, total - memory.available))
