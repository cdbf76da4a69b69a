"""The values of a lock by name: what may be given in place of them, and what must be."""

from __future__ import annotations

from collections.abc import Iterator

from rocwright.export.model import Argument, ExportSubject, variable
from rocwright.model.steps import FetchAction, ImageOrigin
from rocwright.plan.resolve.model import LockedComponent, LockedRoot
from rocwright.sources.image import Reference

TARGETS = "TARGETS"
TARBALLS = "ROCM_SHA256"


def arguments(subject: ExportSubject) -> tuple[Argument, ...]:
    """Every value of the lock that an export takes by name."""
    lock = subject.lock
    arguments = [Argument(name=TARGETS, value=";".join(lock.request.gpu), about="the GPUs built for")]
    for locked in lock.components:
        arguments += component_arguments(locked)
    for root in subject.roots:
        arguments += root_arguments(root)
    for folder, part in subject.packages:
        if part.pending:
            name = variable(folder, "requirements", "sha256")
            description = f"the sha256 of {folder}/requirements.lock"
            arguments.append(Argument(name=name, value="", about=description, pending=part.pending))
    if subject.tarballs is not None and subject.tarballs.pending:
        description = "the sha256 of each tarball of ROCm, with spaces between them"
        arguments.append(
            Argument(name=TARBALLS, value="", about=description, pending=subject.tarballs.pending)
        )
    return tuple(arguments)


def component_arguments(locked: LockedComponent) -> Iterator[Argument]:
    """Version, commit or image, and the hashes where these are still open."""
    name = locked.name
    yield Argument(name=variable(name, "version"), value=locked.version, about=f"the version of {name}")
    if locked.kind == "image":
        yield Argument(
            name=variable(name, "image"),
            value=image_of(locked),
            about=f"the image of {name}, NAME@sha256:...",
            pending="" if image_of(locked) else locked.pending or f"the digest of {locked.place}",
        )
    elif locked.kind == "git":
        yield Argument(
            name=variable(name, "commit"),
            value=locked.commit,
            about=f"the git commit of {name}: {locked.place}",
            pending="" if locked.commit else locked.pending,
        )
    elif locked.pending and locked.kind not in ("builtin", "wheels"):
        description = f"the sha256 of each file of {name}'s source, with spaces between them"
        yield Argument(name=variable(name, "sha256"), value="", about=description, pending=locked.pending)


def root_arguments(root: LockedRoot) -> Iterator[Argument]:
    """The image that a root starts from, and its packages where these are still open."""
    if root.image:
        image = next(
            (
                by_digest(pin.origin.reference, pin.origin.digest)
                for pin in root.packages
                if isinstance(pin.origin, ImageOrigin)
            ),
            by_digest(root.image),
        )
        yield Argument(
            name=variable("image", root.role),
            value=image,
            about=f"the image to {root.role} in: {root.image}",
            pending="" if image else f"the digest of {root.image}",
        )
    if root.pending:
        yield Argument(
            name=variable("packages", root.role),
            value="",
            about=f"exact packages to {root.role}, in words of {root.manager}, for: {', '.join(root.wanted)}",
            pending=root.pending,
        )


def image_of(locked: LockedComponent) -> str:
    """The image of a component by digest, empty where the lock does not know it."""
    for pin in locked.files:
        if isinstance(pin.origin, ImageOrigin):
            return by_digest(pin.origin.reference, pin.origin.digest)
    return by_digest(locked.place.removeprefix("image "), locked.commit)


def by_digest(reference: str, digest: str = "") -> str:
    """An image by its digest alone, empty where that is not known: not every engine takes a tag beside it."""
    named = Reference.parse(reference)
    digest = digest or named.digest
    return str(Reference(named.name, digest=digest)) if digest.startswith("sha256:") else ""


def python_pending(subject: ExportSubject, folder: str) -> bool:
    """Whether the files of a shared step (python, rocm) are not known."""
    return any(
        isinstance(step.action, FetchAction) and step.name == folder and step.action.pending
        for step in subject.plan.steps
    )
