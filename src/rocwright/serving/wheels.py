"""A wheel stack, built where it is not, and the question before a long build."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from rocbase.errors import InputError
from rocwright import flow
from rocwright.catalog.load import Catalog
from rocwright.execution.estimate import expected
from rocwright.execution.options import BuildOptions
from rocwright.execution.progress import Progress
from rocwright.execution.requirements import outlook_here, outlook_line
from rocwright.plan.decide import Decision, State
from rocwright.plan.resolve.model import Lock, Request
from rocwright.plan.resolve.validate import PUBLISHED_WHEELS
from rocwright.project import Project

# Seconds and bytes that need no question.
LONG, MUCH = 300.0, 2 * 10**9

# Hears what a build needs, in a line. Raises InputError, or click.Abort, to refuse it.
Agree = Callable[[str], None]


def check_makes_wheels(project: Project) -> None:
    """Raise InputError for a stack that has no environment to run programs in."""
    catalog, stack = project.catalog, project.request.stack
    if not makes_wheels(catalog, stack):
        stacks = [name for name in catalog.stacks if makes_wheels(catalog, name)]
        raise InputError(
            f"the stack {stack} makes no wheels",
            cause="only a stack of wheels has a Python environment to run programs in",
            next_step=f"name one of {', '.join(stacks)}",
        )


def not_built(request: Request) -> InputError:
    """The refusal of a dry run: which files the command names is known once they are there."""
    return InputError(
        f"{request.stack} is not built here yet, and --dry-run builds and fetches nothing",
        cause="the command names files by their content, which a build makes, or a trusted store has",
        next_step=shlex.join(["rocwright", "build", *request.words]),
    )


def not_installed(stack: str) -> InputError:
    """The refusal of a dry run: the environment that the command names is made by the first run."""
    return InputError(
        f"{stack or 'this project'} is not installed here yet, and --dry-run writes nothing",
        cause="the command names an environment, which the first run of the same makes",
        next_step="leave --dry-run out",
    )


def makes_wheels(catalog: Catalog, stack: str) -> bool:
    """Whether programs can run in the environment of a stack: one that makes wheels, or takes those of
    others."""
    kinds = {catalog.component(name).kind for name in catalog.stack(stack).components}
    return not kinds.isdisjoint({"wheel", PUBLISHED_WHEELS})


def built_lock(
    project: Project,
    engine: str | None,
    progress: Progress,
    say: Callable[[str], None],
    *,
    agree: Agree = lambda line: None,
) -> Lock:
    """The lock of a stack all of which is in the store: had from there, fetched or built. Raises what a build
    does, and what `agree` raises.
    """
    locked = flow.current_lock(project, say)
    _, decisions = flow.planned(project, locked)
    if any(decision.state is State.RUN for decision in decisions):
        say(f"{project.request.stack} is not built here yet: building it first")
        ask(project, decisions, agree)
    with progress:
        built = flow.build(project, locked, BuildOptions(engine=engine), progress, lay=False)
    if built.failures:
        raise built.failures[0][1]
    return locked


def ask(project: Project, decisions: Sequence[Decision], agree: Agree) -> None:
    """Call `agree` if the steps to run take more than LONG or MUCH, or nobody knows how long."""
    forecast = outlook_here(decisions, expected(project, decisions), project.home)
    if forecast.left.seconds > LONG or forecast.disk > MUCH or forecast.left.unknown:
        agree(outlook_line(forecast))
