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
from rocwright.store.model import Output, Store

if TYPE_CHECKING:
    from rocwheel.wheels.audit.resources import TargetUse

MOST_TOLD = 5
"""Of kernels that ask for too much, how many a finding names."""


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
    told = f"{len(code_objects(path))} code objects, each exactly {', '.join(gpus)}"
    found = [CheckNote(check.name, not problems, "; ".join(problems) or told)]
    for gpu in gpus:
        (target,) = targets([gpu], [gpu.partition(":")[0]])
        judged = runs_on(path, target, catalog.overrides)
        bad = [one for one in judged if not one.verdict.runs]
        detail = "; ".join(f"{one.path}: {one.verdict}: {one.reason}" for one in bad or judged)
        found.append(CheckNote(f"runs on {gpu}", not bad, detail or "holds no GPU code"))
    return found


def published(check: Check, paths: Sequence[Path], gpus: Sequence[str], catalog: Catalog) -> list[CheckNote]:
    """Whether wheels that others published have code for each GPU: all that holds code in them runs there,
    and the wheels of device code that the check names ("{target}" is filled in) are among them, with code.

    The wheels are judged together: code of one may lie in kpack archives of another.
    """
    from packaging.utils import canonicalize_name

    from rocwheel.wheels.choose import targets
    from rocwheel.wheels.inspection import inspect
    from rocwheel.wheels.runs_on import runs_together

    there = {canonicalize_name(path.name.partition("-")[0]): path for path in paths}
    wheels = [path for path in paths if path.suffix == ".whl"]
    found = []
    for gpu in gpus:
        (target,) = targets([gpu], [gpu.partition(":")[0]])
        named = [canonicalize_name(one.replace("{target}", target.name)) for one in check.arguments]
        missing = [name for name in named if name not in there]
        empty = [name for name in named if name in there and not inspect(there[name], heads=True).totals]
        together = runs_together(wheels, target, catalog.overrides)
        judged = [one for each in together for one in each.judged if one.device_code]
        bad = [f"{one.path}: {one.verdict}: {one.reason}" for one in judged if not one.verdict.runs]
        bad += [f"there is no wheel {name}, which has the code for it" for name in missing]
        bad += [f"{there[name].name} is there, and holds no GPU code" for name in empty]
        told = [f"{one.path}: {one.reason}" for one in judged]
        nothing = [] if told or bad else ["none of the wheels holds GPU code"]
        found.append(CheckNote(f"runs on {gpu}", not bad and not nothing, "; ".join(bad or told or nothing)))
    return found


def resources(check: Check, path: Path, gpus: Sequence[str]) -> list[CheckNote]:
    """Whether each kernel can be launched on the GPU that it is for, and what the largest take of it."""
    from rocwheel.wheels.audit.resources import resources as used

    found = [
        CheckNote(
            f"{check.name} on {one.target}",
            not one.excesses,
            "; ".join(one.excesses[:MOST_TOLD]) or _taken(one),
        )
        for one in used(path)
    ]
    without = {gpu.partition(":")[0] for gpu in gpus} - {one.name.rpartition(" ")[2] for one in found}
    return [
        *found,
        *(CheckNote(f"{check.name} on {gpu}", False, "has no kernels") for gpu in sorted(without)),
    ]


def _taken(one: TargetUse) -> str:
    if not one.known:
        return f"{count(one.kernels, 'kernel')}; nothing is known of the limits of {one.target}"
    most = ", ".join(f"{use.resource} {use.most:,} of {use.limit:,}" for use in one.uses)
    return f"{count(one.kernels, 'kernel')}, {one.spilling:,} spill; most: {most}"


def wheel(check: Check, path: Path) -> CheckNote:
    """Whether the wheel is what it says: tag, RECORD, libraries; and nothing secret was left in it."""
    from rocwheel.wheels.lint.judge import judge

    found = judge(path)
    wrong = [one for one in found if one.grade == "error"]
    told = [f"{one.kind}: {one.path} {one.what}" for one in wrong[:MOST_TOLD]]
    if len(wrong) > MOST_TOLD:
        told.append(f"{len(wrong) - MOST_TOLD:,} more")
    kinds = Counter(one.kind for one in found)
    lesser = ", ".join(f"{kind} ({times:,})" for kind, times in kinds.items())
    return CheckNote(
        check.name, not wrong, "; ".join(told) or f"no errors; of less weight: {lesser or 'nothing'}"
    )


@contextmanager
def named(store: Store, output: Output | FilePin) -> Iterator[Path]:
    """A stored artifact, or fetched file, under its own file name. Raises DamagedBlobError."""
    with temporary_folder("verify") as folder:
        path = Path(folder) / output.filename
        path.symlink_to(store.verified(output.sha256))
        yield path
