"""What a plan takes from the plan of the lock that its own stands on."""

from __future__ import annotations

from rocwright.model.steps import Plan, Step
from rocwright.plan.resolve.model import Lock

# Stands between a step's name and the stack that it is taken from, where both stacks have such a step.
SEPARATOR = "@"


def shared_steps(base_plan: Plan, lock: Lock) -> tuple[Step, ...]:
    """The steps that build what the lock `lock` has of the components below it, and what they need, in order.

    Packages, roots and whatever else each stack has a step of its own of carry the name of the stack.
    """
    assert lock.on is not None
    stack = lock.on.request.stack
    both = {component.name for component in lock.on.components} & {
        component.name for component in lock.components
    }
    needed: set[str] = set()
    for step in reversed(base_plan.steps):
        if step.key in needed or (step.name in base_plan.artifacts and step.component in both):
            needed |= {step.key, *(item.key for item in step.inputs)}
    return tuple(
        step if step.component in both else step.model_copy(update={"name": f"{step.name}{SEPARATOR}{stack}"})
        for step in base_plan.steps
        if step.key in needed
    )
