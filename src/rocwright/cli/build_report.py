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
from rocwright.plan.resolve.aliases import ROCM
from rocwright.plan.resolve.model import Lock
from rocwright.project import Project
from rocwright.records.model import Finding
from rocwright.verify.lines import outcome_word

# What is new in the log of a step, by its name.
NoveltyOf = Callable[[str], Novelty | None]

# New lines told of a step that failed; `rocwright logs` and the page of the run have more.
MOST_NEW = 3


def show_lock_line(lock: Lock) -> None:
    """What is built, for which GPU and on which base, in a line, and what its remedies do."""
    origins = {ROCM: lock.rocm.name} if lock.rocm else {}
    versions = [
        f"{name} {version} ({origins.get(name, 'of the base')})" for name, version in lock.provided.items()
    ]
    versions += [f"{component.name} {component.version}" for component in lock.components]
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
    running = [decision for decision in decisions if decision.state is State.RUN]
    label = click.style("plan", bold=True)
    if not running:
        click.echo(f"{label}   {count(len(decisions), 'step')}, nothing to do", err=True)
        return
    reasons = ", ".join(f"{decision.step.name} ({decision.reasons[0]})" for decision in running[:4])
    suffix = f", {len(running) - 4} more" if len(running) > 4 else ""
    click.echo(
        f"{label}   {count(len(decisions), 'step')}, {len(running)} to run: {reasons}{suffix}",
        err=True,
    )


def show_needs(
    project: Project, decisions: Sequence[Decision], jobs: int | None = None, memory: int | None = None
) -> None:
    """What the steps to run need, and what this machine can do, in a line."""
    if any(decision.state is State.RUN for decision in decisions):
        from rocwright.execution.requirements import outlook_here, outlook_line

        label = click.style("needs", bold=True)
        outlook = outlook_here(decisions, expected(project, decisions), project.home, jobs, memory)
        click.echo(f"{label}  {outlook_line(outlook)}", err=True)


def show_remedies(lock: Lock) -> None:
    """What the lock's remedies do: whoever builds it sees it before."""
    if lock.in_force:
        from rocwright.doctor.remedies.words import does

        effects = "; ".join(
            f"{does(remedy.action, remedy.component)} "
            f"({remedy.issue}{', on trial' if remedy.outcome == 'trial' else ''})"
            for remedy in lock.in_force
        )
        count = f"{len(lock.in_force)} remed{'y' if len(lock.in_force) == 1 else 'ies'}"
        click.echo(f"{click.style('heal', bold=True)}   {count}: {effects}", err=True)


def show_failures(failures: Sequence[tuple[str, ExplainedError]], new: NoveltyOf = lambda step: None) -> int:
    """Every failure, together, each with what is `new` in its log; gives the exit code of the first."""
    for name, error in failures:
        error.next_step = for_step(error.next_step, name)
        tell(error, name)
        _show_new(new(name), error.detail)
        look = f"rocwright logs {name}"
        if look not in error.next_step:
            click.echo(f"  {click.style('look', bold=True)}   {look}", err=True)
    return failures[0][1].failure.exit_code


def _show_new(new: Novelty | None, shown: str) -> None:
    """What the log of a step has that its last good one had not, but for what was told already."""
    if new is None or not new.count:
        return
    head = f"{count(new.count, 'line')} that its last good log did not have"
    lines = [line for line in new.lines if line.weight and line.text.strip() not in shown]
    click.echo(f"  {click.style('new', bold=True)}    {head}{', of which:' if lines else ''}", err=True)
    for line in lines[:MOST_NEW]:
        click.echo(f"         {line.line:,}: {line.text.strip()}", err=True)


def check_row(finding: Finding) -> tuple[str, ...]:
    """What a check found, on what, as a row of the summary; what was not there to be tried did not pass."""
    return (
        f"{finding.component}: {finding.name}",
        outcome_word(finding),
        finding.device or "-",
        finding.detail,
    )


def show_summary(project: Project, built: Built) -> None:
    """The short tables at the end: times, artifacts, what was verified and on what, where things lie."""
    if built.run.steps:
        click.echo()
        rows = [_step_row(step) for step in built.run.steps]
        print_table(("step", "outcome", "time", "sandbox", "jobs", "compiler cache"), rows, right=(2, 4))
    click.echo()
    print_table(
        ("artifact", "size", "sha256 as laid out"),
        [(artifact.path.name, size(artifact.size), artifact.sha256) for artifact in built.artifacts],
        right=(1,),
    )
    if built.findings:
        click.echo()
        print_table(
            ("check", "outcome", "on", "detail"),
            [check_row(finding) for finding in built.findings],
        )
    click.echo()
    click.echo(f"artifacts    {project.output / project.request.stack}")
    if any(artifact.path.suffix == ".whl" for artifact in built.artifacts):
        click.echo(f"wheel index  {project.output / 'simple'}")
    if built.artifacts:
        click.echo(f"proof        {_proof(built)}")
    if built.run.steps:
        click.echo(f"logs         {project.home.runs / built.run.id}")
    click.echo(f"next         {next_steps(project, verified=bool(built.findings))}")


def _proof(built: Built) -> str:
    """What lies beside the artifacts, and who signed it."""
    from rocwright.store.signing.keys import chosen

    signers = {artifact.keyid for artifact in built.artifacts}
    summary = "an SBOM and a statement next to each artifact"
    lacking = sorted(
        {name for artifact in built.artifacts if not artifact.keyid for name in artifact.lacking}
    )
    if lacking and chosen() is not None:
        verify = in_place("rocwright verify")
        return f"{summary}, not signed: checks have not passed: {', '.join(lacking)} ({verify})"
    if signers == {""}:
        return f"{summary}, not signed: there is no key (rocwright attest key makes one)"
    return f"{summary}, signed with {', '.join(sorted(keyid[:16] for keyid in signers if keyid))}"


def _step_row(step: Any) -> tuple[str, ...]:
    counts = step.compiler_cache
    total = counts.get("hit", 0) + counts.get("miss", 0)
    cache = f"{counts.get('hit', 0)} of {total} hit" if total else ""
    return (
        step.name,
        f"{step.outcome}, resumed" if step.resumed else step.outcome,
        duration(step.seconds),
        step.engine,
        str(step.jobs) if step.engine else "",
        cache,
    )


def next_steps(project: Project, *, verified: bool) -> str:
    """Return the commands to type once a stack is built, a line each."""
    steps = [] if verified else ["rocwright verify"]
    _, base = project.catalog.base(project.request.base)
    places = {
        "dist": str(project.output / "simple"),
        "out": str(project.output / project.request.stack),
        # the wheels fit the base's Python alone, whatever the host's is
        "python": f"python{base.python}",
    }
    steps += [text.format_map(places) for text in project.catalog.stack(project.request.stack).next]
    return "\n             ".join(map(in_place, steps))


def as_data(project: Project, built: Built) -> dict[str, Any]:
    """The same for `--json`."""
    return {
        "run": built.run.model_dump(mode="json"),
        "artifacts": [
            {
                "step": artifact.step.name,
                "path": str(artifact.path),
                **artifact.output.model_dump(mode="json"),
                "laid_out": {"sha256": artifact.sha256, "size": artifact.size},
                "beside": [str(path) for path in artifact.beside],
                "signed_by": artifact.keyid,
            }
            for artifact in built.artifacts
        ],
        "failures": [{"step": name, **error.as_dict()} for name, error in built.failures],
        "findings": [finding.model_dump(mode="json") for finding in built.findings],
        "output": str(project.output),
        "logs": str(project.home.runs / built.run.id),
    }
