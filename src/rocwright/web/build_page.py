"""What one build took, and what came of it: a page of Markdown, to keep beside a project or to send."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from rocbase.errors import ExplainedError
from rocbase.units import count, duration, printable, size
from rocwheel.wheels.audit.resources import TargetUse, resources
from rocwheel.wheels.inspection import Inspection, inspect
from rocwright.checks.static import named
from rocwright.records.model import Artifact, Finding, Run, StepRun, Which
from rocwright.records.read import Records
from rocwright.resolve.model import Lock
from rocwright.store.model import Output, Store
from rocwright.verify.lines import table_rows

MOST_TRIES = 50
"""Of earlier attempts at one step, how many are counted."""


def build_page(records: Records, store: Store, run: Run) -> str:
    """The page of a run: the command to repeat it, its steps, artifacts, machine code, kernels, checks.

    The machine code is read from the store; of what is no longer there the page says so.
    """
    made = records.artifacts(run=run.id)
    held = {one.sha256: one for one in made}
    found = [one for sha256 in held for one in records.findings(sha256=sha256, standing=True)]
    # what was verified again counts once, as it went the last time: the newest are first
    newest: dict[tuple[str, ...], Finding] = {}
    for one in (*found, *records.findings(run=run.id)):
        newest.setdefault((one.component, one.check, one.name, one.device), one)
    findings = [*newest.values()]
    parts = [_head(run, records), _steps(run, records), _artifacts(made)]
    parts += [text for one in held.values() for text in _code(store, one)]
    parts += [_checks(findings)] if findings else []
    return "\n\n".join(parts) + "\n"


def _head(run: Run, records: Records) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    said = {
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
    return "\n".join([*lines, *_table(("", ""), [(k, _cell(v)) for k, v in said.items() if v])])


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
    for one in run.steps:
        earlier = _earlier(one, run, records)
        tried = f"{len(earlier)} earlier, {duration(sum(at.seconds for at in earlier))}" if earlier else ""
        hits, all_ = one.compiler_cache.get("hit", 0), sum(one.compiler_cache.values())
        rows.append(
            (
                _cell(one.name),
                f"`{one.key[:12]}`" if one.key else "",
                f"{one.outcome}, resumed" if one.resumed else one.outcome or one.state,
                duration(one.seconds),
                tried,
                str(one.most_jobs or one.jobs or ""),
                size(one.peak_memory) if one.peak_memory else "",
                f"{hits:,} of {all_:,}" if all_ else "",
                one.engine,
            )
        )
    heads = ("step", "key", "outcome", "time", "tries", "jobs", "memory", "compiler cache", "sandbox")
    return "\n".join(["## What it took", "", *_table(heads, rows, right=(3, 5, 6, 7))])


def _earlier(step: StepRun, run: Run, records: Records) -> list[StepRun]:
    """What other runs did for the same key before: attempts that were cut short."""
    if not step.key:
        return []
    found = records.steps(Which(step=step.name), limit=MOST_TRIES)
    return [at.step for at in found if at.step.key == step.key and at.run < run.id and at.step.seconds]


def _artifacts(made: Sequence[Artifact]) -> str:
    rows = [(f"`{_cell(one.filename)}`", f"{one.size:,}", f"`{one.sha256}`") for one in made]
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
            found, used = _read(path)
        except ExplainedError as error:
            yield f"`{_cell(artifact.filename)}` could not be read: {_cell(error.message)}"
            return
    if found.libraries:
        yield "\n".join([f"## Machine code in {_cell(artifact.filename)}", "", *_libraries(found)])
    for one in used:
        kernels = count(one.kernels, "kernel")
        yield "\n".join([f"### Taken by its {kernels} for {one.target}", "", *_uses(one)])


def _read(path: Path) -> tuple[Inspection, list[TargetUse]]:
    found = inspect(path)
    return found, resources(path) if found.libraries else []


def _libraries(found: Inspection) -> list[str]:
    rows = [
        (f"`{_cell(library.path)}`", one.target_id, f"{one.count:,}", f"{one.size:,}", f"{library.size:,}")
        for library in found.libraries
        for one in library.targets
    ]
    return _table(
        ("file", "target", "code objects", "their bytes", "bytes of the file"), rows, right=(2, 3, 4)
    )


def _uses(used: TargetUse) -> list[str]:
    if not used.known:
        return [f"Nothing is known of the limits of {used.target}."]
    rows = [
        (f"{one.resource}, {one.unit}", f"{one.median:,}", f"{one.most:,}", f"{one.limit:,}")
        for one in used.uses
    ]
    table = _table(("resource", "median", "most (of waves: fewest)", "there is"), rows, right=(1, 2, 3))
    told = f"{used.spilling:,} move registers to memory, {used.scratch:,} use scratch."
    too_much = f"{len(used.excesses):,} ask for more than there is." if used.excesses else "Each fits."
    return [*table, "", f"{told} {too_much}"]


def _checks(findings: Sequence[Finding]) -> str:
    bad = sum(not one.ok for one in findings)
    absent = sum(one.ok and one.absent for one in findings)
    found = count(len(findings), "finding")
    told = f"{found}: {len(findings) - bad - absent:,} ok, {absent:,} absent, {bad:,} failed."
    rows = [tuple(_cell(text) for text in row) for row in table_rows(findings)]
    heads = ("component", "check", "outcome", "on", "detail")
    return "\n".join(["## Checks", "", told, "", *_table(heads, rows)])


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    rule = ["---:" if number in right else "---" for number in range(len(heads))]
    return [f"| {' | '.join(row)} |" for row in (heads, rule, *rows)]


def _cell(text: str) -> str:
    """Text that stays in its cell, whoever wrote it."""
    return printable(text).replace("|", "\\|").replace("<", "&lt;")
