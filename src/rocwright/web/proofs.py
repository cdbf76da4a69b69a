"""What an artifact of the store was laid out as: its SBOM, its statement, and whether that is right."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rocbase.errors import ExplainedError
from rocbase.folders.links import is_plain_file
from rocwright.provenance import sbom_of
from rocwright.provenance.check import Attestation, Verified, read_statement, told, verify
from rocwright.provenance.documents import Document
from rocwright.records.model import Artifact
from rocwright.store.signing import envelope
from rocwright.store.signing.keys import own_public_key, public_key

# The folder of a project in which artifacts are laid out: those of its stacks, or below it of its rows.
OUTPUT = "rocwright-out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """An artifact as it was laid out: the file, what its statement tells (unchecked) and which keys it names,
    and the SBOM that lies beside it, None where that is not there or cannot be read."""

    file: Path
    told: Attestation
    keys: tuple[str, ...]
    sbom: Document | None

    @property
    def sha256(self) -> str:
        """That of the file, as the statement has it."""
        return self.told.subjects[0].sha256

    @property
    def statements(self) -> Path:
        return self.file.with_name(self.file.name + envelope.SUFFIX)

    @property
    def bill(self) -> Path:
        return self.file.with_name(self.file.name + sbom_of.SIDECAR_SUFFIX)


def laid_out(folder: Path, artifact: Artifact) -> Laid | None:
    """The file that was laid out of an artifact in a project's folder, by what its statement says."""
    for file in _candidates(folder / OUTPUT, artifact):
        for statement, keys in _statements(file):
            if _is_of(statement, artifact.sha256):
                return Laid(file=file, told=told(statement), keys=keys, sbom=_sbom(file))
    return None


def check(laid: Laid) -> Verified | ExplainedError:
    """What `rocwright attest verify` says of it with the key of who runs this. Nobody else is asked, and the
    whole file is read."""
    try:
        own = own_public_key()
        return verify(laid.file, laid.statements, [public_key(own)] if own else [])
    except ExplainedError as error:
        return error


def has_key() -> bool:
    """Whether there is a key to check with."""
    return own_public_key() is not None


def _candidates(output: Path, artifact: Artifact) -> Iterator[Path]:
    name = Path(artifact.filename).name
    if name not in ("", ".", "..") and output.is_dir():
        for pattern in (f"*/{glob.escape(name)}", f"*/*/{glob.escape(name)}"):
            paths = sorted(output.glob(pattern))
            yield from (path for path in paths if _is_plain(path, output))


def _is_plain(file: Path, output: Path) -> bool:
    """Whether no link leads to a file or to what lies beside it: a server gives them to whoever may read."""
    sidecars = (file.with_name(file.name + suffix) for suffix in (envelope.SUFFIX, sbom_of.SIDECAR_SUFFIX))
    return all(
        is_plain_file(path, output)
        for path in (file, *(sidecar for sidecar in sidecars if os.path.lexists(sidecar)))
    )


def _statements(file: Path) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    try:
        for signed in envelope.read_envelopes(file.with_name(file.name + envelope.SUFFIX)):
            yield read_statement(signed), tuple(keyid for keyid, _ in signed.signatures)
    except ExplainedError:
        return


def _is_of(statement: dict[str, Any], sha256: str) -> bool:
    """Whether a statement is of what the step made: as it is, or with an SBOM put into it."""
    match statement:
        case {"predicate": {"buildDefinition": {"internalParameters": {"asBuilt": str(built)}}}}:
            if built == sha256:
                return bool(told(statement).subjects)
        case _:
            pass
    return any(subject.sha256 == sha256 for subject in told(statement).subjects)


def _sbom(file: Path) -> Document | None:
    try:
        return sbom_of.read_document(file)
    except ExplainedError:
        return None
