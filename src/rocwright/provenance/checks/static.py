"""The checks of a recipe that read an artifact and run nothing of it: no sandbox, no GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rocbase.folders.temporary import temporary_folder
from rocbase.units import count
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Check
from rocwright.model.steps import FilePin
from rocwright.store.model import Output, Store, verified

if TYPE_CHECKING:
    from rocwheel.wheels.audit.resources import TargetUse

# Of kernels that ask for too much, how many a finding names.
MOST_TOLD = 5


class CheckNote(NamedTuple):
    """One thing that a check found."""

    name: str
    ok: bool
    detail: str


def is_static(check: Check) -> bool:
    """Whether a check runs nothing."""
    return check.kind != "script"


def look_at(check: Check, path: Path, gpus: Sequence[str], catalog: Catalog) -> list[CheckNote]:
    """What such a check finds in the artifact at `path`."""
    match check.kind:
        case "machine-code":
            return machine_code(check, path, gpus, catalog)
        case "check-gpu":
            return published(check, [path], gpus, catalog)
        case "resources":
            return resources(check, path, gpus)
        case _:
            return [wheel(check, path)]


def machine_code(check: Check, path: Path, gpus: Sequence[str], catalog: Catalog) -> list[CheckNote]:
    """Whether the code objects are for the targets asked for, and no other, and run on each of them."""
    from rocwheel.wheels.choose import targets
    from rocwheel.wheels.devicecode.code_objects import check_targets, code_objects
    from rocwheel.wheels.runs_on import runs_on

    problems = check_targets(path, gpus)
    summary = f"{len(code_objects(path))} code objects, each exactly {', '.join(gpus)}"
    notes = [CheckNote(check.name, not problems, "; ".join(problems) or summary)]
    for gpu in gpus:
        (target,) = targets([gpu], [gpu.partition(":")[0]])
        judged = runs_on(path, target, catalog.overrides)
        bad = [entry for entry in judged if not entry.verdict.runs]
        detail = "; ".join(f"{entry.path}: {entry.verdict}: {entry.reason}" for entry in bad or judged)
        notes.append(CheckNote(f"runs on {gpu}", not bad, detail or "holds no GPU code"))
    return notes


def published(check: Check, paths: Sequence[Path], gpus: Sequence[str], catalog: Catalog) -> list[CheckNote]:
    """Whether wheels that others published have code for each GPU: all that holds code in them runs there,
    and the wheels of device code that the check names ("{target}" is filled in) are among them, with code.

    The wheels are judged together: code of one may lie in kpack archives of another.
    """
    from packaging.utils import canonicalize_name

    from rocwheel.wheels.choose import targets
    from rocwheel.wheels.inspection import inspect
    from rocwheel.wheels.runs_on import runs_together

    by_name = {canonicalize_name(path.name.partition("-")[0]): path for path in paths}
    wheels = [path for path in paths if path.suffix == ".whl"]
    notes = []
    for gpu in gpus:
        (target,) = targets([gpu], [gpu.partition(":")[0]])
        named = [canonicalize_name(argument.replace("{target}", target.name)) for argument in check.arguments]
        missing = [name for name in named if name not in by_name]
        empty = [name for name in named if name in by_name and not inspect(by_name[name], heads=True).totals]
        together = runs_together(wheels, target, catalog.overrides)
        judged = [entry for verdicts in together for entry in verdicts.judged if entry.device_code]
        bad = [f"{entry.path}: {entry.verdict}: {entry.reason}" for entry in judged if not entry.verdict.runs]
        bad += [f"there is no wheel {name}, which has the code for it" for name in missing]
        bad += [f"{by_name[name].name} is there, and holds no GPU code" for name in empty]
        summaries = [f"{entry.path}: {entry.reason}" for entry in judged]
        nothing = [] if summaries or bad else ["none of the wheels holds GPU code"]
        notes.append(
            CheckNote(f"runs on {gpu}", not bad and not nothing, "; ".join(bad or summaries or nothing))
        )
    return notes


def resources(check: Check, path: Path, gpus: Sequence[str]) -> list[CheckNote]:
    """Whether each kernel can be launched on the GPU that it is for, and what the largest take of it."""
    from rocwheel.wheels.audit.resources import resources as used

    notes = [
        CheckNote(
            f"{check.name} on {target_use.target}",
            not target_use.excesses,
            "; ".join(target_use.excesses[:MOST_TOLD]) or _usage(target_use),
        )
        for target_use in used(path)
    ]
    without = {gpu.partition(":")[0] for gpu in gpus} - {note.name.rpartition(" ")[2] for note in notes}
    return [
        *notes,
        *(CheckNote(f"{check.name} on {gpu}", False, "has no kernels") for gpu in sorted(without)),
    ]


def _usage(target_use: TargetUse) -> str:
    if not target_use.known:
        return f"{count(target_use.kernels, 'kernel')}; nothing is known of the limits of {target_use.target}"
    peaks = ", ".join(f"{use.resource} {use.most:,} of {use.limit:,}" for use in target_use.uses)
    return f"{count(target_use.kernels, 'kernel')}, {target_use.spilling:,} spill; most: {peaks}"


def wheel(check: Check, path: Path) -> CheckNote:
    """Whether the wheel is what it says: tag, RECORD, libraries; and nothing secret was left in it."""
    from rocwheel.wheels.lint.judge import judge

    findings = judge(path)
    wrong = [finding for finding in findings if finding.grade == "error"]
    lines = [f"{finding.kind}: {finding.path} {finding.what}" for finding in wrong[:MOST_TOLD]]
    if len(wrong) > MOST_TOLD:
        lines.append(f"{len(wrong) - MOST_TOLD:,} more")
    kinds = Counter(finding.kind for finding in findings)
    lesser = ", ".join(f"{kind} ({times:,})" for kind, times in kinds.items())
    return CheckNote(
        check.name, not wrong, "; ".join(lines) or f"no errors; of less weight: {lesser or 'nothing'}"
    )


@contextmanager
def named(store: Store, output: Output | FilePin) -> Iterator[Path]:
    """A stored artifact, or fetched file, under its own file name. Raises DamagedBlobError."""
    with temporary_folder("verify") as folder:
        path = Path(folder) / output.filename
        path.symlink_to(verified(store, output.sha256))
        yield path
