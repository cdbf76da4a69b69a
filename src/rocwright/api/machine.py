"""What this machine can do, and what a log tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from rocwright.api.gpus import AUTO, chosen_targets, named_gpus, silent

if TYPE_CHECKING:
    from rocwright.diagnosis.diagnose import Diagnosis
    from rocwright.diagnosis.machine.tree import Tree
    from rocwright.diagnosis.novel import Novelty
    from rocwright.doctor.apply import Applied
    from rocwright.doctor.doctor import DoctorReport
    from rocwright.doctor.findings.model import DoctorFinding
    from rocwright.home import Home


def diagnose(
    log: str | Path | BinaryIO,
    *,
    component: str = "",
    version: str = "",
    gpu: str | Sequence[str] = (),
    base: str = "",
    phase: str = "",
    good: str | Path | None = None,
    find_packages: bool = False,
    elsewhere: bool = False,
    home: str | Path | None = None,
    say: Callable[[str], None] = silent,
) -> Diagnosis:
    """The first error of a log, and what is known of it.

    The log is a file's path, or a file that is open; of any tool and any size, compressed, cut off. What is
    known of the `component`, its `version`, the GPUs, the base and the `phase` that failed rules issues out.
    With a `good` log of the same step the answer says what is `new` in this one, which must be a path then.
    `find_packages` looks a missing header up in the index of files of the base, which is fetched from its
    archive and kept in the `home`. Where kernel or firmware may be at fault, this machine's are looked at,
    unless the log is said to be from `elsewhere` or shows that it is. Raises InputError where a log cannot be
    read, a GPU or phase is not known, or the base has no such index; NetworkError where it cannot be fetched.
    """
    from rocwright.catalog.phase import phase_named
    from rocwright.diagnosis.diagnose import FailurePlace
    from rocwright.diagnosis.diagnose import diagnose as search
    from rocwright.diagnosis.read_log import open_log, pieces
    from rocwright.doctor.for_log import with_this_machine

    named = named_gpus(gpu)
    place = FailurePlace(
        component=component,
        version=version,
        targets=chosen_targets(named, say) if named else (),
        base=base,
        phase=phase_named(phase) if phase else None,
    )
    if not isinstance(log, str | Path):
        if good is not None:
            from rocbase.errors import InputError

            raise InputError(
                "a stream is not compared with a good log",
                cause="both are read more than once",
                next_step="write it to a file, and name that",
            )
        diagnosis = search(pieces(log), place)
    else:
        with open_log(Path(log)) as file:
            diagnosis = search(pieces(file), place, failed=_has_failed(Path(log), home))
    diagnosis = with_this_machine(diagnosis, place.targets, say, elsewhere=elsewhere)
    if find_packages:
        diagnosis = _with_packages(diagnosis, base, home, say)
    if good is None or not isinstance(log, str | Path):
        return diagnosis
    from rocwright.diagnosis.compare import compare

    return diagnosis.model_copy(update={"new": compare(Path(log), Path(good))})


def _has_failed(log: Path, home: str | Path | None) -> bool | None:
    """Return whether the step of a log failed, as its record says; None for a log that is on no record."""
    from rocwright.api.projects import records
    from rocwright.home import Home

    place = Home(Path(home).absolute()) if home is not None else Home.default()
    if log.absolute().parent.parent != place.runs:
        return None
    with records(place.path) as read:
        run = read.run(log.absolute().parent.name)
    outcomes = {step.outcome for step in run.steps if step.log == log.name} if run is not None else set()
    return "built" not in outcomes if outcomes & {"built", "failed"} else None


def _with_packages(
    diagnosis: Diagnosis, base: str, home: str | Path | None, say: Callable[[str], None]
) -> Diagnosis:
    from rocbase.errors import InputError
    from rocwright.catalog.load import the_catalog
    from rocwright.diagnosis.missing import with_packages
    from rocwright.home import Home
    from rocwright.model.architecture import host_architecture
    from rocwright.sources.bases.tools import Tools
    from rocwright.sources.file_index import index_of

    if not base:
        raise InputError(
            "no base is named whose packages could be looked up",
            cause="which package has a header differs from base to base",
            next_step="name one, such as --base debian:sid",
        )
    place = Home(Path(home).absolute()) if home is not None else Home.default()
    index = index_of(base, the_catalog(), Tools(place), host_architecture())

    def packages_with(header: str) -> tuple[str, ...]:
        say(f"the index of files of {base}: looking for {header}")
        index.refresh()
        return index.packages_with(header)

    return with_packages(diagnosis, base, packages_with)


def new_lines(run: str, step: str, *, home: str | Path | None = None) -> Novelty | None:
    """What the log of a step of a run has that its last good log had not, the likeliest cause first.

    Good is the last run before it that built this step of the same stack and base, for the same GPU where
    there is one. None where there is none, or the run is not on record. Raises InternalError where the
    records are damaged.
    """
    from rocwright.api.projects import records
    from rocwright.execution.good_log import new_lines as compared
    from rocwright.home import Home

    place = Home(Path(home).absolute()) if home is not None else Home.default()
    with records(place.path) as read:
        record = read.run(run)
        return compared(read, place.runs, record, step) if record is not None else None


def doctor(
    stack: str = "",
    gpu: str | Sequence[str] = (),
    *,
    root: str | Path = "/",
    engines: bool = False,
    bundle: str | Path | None = None,
) -> DoctorReport:
    """What is wrong with this machine for a stack, or for any, what helps, and what the machine can do.

    `gpu` are those of the machine's GPUs that it is judged for, all by default; `root` is a folder with
    another machine's /sys, /proc, /dev and /etc. With `engines` each sandbox engine is tried, too. `bundle`
    writes a bug report, .tar.gz or .zip: the report, versions, the last failed run; secrets are removed.
    Raises InputError for a stack or GPU that is not known, or not in the machine.
    """
    from rocwright.catalog.load import the_catalog
    from rocwright.diagnosis.facts import host_facts
    from rocwright.diagnosis.machine.tree import Tree
    from rocwright.doctor.doctor import engines_here, examine
    from rocwright.doctor.this_machine import here, only
    from rocwright.home import Home

    catalog, facts, home = the_catalog(), host_facts(), Home.default()
    names = [name for name in named_gpus(gpu) if name != AUTO]
    targets = chosen_targets(names, catalog=catalog) if names else ()
    stacks = [catalog.stack(stack).name] if stack else list(catalog.stacks)
    with Tree(Path(root).absolute()) as tree:
        tried = engines_here(home) if tree.live and engines else None
        machine = only(here(tree, catalog, facts, home, tried), targets)
        report = examine(machine, catalog, facts, stacks, home if tree.live else None)
        report = report.model_copy(update={"live": tree.live})
        if bundle is not None:
            _write_bundle(Path(bundle), report, tree, home)
    return report


def apply_remedies(report: DoctorReport, wanted: Callable[[DoctorFinding], bool]) -> tuple[Applied, ...]:
    """Run the commands of a `doctor`'s report that are safe, each only where `wanted` says so of its finding.

    Gives each command with its exit status, None where it was not run. Raises InputError for a report on
    another machine.
    """
    from rocbase.errors import InputError
    from rocwright.doctor.apply import apply

    if not report.live:
        raise InputError(
            "--fix cannot be used with --root",
            cause="--fix changes this machine, and --root describes another one",
            next_step="run rocwright doctor --fix on that machine, without --root",
        )
    return apply(report.findings, wanted)


def _write_bundle(path: Path, report: DoctorReport, tree: Tree, home: Home) -> None:
    import os

    from rocwright.doctor.attachments import last_failure, versions
    from rocwright.doctor.bundle import secrets, write_bundle
    from rocwright.doctor.lines import lines

    files: dict[str, object] = {
        "report.json": report.model_dump(mode="json"),
        "report.txt": "\n".join(lines(report)),
        "versions.json": versions(),
        # of another machine's folders nothing was run here
        **({"failure.json": last_failure(home)} if report.live else {}),
    }
    write_bundle(path, files, secrets(tree, report.machine.user.name, str(Path.home()), os.environ))
