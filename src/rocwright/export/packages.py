"""Source distributions among a lock's Python packages: fetched by hash, and built in a stage of their own."""

from __future__ import annotations

from collections.abc import Iterator

from rocwright.export.model import ExportSubject, Files, lines_of, slug
from rocwright.export.quote import comment, shell
from rocwright.export.requirements import requirement_lines
from rocwright.model.steps import FetchAction, IndexOrigin
from rocwright.plan.resolve.model import LockedSdist


def sdists(subject: ExportSubject) -> dict[str, LockedSdist]:
    """The step that makes a wheel -> the source distribution that it makes it of."""
    return {f"{name}/{sdist.name}": sdist for name, part in subject.packages for sdist in part.sdists}


def package_files(subject: ExportSubject) -> Files:
    """The hashes of the source distributions, and of the wheels that build them."""
    files: Files = {}
    for name, sdist in sdists(subject).items():
        files[f"sources/{slug(name)}/sha256"] = lines_of(
            f"{pin.sha256}  {pin.filename}" for pin in sdist.files
        )
    for step in subject.plan.steps:
        if isinstance(step.action, FetchAction) and step.name.endswith("/requires"):
            files[f"{slug(step.name)}/requirements.lock"] = lines_of(requirement_lines(step.action.files))
    return files


def package_lines(subject: ExportSubject, python: str, machine: str) -> Iterator[str]:
    """What `prepare.sh` does for them."""
    for name, sdist in sdists(subject).items():
        origin = sdist.files[0].origin
        assert isinstance(origin, IndexOrigin)
        folder = slug(name)
        yield f"# {comment(sdist.name)} {comment(sdist.version)}: a source distribution"
        words = [folder, origin.project, origin.version, *([origin.index] if origin.index else [])]
        yield f"sdist {' '.join(map(shell, words))}"
        yield f"checked sources/{folder}"
        yield f"unpacked {folder} ''"
        yield f"packed {folder}"
    for step in subject.plan.steps:
        if isinstance(step.action, FetchAction) and step.name.endswith("/requires"):
            yield f"wheels {slug(step.name)} {shell(python)} {shell(machine)}"
