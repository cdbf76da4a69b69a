"""Finished artifacts, laid out for people: a folder a stack, and a wheel index that pip can use."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from pydantic import ValidationError

from rocbase.errors import InputError
from rocbase.files.atomic import sha256_bytes, sha256_file, write_atomic
from rocbase.folders.links import is_plain_file, through_no_link
from rocbase.model import Frozen, canonical_json
from rocwright import __version__
from rocwright.home import Home
from rocwright.model.steps import Plan, Step
from rocwright.plan.resolve.model import Lock
from rocwright.store.model import Output

if TYPE_CHECKING:
    from rocwright.project import Project
    from rocwright.provenance.sidecars import Laid

import contextlib

from rocwright.store.signing.envelope import LARGEST
from rocwright.store.signing.safe_json import parse_json, read_bounded


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A finished output of a plan: the step that made it, the output as the step made it, and where it was
    laid out.

    `sha256` and `size` (bytes) are of the file there: a wheel has its SBOM in it by then. `beside` are its
    SBOM and its statement; `keyid` is the key that signed that, "" where none did; `lacking` are the checks
    of its recipe that have not passed, for which it is not signed.
    """

    step: Step
    output: Output
    path: Path
    sha256: str
    size: int
    beside: tuple[Path, ...] = ()
    keyid: str = ""
    lacking: tuple[str, ...] = ()


# Raised when what lies in or beside an artifact is written otherwise; all are laid out anew then.
PROOF_SCHEMA = 6


def lay_out(
    project: Project,
    plan: Plan,
    locked: Lock,
    say: Callable[[str], None] = lambda _: None,
    *,
    anew: bool = True,
) -> tuple[Artifact, ...]:
    """Put every artifact of the plan into the output folder, each with its SBOM and its statement.

    Gives them in the plan's order. What is already there and was checked before (same size and time) is left
    alone. A statement is signed once the checks of the recipe have passed: those that run nothing are run
    here, the others by `verify`. Without `anew` only that is done, for what is there.
    Raises InputError where the key to sign with cannot be used, or a folder is a link.
    """
    from rocwright.project import built_outputs
    from rocwright.provenance.checks.passed import Passed

    folder = through_no_link(project.output / project.request.stack, project.output)
    stamps = _Stamps(project.home)
    artifacts = []
    fingerprint = _fingerprint(project, locked)
    outputs = built_outputs(project, plan)
    passed = Passed(
        home=project.home, store=project.store, catalog=project.catalog, lock=locked, outputs=outputs
    )
    try:
        for name in plan.artifacts:
            step = next(step for step in plan.steps if step.name == name)
            record = project.store.record(step.key)
            assert record is not None
            lacking = passed.lacking(step.component, say)
            for output in record.outputs:
                target, mark = folder / output.filename, f"{fingerprint} {step.key} {output.sha256}"
                stamp = stamps.same(target, mark, lacking)
                if stamp is None and not anew:
                    continue
                if stamp is None:
                    # what writes an SBOM takes longer to load than all else where there is nothing to do
                    from rocwright.provenance.sidecars import lay_beside

                    checks = passed.keys(step.component)
                    laid = lay_beside(project, plan, locked, step, output, target, say, checks, lacking)
                    stamp = stamps.note(target, mark, laid, lacking)
                artifacts.append(
                    Artifact(
                        step=step,
                        output=output,
                        path=target,
                        sha256=stamp.sha256,
                        size=stamp.size,
                        beside=tuple(folder / name for name in stamp.seen if name != target.name),
                        keyid=stamp.keyid,
                        lacking=lacking,
                    )
                )
    finally:
        stamps.save()
    wheels = [artifact.path for artifact in artifacts if artifact.path.suffix == ".whl"]
    if wheels and anew:
        write_index(project.output, wheels, say)
    return tuple(artifacts)


def _fingerprint(project: Project, locked: Lock) -> str:
    """What decides what lies in and beside an artifact, beside the artifact itself: the lock, and the key."""
    from rocwright.store.signing.keys import chosen

    key = chosen()
    if isinstance(key, Path):
        stat = key.stat()
        key = f"{key} {stat.st_size} {stat.st_mtime_ns}"
    return sha256_bytes(canonical_json([PROOF_SCHEMA, __version__, locked.digest, key]))


class _Stamp(Frozen):
    """A file that was laid out: what was wanted, what it is, and size and time of it and what lies beside;
    `lacking` are the checks for which it was not signed."""

    wanted: str
    sha256: str
    size: int
    keyid: str
    seen: dict[str, tuple[int, int]]
    lacking: tuple[str, ...] = ()


class _Stamps:
    """Which laid-out file was checked as what; a changed size or time makes it be checked again."""

    def __init__(self, home: Home) -> None:
        self.home, self.path = home, home.laid_out
        self.changed = False
        try:
            self.known: dict[str, object] = dict(json.loads(self.path.read_text()))
        except (OSError, ValueError, TypeError):
            self.known = {}

    def same(self, path: Path, mark: str, lacking: tuple[str, ...]) -> _Stamp | None:
        """What is known of a file that is there as it is wanted, with all that lies beside it.

        Where other checks are lacking than when it was laid out, its statement is written anew.
        """
        try:
            stamp = _Stamp.model_validate(self.known.get(str(path)))
            states = {name: _file_state(path.parent / name) for name in stamp.seen}
        except (ValidationError, OSError):
            return None
        if stamp.wanted != mark or path.name not in states:
            return None
        if not self.home.statement(stamp.sha256).is_file():
            return None
        if states == stamp.seen:
            return stamp if stamp.lacking == lacking else self._signed_anew(path, stamp, lacking)
        keyid = stamp.keyid
        for name in (name for name, state in states.items() if state != stamp.seen[name]):
            if name == path.name and sha256_file(path) == stamp.sha256:
                continue
            # somebody may have signed the statement since, by `attest`
            signed = _signed(path.parent / name, self.home.statement(stamp.sha256))
            if signed is None:
                return None
            keyid = signed
        return self._keep(path, stamp.model_copy(update={"seen": states, "keyid": keyid}))

    def _signed_anew(self, path: Path, stamp: _Stamp, lacking: tuple[str, ...]) -> _Stamp | None:
        from rocwright.provenance.sidecars import kept_statement, write_statement
        from rocwright.store.signing.keys import chosen

        try:
            payload, _ = kept_statement(self.home, stamp.sha256)
        except (OSError, ValueError):
            return None
        written, keyid = write_statement(path, payload, chosen(), lacking)
        states = stamp.seen | {written.name: _file_state(written)}
        return self._keep(path, stamp.model_copy(update={"seen": states, "keyid": keyid, "lacking": lacking}))

    def note(self, path: Path, mark: str, laid: Laid, lacking: tuple[str, ...]) -> _Stamp:
        """Keep what was laid out."""
        states = {file.name: _file_state(file) for file in (path, *laid.beside)}
        stamp = _Stamp(
            wanted=mark, sha256=laid.sha256, size=laid.size, keyid=laid.keyid, seen=states, lacking=lacking
        )
        return self._keep(path, stamp)

    def _keep(self, path: Path, stamp: _Stamp) -> _Stamp:
        self.known[str(path)] = stamp.model_dump(mode="json")
        self.changed = True
        return stamp

    def save(self) -> None:
        if self.changed:
            write_atomic(self.path, json.dumps(self.known, indent=0))


def _signed(statements: Path, statement: Path) -> str | None:
    """The key that the statements name, where they say what is kept; None where they are anything else."""
    from rocwright.store.signing.envelope import read_envelopes

    try:
        (envelope,) = read_envelopes(statements)
    except (InputError, ValueError):
        return None
    if envelope.payload != statement.read_bytes():
        return None
    return next((keyid for keyid, _ in envelope.signatures), "")


def _file_state(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


def write_index(out: Path, wheels: list[Path], say: Callable[[str], None] = lambda _: None) -> None:
    """Add wheels to the package index `out`/simple: `pip install --index-url file://...`."""
    from rocwheel.wheels.index.write import write

    folder = through_no_link(out / "simple", out)
    for wheel in wheels:
        project = through_no_link(folder / canonicalize_name(wheel.name.split("-")[0]), folder)
        project.mkdir(parents=True, exist_ok=True)
        link = project / wheel.name
        if not (is_plain_file(link, folder) and link.samefile(wheel)):
            link.unlink(missing_ok=True)
            os.link(wheel, link)
    look, _ = write(folder, out, by_gpu=False, ours=True)
    for problem in look.problems:
        say(f"not in the wheel index: {problem.path}: {problem.what}")


def as_built(home: Home, sha256: str) -> str:
    """The sha256 of the artifact as its step made it; the file's own where nothing was put into it, or this
    machine did not lay it out."""
    with contextlib.suppress(InputError):
        statement = parse_json(read_bounded(home.statement(sha256), LARGEST, "statement"), "statement")
        match statement:
            case {"predicate": {"buildDefinition": {"internalParameters": {"asBuilt": str(digest)}}}}:
                return digest
    return sha256
