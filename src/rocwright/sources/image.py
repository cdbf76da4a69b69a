"""Images of a registry, by digest, by skopeo: from a reference to a packed root file system."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rocbase.errors import FetchError, InputError
from rocbase.files.atomic import sha256_file
from rocwright.model.architecture import Architecture
from rocwright.model.steps import FilePin, ImageOrigin
from rocwright.sources import skopeo
from rocwright.sources.layers import ImageConfig, pack_layers
from rocwright.sources.mirrors import mirrors
from rocwright.sources.skopeo import LOOK_SECONDS, ImageLocation

# Architectures by the name that images use (OCI image specification: GOARCH).
ARCHITECTURES = {Architecture.X86_64: "amd64", Architecture.AARCH64: "arm64"}

_NAME = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"[A-Za-z0-9][A-Za-z0-9-]*"
_REFERENCE = re.compile(
    rf"(?P<name>(?:localhost|{_HOST}(?:\.{_HOST})+|{_HOST}(?=:\d))(?::\d+)?(?:/{_NAME})+)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)


@dataclass(frozen=True, slots=True)
class Reference:
    """An image by its full name, registry first, with a tag or digest or both."""

    name: str
    tag: str = ""
    digest: str = ""

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Raises InputError for a short name too: which registry it means depends on the machine."""
        match = _REFERENCE.fullmatch(text)
        if match is None or not (match["tag"] or match["digest"]):
            raise InputError(
                f"{text!r} is not the full name of an image",
                cause="it needs a registry, a name, and a tag or digest",
                next_step="write REGISTRY/NAME:TAG, or REGISTRY/NAME@sha256:...",
            )
        return cls(match["name"], match["tag"] or "", match["digest"] or "")

    def __str__(self) -> str:
        return self.name + (f":{self.tag}" if self.tag else "") + (f"@{self.digest}" if self.digest else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulled:
    """An image that was pulled and packed: its pin, the file, and what the image says of itself."""

    pin: FilePin
    path: Path
    config: ImageConfig


def find_digest(
    reference: Reference, folder: Path, architecture: Architecture, seconds: float = LOOK_SECONDS
) -> str:
    """The digest of the manifest that a reference names for an architecture.

    Raises NetworkError without an answer, FetchError where there is no such image, or none for it,
    InputError where skopeo is not installed. `folder` is made for it, and removed.
    """
    with _scratch(folder):
        return skopeo.digest(_place(reference, architecture, seconds), folder)


def find_created(
    reference: Reference, folder: Path, architecture: Architecture, seconds: float
) -> datetime | None:
    """When an image was made, where it says so. Raises as above."""
    with _scratch(folder):
        timestamp = skopeo.created(_place(reference, architecture, seconds), folder)
    try:
        return datetime.fromisoformat(timestamp.replace("Z", "+00:00")[:19] + "+00:00") if timestamp else None
    except ValueError:
        return None


def find_tags(reference: Reference, folder: Path, seconds: float) -> tuple[str, ...]:
    """The tags of an image's name, the same for every architecture. Raises as above."""
    with _scratch(folder):
        return skopeo.tags(_place(reference, Architecture.X86_64, seconds), folder)


@contextmanager
def _scratch(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def pull(origin: ImageOrigin, folder: Path, architecture: Architecture) -> Pulled:
    """Pull an image of an architecture by its digest and pack its root file system into `folder`.

    skopeo checks everything that comes against the digest, and what is packed is checked against the
    image's own list of layers. Raises NetworkError, and FetchError where anything is not what the digest
    says; then nothing is kept.
    """
    reference = Reference.parse(origin.reference)
    name = f"{reference.name.rpartition('/')[2]}-{origin.digest.removeprefix('sha256:')[:16]}"
    scratch = folder / f"{name}.pull"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    target = folder / f"{name}.tar.zst"
    try:
        place = _place(Reference(reference.name, digest=origin.digest), architecture)
        skopeo.save(place, scratch / "image", scratch)
        config = pack_layers(scratch / "image", target, scratch, str(reference))
        if config.architecture != ARCHITECTURES[architecture]:
            raise FetchError(
                f"the image {reference} is for {config.architecture or 'no architecture that it names'}",
                cause=f"one for {ARCHITECTURES[architecture]} is needed",
                next_step="rocwright lock anew, or name another image",
                subject=str(reference),
            )
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    pin = FilePin(filename=target.name, sha256=sha256_file(target), size=target.stat().st_size, origin=origin)
    return Pulled(pin=pin, path=target, config=config)


def choose_digest(
    reference: Reference,
    known_digest: str,
    folder: Path,
    architecture: Architecture,
    on_line: Callable[[str], None],
) -> str:
    """The digest to lock: the one that is `known_digest` for this reference, else what its tag names now.

    Says so where the tag has moved on from what is known. Raises what `find_digest` raises.
    """
    fixed = reference.digest or known_digest
    if not fixed:
        return find_digest(reference, folder, architecture)
    chosen = find_digest(Reference(reference.name, digest=fixed), folder, architecture)
    if not reference.tag:
        return chosen
    try:
        current = find_digest(Reference(reference.name, reference.tag), folder, architecture)
    except FetchError as error:
        on_line(f"lock: the tag {reference.name}:{reference.tag} cannot be seen: {error.message}")
        return chosen
    if current != chosen:
        on_line(
            f"lock: the tag {reference.name}:{reference.tag} has moved: {chosen} -> {current}; "
            f"{chosen} is used"
        )
    return chosen


def _place(reference: Reference, architecture: Architecture, seconds: float = LOOK_SECONDS) -> ImageLocation:
    name = mirrors().at(reference.name)
    plain = name.startswith("http://")
    name = name.removeprefix("http://").removeprefix("https://")
    if name.startswith(("/", "file:")):
        raise InputError(
            f"a folder cannot replace the registry of {reference}",
            cause="images come from registries only",
            next_step="name another registry in [mirrors]; one that speaks plain HTTP as http://HOST:PORT/",
        )
    if "@" in name:
        raise InputError(
            f"the mirror for the registry of {reference} contains a login, which other users could see",
            cause="the address of an image is part of a command line, which other users can read",
            next_step="remove the login from [mirrors], and run: skopeo login REGISTRY",
        )
    return ImageLocation(
        name=name,
        tag=reference.tag,
        digest=reference.digest,
        plain_http=plain,
        architecture=ARCHITECTURES[architecture],
        seconds=seconds,
    )
