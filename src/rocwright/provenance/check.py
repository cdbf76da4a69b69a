"""Whether a statement is of a file and signed by a key: offline, by the file and the key alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocbase.errors import CheckError, InputError
from rocbase.files.atomic import sha256_file
from rocwright.provenance import statement
from rocwright.signing import envelope
from rocwright.signing.envelope import Signed
from rocwright.signing.safe_json import parse_json

if TYPE_CHECKING:
    from securesystemslib.signer import SSlibKey

SAYS_NOT = (
    "that the sources are harmless: it names them, but nobody reviewed them",
    "that another build gives the same bytes: `rocwright reproduce` tries that",
    "that it runs on a GPU: `rocwright verify` tries that",
    "whose key it is: you have to know that from elsewhere",
    "when it was signed: its times are claims of the builder, and a signature does not expire",
)
"""What a valid signature does not prove."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attestation:
    """What a statement tells, in a person's words."""

    subjects: tuple[statement.Thing, ...]
    predicate_type: str
    builder: str
    version: str
    request: Mapping[str, Any]
    component: str
    started: str
    finished: str
    invocation: str
    as_built: str
    """The sha256 of the file as its step made it; "" where it is not told."""
    sources: tuple[tuple[str, str], ...]
    packages: int
    steps: int
    byproducts: tuple[statement.Thing, ...]
    caches: tuple[tuple[str, str, str, tuple[str, ...]], ...] = ()
    """Of each step that ran commands: whether it had a compiler cache, its trust domain, and the ids of the
    keys whose owners compiled a part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A file whose statement is right: the key's id, the file's sha256, and what is told of it."""

    path: Path
    keyid: str
    sha256: str
    told: Attestation


def statements_of(path: Path) -> Path:
    """Where the statements of a file lie: beside it. Raises InputError where they do not."""
    beside = path.with_name(path.name + envelope.SUFFIX)
    if not beside.is_file():
        raise InputError(
            f"there is no statement next to {path}",
            cause=f"{beside.name} does not exist",
            next_step=f"rocwright attest {path} writes it, on the machine that built the file",
        )
    return beside


def verify(path: Path, statements: Path, keys: Sequence[SSlibKey]) -> Verified:
    """Check signature, kind and subject, in this order.

    Raises CheckError where one of them is wrong, InputError for what is no statement at all.
    """
    found = envelope.read_envelopes(statements)
    signed = [(one, keyid) for one in found if (keyid := envelope.signed_by(one, keys))]
    if not signed:
        raise _unsigned(statements, found, keys)
    of_build = [(told(read_statement(one)), keyid) for one, keyid in signed if _is_statement(one)]
    of_build = [(one, keyid) for one, keyid in of_build if one.predicate_type == statement.PREDICATE]
    if not of_build:
        raise CheckError(
            f"{statements.name} is signed, but does not say how a file was built",
            cause=f"it has {', '.join(sorted({_kind(one) for one, _ in signed}))}; "
            f"wanted is {envelope.PAYLOAD_TYPE} with {statement.PREDICATE}",
            next_step="get the statement of the build from whoever built the file",
            subject=str(path),
        )
    digest = sha256_file(path)
    for one, keyid in of_build:
        if digest in {subject.sha256 for subject in one.subjects}:
            return Verified(path=path, keyid=keyid, sha256=digest, told=one)
    raise _another_file(path, digest, [one for one, _ in of_build])


def read_statement(one: Signed) -> dict[str, Any]:
    """The statement in an envelope, unchecked. Raises InputError where it is none."""
    data = parse_json(one.payload, "in-toto statement")
    if not isinstance(data, dict) or data.get("_type") != statement.STATEMENT:
        raise InputError(
            "the envelope does not hold an in-toto statement of version 1",
            cause=f"its _type is {str(data.get('_type') if isinstance(data, dict) else data)[:120]!r}",
            next_step="get the statement of the build from whoever built the file",
        )
    return data


def told(data: Mapping[str, Any]) -> Attestation:
    """What a statement tells; whatever is not there, or is something else than it should be, is empty."""
    predicate = _object(data, "predicate")
    definition, details = _object(predicate, "buildDefinition"), _object(predicate, "runDetails")
    asked, how = _object(definition, "externalParameters"), _object(definition, "internalParameters")
    builder, metadata = _object(details, "builder"), _object(details, "metadata")
    depends = [one for one in _list(definition, "resolvedDependencies") if isinstance(one, dict)]
    sources = [one for one in depends if _object(one, "annotations").get("role") == "source"]
    return Attestation(
        subjects=tuple(statement.subjects(data)),
        predicate_type=_text(data, "predicateType"),
        builder=_text(builder, "id"),
        version=_text(_object(builder, "version"), "rocwright"),
        request=_object(asked, "request"),
        component=_text(asked, "component"),
        started=_text(metadata, "startedOn"),
        finished=_text(metadata, "finishedOn"),
        invocation=_text(metadata, "invocationId"),
        as_built=_text(how, "asBuilt"),
        sources=tuple((_text(one, "uri"), _text(_object(one, "digest"), "sha256")) for one in sources),
        packages=len(depends) - len(sources),
        steps=len(_object(how, "keys")),
        byproducts=tuple(statement.subjects({"subject": _list(details, "byproducts")})),
        caches=tuple(
            (name, _text(one, "state"), _text(one, "domain"), tuple(map(str, _list(one, "others"))))
            for name, one in _object(how, "compilerCache").items()
            if isinstance(one, dict)
        ),
    )


def _is_statement(one: Signed) -> bool:
    return one.payload_type == envelope.PAYLOAD_TYPE


def _kind(one: Signed) -> str:
    if not _is_statement(one):
        return one.payload_type[:120]
    return str(read_statement(one).get("predicateType"))[:120]


def _unsigned(statements: Path, found: Sequence[Signed], keys: Sequence[SSlibKey]) -> CheckError:
    wanted = ", ".join(key.keyid[:16] for key in keys)
    named = sorted({keyid for one in found for keyid, _ in one.signatures})
    if not any(one.signatures for one in found):
        if why := next((one.unsigned for one in found if one.unsigned), ""):
            return CheckError(
                f"{statements.name} is not signed: {why}",
                cause="a statement is signed once its artifact has passed the checks of its recipe",
                next_step="run rocwright verify on the machine that built it: it runs the checks and signs",
            )
        return CheckError(
            f"{statements.name} is not signed",
            cause="there was no key when it was made, so anybody could have written it",
            next_step="on the machine that built it: rocwright attest key makes a key, rocwright "
            "attest FILE signs",
        )
    if set(named) & {key.keyid for key in keys}:
        return CheckError(
            f"{statements.name}: the signature is invalid",
            cause=f"it does not verify with the key {wanted} that it names: the statement or the "
            "signature was changed",
            next_step="do not use the file; get the statement again from whoever built it",
        )
    return CheckError(
        f"{statements.name} is signed with another key",
        cause=f"it names {', '.join(one[:16] for one in named)}; you trust {wanted}",
        next_step="if you know and trust the builder's public key, name it: --key FILE.pub",
    )


def _another_file(path: Path, digest: str, told: Sequence[Attestation]) -> CheckError:
    subjects = [subject for one in told for subject in one.subjects]
    same_name = [one for one in subjects if one.name == path.name]
    if digest in {one.as_built for one in told}:
        what = f"{path.name} is the file as built, and the statement is of the file as laid out"
        cause = f"its sha256 as built is {digest}; the file in rocwright-out has its SBOM inside"
    elif same_name:
        what = f"{path.name} is not the file that was signed: it was changed or rebuilt"
        cause = f"its sha256 is {digest}; the signed one is {same_name[0].sha256}"
    else:
        what = f"the statement is for another file than {path.name}"
        cause = f"it is for {', '.join(one.name for one in subjects[:4])[:300] or 'nothing'}"
    return CheckError(
        what, cause=cause, next_step="get the file and its statement again, together", subject=str(path)
    )


def _object(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = data.get(name)
    return found if isinstance(found, dict) else {}


def _list(data: Mapping[str, Any], name: str) -> list[Any]:
    found = data.get(name)
    return found if isinstance(found, list) else []


def _text(data: Mapping[str, Any], name: str) -> str:
    found = data.get(name)
    return found if isinstance(found, str) else ""
