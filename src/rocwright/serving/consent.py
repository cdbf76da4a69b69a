"""Asks before `run` starts a build that takes long or much."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rocwright.execution.estimate import expected
from rocwright.execution.requirements import outlook_here, outlook_line
from rocwright.plan.decide import Decision
from rocwright.project import Project

# Seconds and bytes that need no question.
LONG, MUCH = 300.0, 2 * 10**9

# Hears what a build needs, in a line. Raises InputError, or click.Abort, to refuse it.
Agree = Callable[[str], None]


def ask(project: Project, decisions: Sequence[Decision], agree: Agree) -> None:
    """Call `agree` if the steps to run take more than LONG or MUCH, or nobody knows how long."""
    forecast = outlook_here(decisions, expected(project, decisions), project.home)
    if forecast.left.seconds > LONG or forecast.disk > MUCH or forecast.left.unknown:
        agree(outlook_line(forecast))
