"""A wheel that somebody else built, against what its lock gives here. Nothing of that wheel is run."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from packaging.version import InvalidVersion, Version

from rocbase.errors import InputError
from rocbase.files.atomic import sha256_file
from rocbase.folders.temporary import temporary_folder
from rocbase.model import Frozen
from rocwheel.wheels.archive import open_wheel
from rocwheel.wheels.diff.model import FileDifference, WheelDifference
from rocwheel.wheels.diff.text import lines, summary
from rocwheel.wheels.diff.wheels import diff, versionless
from rocwheel.wheels.metadata import WheelName, parse_name
from rocwheel.wheels.write import WheelFile
from rocwright.model.steps import Plan, RunAction, Step
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.model import Lock
from rocwright.project import Project
from rocwright.provenance.embed import NAME, sboms_in, with_sbom
from rocwright.store.model import Store, verified
from rocwright.verify.reproduce.reasons import LARGEST, reasons, zip_reasons

# Members of a wheel that are told, and the lines of one.
FILE_LIMIT = 200


class Member(Frozen):
    """A file in the wheel that differs: its path, where names of folders are without their version, what
    differs, and why."""

    path: str
    says: tuple[str, ...]
    why: tuple[str, ...] = ()


class FromLock(Frozen):
    """A wheel of somebody else (`theirs`) and what the lock gives here, both sha256; `as_built` is that of
    ours as its step made it, `ours` that of what was compared: with their SBOM in it, where `sbom` says that
    theirs has one. `origin` is the store that ours is from, "" where it was built here."""

    filename: str
    component: str
    version: str
    key: str
    theirs: str
    ours: str
    as_built: str
    sbom: str = ""
    built: str = ""
    origin: str = ""
    ran: bool = False
    summary: str = ""
    written: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()
    members: tuple[Member, ...] = ()
    more: int = 0

    @property
    def same(self) -> bool:
        return self.theirs == self.ours


def reproduce_wheel(
    wheel: Path, project: Project, locked: Lock, build: Callable[[Step], bool], say: Callable[[str], None]
) -> FromLock:
    """Have the step built that gives a wheel of this name, and tell what differs: theirs first, ours second.

    `build` makes the step in the project's store and gives whether it had to run.

    Raises InputError where the lock has no such component, or another version of it, and where `wheel` is no
    wheel; CheckError where it is damaged or made to deceive; what building raises.
    """
    name = parse_name(wheel.name)
    step, output = step_of(make_plan(locked, project.catalog), locked, wheel.name, name)
    # what cannot be read is refused before hours are spent
    theirs = {path: content for path, content in sboms_in(wheel).items() if path.endswith(f"/{NAME}")}
    ran = build(step)
    say("comparing")
    return _compared(wheel, step, output, locked, project.store, theirs, ran=ran)


def step_of(plan: Plan, locked: Lock, filename: str, name: WheelName) -> tuple[Step, str]:
    """The step of a plan that makes a wheel of this name and version, and the name of the output that it is.
    Raises InputError."""
    products = [
        (step, output)
        for step in plan.steps
        if step.name in plan.artifacts and isinstance(step.action, RunAction)
        for output in step.action.outputs
    ]
    product = next(
        ((step, output) for step, output in products if fnmatchcase(filename, output.pattern)), None
    )
    if product is None:
        raise InputError(
            f"the lock has no component that gives a wheel {name.name}",
            cause=f"its components give {', '.join(output.pattern for _, output in products) or 'no files'}",
            next_step="name the lock that this wheel was built from",
        )
    step, output = product
    version = _version(locked, step)
    if not _same_version(name.version, version):
        raise InputError(
            f"the lock has {step.component} {version}, and the wheel is {name.version}",
            cause="it was built from another lock than this one",
            next_step="name the lock that this wheel was built from",
        )
    return step, output.name


def _version(locked: Lock, step: Step) -> str:
    return next(component.version for component in locked.components if component.name == step.component)


def _same_version(wheels: str, locked: str) -> bool:
    """Whether a wheel's version is that of the lock, whatever a build added behind "+"."""
    try:
        return Version(wheels).public == Version(locked).public
    except InvalidVersion:
        # a commit or a tag, of which the wheel's version says nothing
        return True


def _compared(
    wheel: Path,
    step: Step,
    name: str,
    locked: Lock,
    store: Store,
    sboms: Mapping[str, bytes],
    *,
    ran: bool,
) -> FromLock:
    record = store.record(step.key)
    assert record is not None
    output = record.output(name)
    with temporary_folder("reproduce") as scratch:
        ours = Path(scratch, output.filename)
        stored = verified(store, output.sha256)
        if sboms:
            link = Path(scratch, "stored", output.filename)
            link.parent.mkdir()
            link.symlink_to(stored)
            with_sbom(link, next(iter(sboms.values())), ours)
        else:
            ours.symlink_to(stored)
        difference = diff(wheel, ours)
        return FromLock(
            filename=wheel.name,
            component=step.component,
            version=_version(locked, step),
            key=step.key,
            theirs=sha256_file(wheel),
            ours=sha256_file(ours),
            as_built=output.sha256,
            sbom=next(iter(sboms), ""),
            built=record.started,
            origin=str(record.origin or ""),
            ran=ran,
            summary=summary(difference),
            written=() if difference.same_bytes else tuple(_written(wheel, ours)),
            metadata=tuple(
                islice(lines(WheelDifference(same_bytes=False, metadata=difference.metadata)), FILE_LIMIT)
            ),
            members=tuple(_members(difference, wheel, ours)),
            more=max(0, len(difference.files) + len(difference.moved) - FILE_LIMIT),
        )


def _written(wheel: Path, ours: Path) -> Iterator[str]:
    with zipfile.ZipFile(wheel) as their_zip, zipfile.ZipFile(ours) as our_zip:
        yield from zip_reasons(their_zip.infolist(), our_zip.infolist())


def _members(difference: WheelDifference, wheel: Path, ours: Path) -> Iterator[Member]:
    for change in difference.moved[:FILE_LIMIT]:
        yield Member(
            path=change.before, says=(f"moved to {change.after}",), why=("path: its place in the wheel",)
        )
    with open_wheel(wheel) as their_wheel, open_wheel(ours) as our_wheel:
        their_files, our_files = (
            {versionless(file.path): file for file in files} for files in (their_wheel, our_wheel)
        )
        for file in difference.files[: max(0, FILE_LIMIT - len(difference.moved))]:
            details = tuple(islice(lines(WheelDifference(same_bytes=False, files=(file,))), FILE_LIMIT))
            yield Member(path=file.path, says=details, why=tuple(_reasons(file, their_files, our_files)))


def _reasons(
    file: FileDifference, their_files: Mapping[str, WheelFile], our_files: Mapping[str, WheelFile]
) -> Iterator[str]:
    if file.before is None or file.after is None:
        yield f"only in {'ours' if file.before is None else 'theirs'}"
    elif max(file.before, file.after) > LARGEST:
        yield "content: the file is too large to be searched for times and paths"
    else:
        their_bytes, our_bytes = (b"".join(side[file.path].pieces()) for side in (their_files, our_files))
        yield from (
            reasons(file.path, their_bytes, our_bytes)
            if their_bytes != our_bytes
            else ("mode: whether it may be run",)
        )
