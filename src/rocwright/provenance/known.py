"""Which artifact of the store a laid-out file was made of: a wheel has its SBOM in it by then."""

from __future__ import annotations

import contextlib

from rocbase.errors import InputError
from rocwright.home import Home
from rocwright.signing.envelope import LARGEST
from rocwright.signing.safe_json import parse_json, read_bounded


def as_built(home: Home, sha256: str) -> str:
    """The sha256 of the artifact as its step made it; the file's own where nothing was put into it, or this
    machine did not lay it out."""
    with contextlib.suppress(InputError):
        said = parse_json(read_bounded(home.statement(sha256), LARGEST, "statement"), "statement")
        match said:
            case {"predicate": {"buildDefinition": {"internalParameters": {"asBuilt": str(told)}}}}:
                return told
    return sha256
