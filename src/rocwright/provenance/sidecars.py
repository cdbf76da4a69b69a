"""An artifact as it is laid out: its SBOM inside where it is a wheel, SBOM and statement beside it."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rocbase.errors import CheckError, ExplainedError, InputError
from rocbase.files.atomic import sha256_bytes, sha256_file, write_atomic
from rocbase.model import canonical_json, opened, sealed
from rocwright.model.steps import FetchAction, ImageAction, Plan, RunAction, Step
from rocwright.plan.resolve.model import Lock
from rocwright.provenance.bundled import Contents, contents
from rocwright.provenance.checks.passed import has_passed
from rocwright.provenance.embed import with_sbom
from rocwright.provenance.materials import BuildProvenance, made_from
from rocwright.provenance.sbom import SUFFIX, SbomSubject, sbom
from rocwright.provenance.statement import Circumstances, Thing, statement
from rocwright.store.model import Output, Record, verified
from rocwright.store.signing import envelope, keys

if TYPE_CHECKING:
    from rocwright.home import Home
    from rocwright.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """A file laid out: its sha256 and size in bytes, which are not the artifact's where an SBOM was put into
    it; what lies beside it; the id of the key that signed its statement, "" where none did.
    """

    sha256: str
    size: int
    beside: tuple[Path, ...]
    keyid: str


def lay_beside(
    project: Project,
    plan: Plan,
    lock: Lock,
    step: Step,
    output: Output,
    target: Path,
    say: Callable[[str], None],
    checks: Mapping[str, str],
    lacking: Sequence[str],
) -> Laid:
    """Put an artifact of a step, its SBOM and its statement at `target`.

    The statement is signed only where nothing is `lacking` of the `checks` of its recipe, keys by names.
    Raises DamagedBlobError, InputError for a key that cannot be used; the artifact is there by then.
    """
    provenance = made_from(step, plan, lock)
    document = lay_file(project, provenance, lock, output, target, say)
    bill = target.with_name(target.name + SUFFIX)
    write_atomic(bill, document)
    file = Thing(name=target.name, sha256=sha256_file(target))
    record = project.store.record(step.key)
    assert record is not None
    byproducts = [_as_built(output, file), Thing(name=bill.name, sha256=sha256_bytes(document))]
    how = _circumstances(project, provenance, record, output, byproducts)
    payload = canonical_json(statement(provenance, lock, file, how))
    keep_statement(project.home, file.sha256, payload, checks)
    statements, keyid = write_statement(target, payload, keys.chosen(), lacking)
    return Laid(sha256=file.sha256, size=target.stat().st_size, beside=(bill, statements), keyid=keyid)


def lay_file(
    project: Project,
    provenance: BuildProvenance,
    lock: Lock,
    output: Output,
    target: Path,
    say: Callable[[str], None],
) -> bytes:
    """Put an artifact alone at `target`, as `lay_beside` does; gives its SBOM. Raises DamagedBlobError."""
    stored = verified(project.store, output.sha256)
    subject = SbomSubject(output=output, contents=_contents(project, provenance, stored))
    document = sbom(provenance, lock, project.catalog, subject)
    _put(stored, provenance.step, document, target, say)
    return document


def write_statement(
    artifact: Path, payload: bytes, key: Path | str | None, lacking: Sequence[str] = ()
) -> tuple[Path, str]:
    """Write an artifact's statement beside it; gives its path and key id.

    It is signed where there is a key, and no check is lacking.
    """
    if lacking:
        signed = envelope.Signed(
            payload=payload,
            payload_type=envelope.PAYLOAD_TYPE,
            unsigned=f"checks have not passed: {', '.join(lacking)}",
        )
    else:
        signed = envelope.sign(payload, None if key is None else keys.signer_of(key))
    path = artifact.with_name(artifact.name + envelope.SUFFIX)
    write_atomic(path, envelope.as_line(signed))
    return path, signed.signatures[0][0] if signed.signatures else ""


def keep_statement(home: Home, sha256: str, payload: bytes, checks: Mapping[str, str]) -> None:
    """Keep what is said of a laid-out file, and which checks its signature waits for: keys by names."""
    write_atomic(home.statement(sha256), payload)
    mark = {"statement": sha256_bytes(payload), "checks": dict(checks)}
    write_atomic(home.statement_mark(sha256), canonical_json(sealed(mark)))


def kept_statement(home: Home, sha256: str) -> tuple[bytes, dict[str, str]]:
    """What is kept of a laid-out file, whole. Raises ValueError or OSError where it is not."""
    payload = home.statement(sha256).read_bytes()
    mark = opened(json.loads(home.statement_mark(sha256).read_bytes()))
    if mark.get("statement") != sha256_bytes(payload) or not isinstance(mark.get("checks"), dict):
        raise ValueError("the statement is not the one that was kept")
    return payload, mark["checks"]


def attest(artifact: Path, home: Home, key: Path | str | None) -> tuple[Path, str]:
    """Write the statement of a file that this machine built, signed where there is a key.

    Raises InputError where it knows nothing of the file: nobody signs what another said; CheckError where
    checks of its recipe have not passed.
    """
    if not artifact.is_file():
        raise InputError(
            f"there is no file {artifact}",
            cause="the path is wrong, or the file was removed",
            next_step="check the path; rocwright build prints where the artifacts are",
        )
    try:
        payload, checks = kept_statement(home, sha256_file(artifact))
    except FileNotFoundError as error:
        raise InputError(
            f"this machine has no record of how {artifact.name} was built",
            cause="it was built elsewhere, or changed since; only a recorded build can be attested",
            next_step="run rocwright attest on the machine that built it, or rocwright build to "
            "write the artifact again",
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(
            f"the record of how {artifact.name} was built is damaged",
            cause=str(error)[:200],
            next_step="rocwright build writes it again",
        ) from error
    lacking = [name for name, check in checks.items() if not has_passed(home, check)]
    if lacking:
        raise CheckError(
            f"{artifact.name} is not signed: checks have not passed",
            cause=f"checks that have not passed: {', '.join(lacking)}",
            next_step="rocwright verify runs the checks and signs what passes",
        )
    return write_statement(artifact, payload, key)


def _contents(project: Project, provenance: BuildProvenance, stored: Path) -> Contents:
    """What lies in an artifact; in an image, what lies on top of its packages.

    Of what is handed on as published nothing is told: it was not made here, and may be a whole image.
    """
    if isinstance(provenance.step.action, FetchAction):
        return Contents()
    if isinstance(provenance.step.action, ImageAction):
        item = next(step_input for step_input in provenance.step.inputs if step_input.name == "archive")
        record = project.store.record(item.key)
        if record is None:
            return Contents()
        stored = verified(project.store, record.output(item.output).sha256)
    return _readable(stored)


def _readable(stored: Path) -> Contents:
    try:
        return contents(stored)
    except ExplainedError:
        # what is wrong with it `verify` tells; the rest of the bill is true all the same
        return Contents()


def _put(stored: Path, step: Step, document: bytes, target: Path, say: Callable[[str], None]) -> None:
    """The artifact at `target`: a wheel that was built here with its SBOM in it, anything else as it is."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix == ".whl" and isinstance(step.action, RunAction):
        try:
            with_sbom(stored, document, target)
            return
        except (InputError, CheckError) as error:
            say(f"{target.name}: no SBOM was embedded: {error.message}")
    with tempfile.TemporaryDirectory(prefix=f".{target.name[:40]}.", dir=target.parent) as folder:
        copy = Path(folder) / "file"
        shutil.copyfile(stored, copy)
        copy.replace(target)


def _as_built(output: Output, file: Thing) -> Thing:
    suffix = "" if output.sha256 == file.sha256 else " as built, without its SBOM"
    return Thing(name=f"{output.filename}{suffix}", sha256=output.sha256)


def _circumstances(
    project: Project, provenance: BuildProvenance, record: Record, output: Output, byproducts: list[Thing]
) -> Circumstances:
    invocation, logs = "", []
    with contextlib.suppress(ExplainedError):
        # where the records cannot be read, the statement says less
        for run_id, step, path in _logs(project, provenance.steps):
            if step is provenance.step:
                invocation = run_id
            logs.append(Thing(name=path.name, sha256=sha256_file(path)))
    things = (*byproducts, *logs)
    ran = {
        step.name: project.store.record(step.key)
        for step in provenance.steps
        if isinstance(step.action, RunAction)
    }
    return Circumstances(
        record=record,
        as_built=output.sha256,
        invocation=invocation,
        byproducts=things,
        caches={name: step_record.cache if step_record else None for name, step_record in ran.items()},
        others={name: step_record.compiled_by_others() for name, step_record in ran.items() if step_record},
    )


def _logs(project: Project, steps: Iterable[Step]) -> Iterator[tuple[str, Step, Path]]:
    """The newest run on this machine that built a step, and its log."""
    from rocwright.records.opening import read_records
    from rocwright.records.plain import open_plain

    with contextlib.closing(open_plain(project.home) or read_records(project.home)) as records:
        for step in steps:
            for run_id, log in records.built(step.name, step.key):
                path = project.home.runs / run_id / log
                if log and path.is_file():
                    yield run_id, step, path
                    break
