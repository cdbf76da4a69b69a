"""An SBOM inside a wheel, where installers and scanners look for it.

Source: PEP 770, https://peps.python.org/pep-0770/: `.dist-info/sboms/`, one file a document.
"""

from __future__ import annotations

from pathlib import Path

from rocwheel.wheels.archive import open_wheel
from rocwheel.wheels.canonicalize import agreeing_with
from rocwheel.wheels.metadata import dist_info_folder
from rocwheel.wheels.write import WheelFile, write_wheel
from rocwright.model.step_environment import EPOCH
from rocwright.store.signing.safe_json import LARGEST_SBOM

FOLDER = "sboms"
# Its name in that folder: others (auditwheel, maturin) put theirs beside it under their own.
NAME = "rocwright.cdx.json"


def with_sbom(wheel: Path, sbom: bytes, target: Path) -> None:
    """Write the wheel with an SBOM in it: its files as they lie there, RECORD made anew.

    An SBOM of ours that was in it before is replaced, others stay. Raises InputError for what is no wheel, or
    is signed, CheckError where its RECORD is wrong.
    """
    with open_wheel(wheel) as files:
        path = f"{dist_info_folder(file.path for file in files)}/{FOLDER}/{NAME}"
        retained = [file for file in files if file.path != path]
        write_wheel(
            target,
            [*retained, WheelFile(path=path, content=sbom)],
            epoch=EPOCH,
            copy=True,
            approve=agreeing_with(retained, wheel, replaced=path),
        )


def sboms_in(wheel: Path) -> dict[str, bytes]:
    """The CycloneDX documents in a wheel by their path, our own first. Raises InputError, CheckError."""
    with open_wheel(wheel) as files:
        folder = f"{dist_info_folder(file.path for file in files)}/{FOLDER}/"
        documents = [file for file in files if file.path.startswith(folder) and file.path.endswith(".json")]
        return {
            document.path: document.read()
            for document in sorted(
                documents, key=lambda document: (not document.path.endswith(f"/{NAME}"), document.path)
            )
            if document.size <= LARGEST_SBOM
        }
