"""What one build took, and what came of it: a page of Markdown, to keep beside a project or to send."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from rocbase.errors import ExplainedError
from rocbase.units import count, duration, printable, size
from rocwheel.wheels.audit.resources import TargetUse, resources
from rocwheel.wheels.inspection import Inspection, inspect
from rocwright.plan.resolve.model import Lock
from rocwright.provenance.checks.static import named
from rocwright.records.model import Artifact, Finding, Run, StepRun, Which
from rocwright.records.read import Records
from rocwright.store.model import Output, Store
from rocwright.verify.lines import table_rows

# Of earlier attempts at one step, how many are counted.
MOST_TRIES = 50


def build_page(records: Records, store: Store, run: Run) -> str:
    """The page of a run: the command to repeat it, its steps, artifacts, machine code, kernels, checks.

    The machine code is read from the store; of what is no longer there the page says so.
    """
    artifacts = records.artifacts(run=run.id)
    by_digest = {artifact.sha256: artifact for artifact in artifacts}
    evidence = [finding for sha256 in by_digest for finding in records.findings(sha256=sha256, standing=True)]
    # what was verified again counts once, as it went the last time: the newest are first
    newest: dict[tuple[str, ...], Finding] = {}
    for finding in (*evidence, *records.findings(run=run.id)):
        newest.setdefault((finding.component, finding.check, finding.name, finding.device), finding)
    findings = [*newest.values()]
    parts = [_head(run, records), _steps(run, records), _artifacts(artifacts)]
    parts += [text for artifact in by_digest.values() for text in _code(store, artifact)]
    parts += [_checks(findings)] if findings else []
    return "\n\n".join(parts) + "\n"


def _head(run: Run, records: Records) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    facts = {
        "repeat": f"`{command(run, records)}`",
        "begun": run.started,
        "outcome": f"{run.outcome} after {duration(run.seconds)}" if run.outcome else run.state,
        "machine": run.machine,
        "rocwright": run.rocwright,
        "versions": versions,
        "run": run.id,
        "lock": f"sha256 {run.lock}" if run.lock else "",
    }
    lines = [f"# {run.stack} for {', '.join(run.gpu)} on {run.base} {run.variant}".rstrip(), ""]
    return "\n".join([*lines, *_table(("", ""), [(k, _cell(v)) for k, v in facts.items() if v])])


def command(run: Run, records: Records) -> str:
    """The command that asks for the same: from the lock on record, else from what the run says."""
    text = records.lock(run.lock) if run.lock else None
    words = (
        Lock.model_validate_json(text).request.words
        if text
        else [run.stack, "--base", run.base, *(word for gpu in run.gpu for word in ("--gpu", gpu))]
    )
    return shlex.join(["rocwright", run.command, *words])


def _steps(run: Run, records: Records) -> str:
    rows = []
    for step in run.steps:
        earlier = _earlier(step, run, records)
        tried = (
            f"{len(earlier)} earlier, {duration(sum(attempt.seconds for attempt in earlier))}"
            if earlier
            else ""
        )
        hits, all_ = step.compiler_cache.get("hit", 0), sum(step.compiler_cache.values())
        rows.append(
            (
                _cell(step.name),
                f"`{step.key[:12]}`" if step.key else "",
                f"{step.outcome}, resumed" if step.resumed else step.outcome or step.state,
                duration(step.seconds),
                tried,
                str(step.most_jobs or step.jobs or ""),
                size(step.peak_memory) if step.peak_memory else "",
                f"{hits:,} of {all_:,}" if all_ else "",
                step.engine,
            )
        )
    heads = ("step", "key", "outcome", "time", "tries", "jobs", "memory", "compiler cache", "sandbox")
    return "\n".join(["## What it took", "", *_table(heads, rows, right=(3, 5, 6, 7))])


def _earlier(step: StepRun, run: Run, records: Records) -> list[StepRun]:
    """What other runs did for the same key before: attempts that were cut short."""
    if not step.key:
        return []
    attempts = records.steps(Which(step=step.name), limit=MOST_TRIES)
    return [
        attempt.step
        for attempt in attempts
        if attempt.step.key == step.key and attempt.run < run.id and attempt.step.seconds
    ]


def _artifacts(artifacts: Sequence[Artifact]) -> str:
    rows = [
        (f"`{_cell(artifact.filename)}`", f"{artifact.size:,}", f"`{artifact.sha256}`")
        for artifact in artifacts
    ]
    return "\n".join(
        ["## What came of it", "", *_table(("artifact", "bytes", "sha256 as built"), rows, right=(1,))]
    )


def _code(store: Store, artifact: Artifact) -> Iterator[str]:
    if not store.has(artifact.sha256):
        yield f"`{_cell(artifact.filename)}` is no longer in the store: its machine code was not read."
        return
    output = Output(
        name=artifact.component, filename=artifact.filename, sha256=artifact.sha256, size=artifact.size
    )
    with named(store, output) as path:
        try:
            inspection, used = _read(path)
        except ExplainedError as error:
            yield f"`{_cell(artifact.filename)}` could not be read: {_cell(error.message)}"
            return
    if inspection.libraries:
        yield "\n".join([f"## Machine code in {_cell(artifact.filename)}", "", *_libraries(inspection)])
    for target_use in used:
        kernels = count(target_use.kernels, "kernel")
        yield "\n".join([f"### Taken by its {kernels} for {target_use.target}", "", *_uses(target_use)])


def _read(path: Path) -> tuple[Inspection, list[TargetUse]]:
    inspection = inspect(path)
    return inspection, resources(path) if inspection.libraries else []


def _libraries(inspection: Inspection) -> list[str]:
    rows = [
        (
            f"`{_cell(library.path)}`",
            target.target_id,
            f"{target.count:,}",
            f"{target.size:,}",
            f"{library.size:,}",
        )
        for library in inspection.libraries
        for target in library.targets
    ]
    return _table(
        ("file", "target", "code objects", "their bytes", "bytes of the file"), rows, right=(2, 3, 4)
    )


def _uses(used: TargetUse) -> list[str]:
    if not used.known:
        return [f"Nothing is known of the limits of {used.target}."]
    rows = [
        (f"{use.resource}, {use.unit}", f"{use.median:,}", f"{use.most:,}", f"{use.limit:,}")
        for use in used.uses
    ]
    table = _table(("resource", "median", "most (of waves: fewest)", "there is"), rows, right=(1, 2, 3))
    spills = f"{used.spilling:,} move registers to memory, {used.scratch:,} use scratch."
    too_much = f"{len(used.excesses):,} ask for more than there is." if used.excesses else "Each fits."
    return [*table, "", f"{spills} {too_much}"]


def _checks(findings: Sequence[Finding]) -> str:
    bad = sum(not finding.ok for finding in findings)
    absent = sum(finding.ok and finding.absent for finding in findings)
    total = count(len(findings), "finding")
    summary = f"{total}: {len(findings) - bad - absent:,} ok, {absent:,} absent, {bad:,} failed."
    rows = [tuple(_cell(text) for text in row) for row in table_rows(findings)]
    heads = ("component", "check", "outcome", "on", "detail")
    return "\n".join(["## Checks", "", summary, "", *_table(heads, rows)])


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    rule = ["---:" if number in right else "---" for number in range(len(heads))]
    return [f"| {' | '.join(row)} |" for row in (heads, rule, *rows)]


def _cell(text: str) -> str:
    """Text that stays in its cell, whoever wrote it."""
    return printable(text).replace("|", "\\|").replace("<", "&lt;")
