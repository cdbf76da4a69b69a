"""Whether a statement is of a file and signed by a key: offline, by the file and the key alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocbase.errors import CheckError, InputError
from rocbase.files.atomic import sha256_file
from rocwright.provenance import statement
from rocwright.store.signing import envelope
from rocwright.store.signing.envelope import Signed
from rocwright.store.signing.safe_json import parse_json

if TYPE_CHECKING:
    from securesystemslib.signer import SSlibKey

# What a valid signature does not prove.
SAYS_NOT = (
    "that the sources are harmless: it names them, but nobody reviewed them",
    "that another build gives the same bytes: `rocwright reproduce` tries that",
    "that it runs on a GPU: `rocwright verify` tries that",
    "whose key it is: you have to know that from elsewhere",
    "when it was signed: its times are claims of the builder, and a signature does not expire",
)


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
    statements = path.with_name(path.name + envelope.SUFFIX)
    if not statements.is_file():
        raise InputError(
            f"there is no statement next to {path}",
            cause=f"{statements.name} does not exist",
            next_step=f"rocwright attest {path} writes it, on the machine that built the file",
        )
    return statements


def verify(path: Path, statements: Path, keys: Sequence[SSlibKey]) -> Verified:
    """Check signature, kind and subject, in this order.

    Raises CheckError where one of them is wrong, InputError for what is no statement at all.
    """
    envelopes = envelope.read_envelopes(statements)
    signed = [(dsse, keyid) for dsse in envelopes if (keyid := envelope.signed_by(dsse, keys))]
    if not signed:
        raise _unsigned(statements, envelopes, keys)
    of_build = [(told(read_statement(dsse)), keyid) for dsse, keyid in signed if _is_statement(dsse)]
    of_build = [
        (attestation, keyid)
        for attestation, keyid in of_build
        if attestation.predicate_type == statement.PREDICATE
    ]
    if not of_build:
        raise CheckError(
            f"{statements.name} is signed, but does not say how a file was built",
            cause=f"it has {', '.join(sorted({_kind(dsse) for dsse, _ in signed}))}; "
            f"wanted is {envelope.PAYLOAD_TYPE} with {statement.PREDICATE}",
            next_step="get the statement of the build from whoever built the file",
            subject=str(path),
        )
    digest = sha256_file(path)
    for attestation, keyid in of_build:
        if digest in {subject.sha256 for subject in attestation.subjects}:
            return Verified(path=path, keyid=keyid, sha256=digest, told=attestation)
    raise _another_file(path, digest, [attestation for attestation, _ in of_build])


def read_statement(dsse: Signed) -> dict[str, Any]:
    """The statement in an envelope, unchecked. Raises InputError where it is none."""
    data = parse_json(dsse.payload, "in-toto statement")
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
    external, how = _object(definition, "externalParameters"), _object(definition, "internalParameters")
    builder, metadata = _object(details, "builder"), _object(details, "metadata")
    depends = [
        dependency for dependency in _list(definition, "resolvedDependencies") if isinstance(dependency, dict)
    ]
    sources = [
        dependency for dependency in depends if _object(dependency, "annotations").get("role") == "source"
    ]
    return Attestation(
        subjects=tuple(statement.subjects(data)),
        predicate_type=_text(data, "predicateType"),
        builder=_text(builder, "id"),
        version=_text(_object(builder, "version"), "rocwright"),
        request=_object(external, "request"),
        component=_text(external, "component"),
        started=_text(metadata, "startedOn"),
        finished=_text(metadata, "finishedOn"),
        invocation=_text(metadata, "invocationId"),
        as_built=_text(how, "asBuilt"),
        sources=tuple(
            (_text(source, "uri"), _text(_object(source, "digest"), "sha256")) for source in sources
        ),
        packages=len(depends) - len(sources),
        steps=len(_object(how, "keys")),
        byproducts=tuple(statement.subjects({"subject": _list(details, "byproducts")})),
        caches=tuple(
            (name, _text(cache, "state"), _text(cache, "domain"), tuple(map(str, _list(cache, "others"))))
            for name, cache in _object(how, "compilerCache").items()
            if isinstance(cache, dict)
        ),
    )


def _is_statement(dsse: Signed) -> bool:
    return dsse.payload_type == envelope.PAYLOAD_TYPE


def _kind(dsse: Signed) -> str:
    if not _is_statement(dsse):
        return dsse.payload_type[:120]
    return str(read_statement(dsse).get("predicateType"))[:120]


def _unsigned(statements: Path, envelopes: Sequence[Signed], keys: Sequence[SSlibKey]) -> CheckError:
    trusted = ", ".join(key.keyid[:16] for key in keys)
    named = sorted({keyid for dsse in envelopes for keyid, _ in dsse.signatures})
    if not any(dsse.signatures for dsse in envelopes):
        if reason := next((dsse.unsigned for dsse in envelopes if dsse.unsigned), ""):
            return CheckError(
                f"{statements.name} is not signed: {reason}",
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
            cause=f"it does not verify with the key {trusted} that it names: the statement or the "
            "signature was changed",
            next_step="do not use the file; get the statement again from whoever built it",
        )
    return CheckError(
        f"{statements.name} is signed with another key",
        cause=f"it names {', '.join(keyid[:16] for keyid in named)}; you trust {trusted}",
        next_step="if you know and trust the builder's public key, name it: --key FILE.pub",
    )


def _another_file(path: Path, digest: str, attestations: Sequence[Attestation]) -> CheckError:
    subjects = [subject for attestation in attestations for subject in attestation.subjects]
    same_name = [subject for subject in subjects if subject.name == path.name]
    if digest in {attestation.as_built for attestation in attestations}:
        message = f"{path.name} is the file as built, and the statement is of the file as laid out"
        cause = f"its sha256 as built is {digest}; the file in rocwright-out has its SBOM inside"
    elif same_name:
        message = f"{path.name} is not the file that was signed: it was changed or rebuilt"
        cause = f"its sha256 is {digest}; the signed one is {same_name[0].sha256}"
    else:
        message = f"the statement is for another file than {path.name}"
        cause = f"it is for {', '.join(subject.name for subject in subjects[:4])[:300] or 'nothing'}"
    return CheckError(
        message, cause=cause, next_step="get the file and its statement again, together", subject=str(path)
    )


def _object(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    field = data.get(name)
    return field if isinstance(field, dict) else {}


def _list(data: Mapping[str, Any], name: str) -> list[Any]:
    field = data.get(name)
    return field if isinstance(field, list) else []


def _text(data: Mapping[str, Any], name: str) -> str:
    field = data.get(name)
    return field if isinstance(field, str) else ""
