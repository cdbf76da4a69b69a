"""The SBOM of a file: the file itself, one of ours in it or beside it, or one made from a wheel of others."""

from __future__ import annotations

from pathlib import Path

from rocbase.errors import InputError
from rocwright.provenance.documents import Document, parse_document
from rocwright.store.signing.safe_json import LARGEST_SBOM, read_bounded

SIDECAR_SUFFIX = ".cdx.json"


def read_document(path: Path) -> Document:
    """The SBOM of a file, read.

    Raises InputError where there is none, or it cannot be one, and CheckError for a damaged wheel.
    """
    source, data = read_bytes(path)
    return parse_document(data, source)


def read_bytes(path: Path) -> tuple[str, bytes]:
    """The bytes of the SBOM of a file, and where they are from; raises as `read_document`.

    A wheel that rocwright did not build is read as it lies there; SBOMs that other tools put into it say
    where its libraries are from.
    """
    if path.name.endswith(".json"):
        return str(path), read_bounded(path, LARGEST_SBOM, "SBOM")
    sidecar = path.with_name(path.name + SIDECAR_SUFFIX)
    if path.suffix == ".whl" and path.is_file():
        from rocwright.provenance.embed import NAME, sboms_in
        from rocwright.provenance.wheel_sbom import wheel_sbom

        for inside, data in sboms_in(path).items():
            if inside.endswith(f"/{NAME}"):
                return f"{path}: {inside}", data
        if not sidecar.is_file():
            return f"{path}, as it lies there", wheel_sbom(path)
    if sidecar.is_file():
        return str(sidecar), read_bounded(sidecar, LARGEST_SBOM, "SBOM")
    raise InputError(
        f"{path} has no SBOM" if path.exists() else f"there is no {path}",
        cause=f"it is no wheel, and no {sidecar.name} lies next to it"
        if path.exists()
        else "the path is wrong, or the file was removed",
        next_step="name a wheel, or a file that rocwright build laid out: it writes an SBOM next to each",
    )
