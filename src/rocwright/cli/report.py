"""What a build says: the lock and the plan in a line each, the table at the end, failures together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from rocbase.cli.tell import print_table
from rocbase.errors import ExplainedError
from rocbase.units import count, duration, size
from rocwright.cli.place import in_place
from rocwright.cli.tell import tell
from rocwright.diagnosis.explain import for_step
from rocwright.diagnosis.novel import Novelty
from rocwright.execution.estimate import expected
from rocwright.execution.outcome import Built
from rocwright.plan.decide import Decision, State
from rocwright.project import Project
from rocwright.records.model import Finding
from rocwright.resolve.aliases import ROCM
from rocwright.resolve.model import Lock
from rocwright.verify.lines import outcome_word

NewLines = Callable[[str], Novelty | None]
"""What is new in the log of a step, by its name."""

MOST_NEW = 3
"""New lines told of a step that failed; `rocwright logs` and the page of the run have more."""


def show_lock_line(lock: Lock) -> None:
    """What is built, for which GPU and on which base, in a line, and what its remedies do."""
    origins = {ROCM: lock.rocm.name} if lock.rocm else {}
    versions = [
        f"{name} {version} ({origins.get(name, 'of the base')})" for name, version in lock.provided.items()
    ]
    versions += [f"{one.name} {one.version}" for one in lock.components]
    label = click.style("lock", bold=True)
    click.echo(
        f"{label}   {' · '.join(versions)} · {', '.join(lock.request.gpu)} · {lock.request.base} "
        f"@ {lock.created[:10]}",
        err=True,
    )
    show_remedies(lock)


def show_plan_line(lock: Lock, decisions: Sequence[Decision]) -> None:
    """The lock and the plan, a line each."""
    show_lock_line(lock)
    running = [one for one in decisions if one.state is State.RUN]
    label = click.style("plan", bold=True)
    if not running:
        click.echo(f"{label}   {count(len(decisions), 'step')}, nothing to do", err=True)
        return
    reasons = ", ".join(f"{one.step.name} ({one.reasons[0]})" for one in running[:4])
    more = f", {len(running) - 4} more" if len(running) > 4 else ""
    click.echo(
        f"{label}   {count(len(decisions), 'step')}, {len(running)} to run: {reasons}{more}",
        err=True,
    )


def show_needs(
    project: Project, decisions: Sequence[Decision], jobs: int | None = None, memory: int | None = None
) -> None:
    """What the steps to run need, and what this machine can do, in a line."""
    if any(one.state is State.RUN for one in decisions):
        from rocwright.execution.requirements import outlook_here, outlook_line

        label = click.style("needs", bold=True)
        found = outlook_here(decisions, expected(project, decisions), project.home, jobs, memory)
        click.echo(f"{label}  {outlook_line(found)}", err=True)


def show_remedies(lock: Lock) -> None:
    """What the lock's remedies do: whoever builds it sees it before."""
    if lock.in_force:
        from rocwright.remedies.words import does

        told = "; ".join(
            f"{does(one.action, one.component)} ({one.issue}{', on trial' if one.outcome == 'trial' else ''})"
            for one in lock.in_force
        )
        count = f"{len(lock.in_force)} remed{'y' if len(lock.in_force) == 1 else 'ies'}"
        click.echo(f"{click.style('heal', bold=True)}   {count}: {told}", err=True)


def show_failures(failures: Sequence[tuple[str, ExplainedError]], new: NewLines = lambda step: None) -> int:
    """Every failure, together, each with what is `new` in its log; gives the exit code of the first."""
    for name, error in failures:
        error.next_step = for_step(error.next_step, name)
        tell(error, name)
        _show_new(new(name), error.detail)
        look = f"rocwright logs {name}"
        if look not in error.next_step:
            click.echo(f"  {click.style('look', bold=True)}   {look}", err=True)
    return failures[0][1].failure.exit_code


def _show_new(new: Novelty | None, told: str) -> None:
    """What the log of a step has that its last good one had not, but for what was told already."""
    if new is None or not new.count:
        return
    head = f"{count(new.count, 'line')} that its last good log did not have"
    others = [one for one in new.lines if one.weight and one.text.strip() not in told]
    click.echo(f"  {click.style('new', bold=True)}    {head}{', of which:' if others else ''}", err=True)
    for one in others[:MOST_NEW]:
        click.echo(f"         {one.line:,}: {one.text.strip()}", err=True)


def check_row(one: Finding) -> tuple[str, ...]:
    """What a check found, on what, as a row of the summary; what was not there to be tried did not pass."""
    return f"{one.component}: {one.name}", outcome_word(one), one.device or "-", one.detail


def show_summary(project: Project, built: Built) -> None:
    """The short tables at the end: times, artifacts, what was verified and on what, where things lie."""
    if built.run.steps:
        click.echo()
        rows = [_step_row(one) for one in built.run.steps]
        print_table(("step", "outcome", "time", "sandbox", "jobs", "compiler cache"), rows, right=(2, 4))
    click.echo()
    print_table(
        ("artifact", "size", "sha256 as laid out"),
        [(one.path.name, size(one.size), one.sha256) for one in built.artifacts],
        right=(1,),
    )
    if built.findings:
        click.echo()
        print_table(
            ("check", "outcome", "on", "detail"),
            [check_row(one) for one in built.findings],
        )
    click.echo()
    click.echo(f"artifacts    {project.output / project.request.stack}")
    if any(one.path.suffix == ".whl" for one in built.artifacts):
        click.echo(f"wheel index  {project.output / 'simple'}")
    if built.artifacts:
        click.echo(f"proof        {_proof(built)}")
    if built.run.steps:
        click.echo(f"logs         {project.home.runs / built.run.id}")
    click.echo(f"next         {next_steps(project, verified=bool(built.findings))}")


def _proof(built: Built) -> str:
    """What lies beside the artifacts, and who signed it."""
    from rocwright.signing.keys import chosen

    signers = {one.keyid for one in built.artifacts}
    told = "an SBOM and a statement next to each artifact"
    lacking = sorted({name for one in built.artifacts if not one.keyid for name in one.lacking})
    if lacking and chosen() is not None:
        verify = in_place("rocwright verify")
        return f"{told}, not signed: checks have not passed: {', '.join(lacking)} ({verify})"
    if signers == {""}:
        return f"{told}, not signed: there is no key (rocwright attest key makes one)"
    return f"{told}, signed with {', '.join(sorted(one[:16] for one in signers if one))}"


def _step_row(one: Any) -> tuple[str, ...]:
    counts = one.compiler_cache
    total = counts.get("hit", 0) + counts.get("miss", 0)
    cache = f"{counts.get('hit', 0)} of {total} hit" if total else ""
    return (
        one.name,
        f"{one.outcome}, resumed" if one.resumed else one.outcome,
        duration(one.seconds),
        one.engine,
        str(one.jobs) if one.engine else "",
        cache,
    )


def next_steps(project: Project, *, verified: bool) -> str:
    """Return the commands to type once a stack is built, a line each."""
    steps = [] if verified else ["rocwright verify"]
    places = {"dist": str(project.output / "simple"), "out": str(project.output / project.request.stack)}
    steps += [text.format_map(places) for text in project.catalog.stack(project.request.stack).next]
    return "\n             ".join(map(in_place, steps))


def as_data(project: Project, built: Built) -> dict[str, Any]:
    """The same for `--json`."""
    return {
        "run": built.run.model_dump(mode="json"),
        "artifacts": [
            {
                "step": one.step.name,
                "path": str(one.path),
                **one.output.model_dump(mode="json"),
                "laid_out": {"sha256": one.sha256, "size": one.size},
                "beside": [str(path) for path in one.beside],
                "signed_by": one.keyid,
            }
            for one in built.artifacts
        ],
        "failures": [{"step": name, **error.as_dict()} for name, error in built.failures],
        "findings": [one.model_dump(mode="json") for one in built.findings],
        "output": str(project.output),
        "logs": str(project.home.runs / built.run.id),
    }
