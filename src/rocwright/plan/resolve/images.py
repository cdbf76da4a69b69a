"""Images, locked: each by its digest, and the roots of an image base file by file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from pydantic import ValidationError

from rocbase.errors import ConflictError, FetchError, InputError
from rocbase.files.atomic import write_atomic
from rocbase.model import Frozen
from rocwright.catalog.base import Base, BaseRelease, PackageManager
from rocwright.home import Home
from rocwright.model.architecture import Architecture, described, host
from rocwright.model.steps import FilePin, ImageOrigin, PackageOrigin
from rocwright.plan.resolve.model import LockedRoot, Role
from rocwright.sources.bases.image import Packages, packages_of
from rocwright.sources.debian_control import upstream_version
from rocwright.sources.image import Reference, choose_digest, pull
from rocwright.store.model import Store


class KeptImage(Frozen):
    """An image whose packed root is in the store, and the image's own environment."""

    pin: FilePin
    env: dict[str, str]

    @property
    def digest(self) -> str:
        assert isinstance(self.pin.origin, ImageOrigin)
        return self.pin.origin.digest


def lock_image(
    reference: str,
    locked_digest: str,
    store: Store,
    home: Home,
    on_line: Callable[[str], None],
    architecture: Architecture,
) -> KeptImage:
    """The image that a reference names for an architecture, by its `locked_digest` where there is one; it is
    pulled if need be.

    Raises FetchError, NetworkError.
    """
    on_line(f"lock: the image {reference}")
    scratch = home.work / "image"
    parsed = Reference.parse(reference)
    digest = choose_digest(parsed, locked_digest, scratch / "digest", architecture, on_line)
    noted = home.images / f"{digest.removeprefix('sha256:')}.json"
    image = _noted(noted, store)
    if image is None:
        pulled = pull(ImageOrigin(reference=reference, digest=digest), scratch / "pull", architecture)
        store.put_file(pulled.path, move=True)
        image = KeptImage(pin=pulled.pin, env=dict(pulled.config.env))
        write_atomic(noted, image.model_dump_json())
    origin = ImageOrigin(reference=reference, digest=digest)
    return image.model_copy(update={"pin": image.pin.model_copy(update={"origin": origin})})


def _noted(path: Path, store: Store) -> KeptImage | None:
    with contextlib.suppress(OSError, ValidationError):
        image = KeptImage.model_validate_json(path.read_bytes())
        if store.has(image.pin.sha256, image.pin.size):
            return image
    return None


class ImageRoots:
    """Locks the roots of one release of an image base; the image is opened once for all of them.

    `known` is the digest of an earlier lock, where there is one. To be closed.
    """

    def __init__(
        self,
        base: Base,
        release: BaseRelease,
        manager: PackageManager,
        store: Store,
        home: Home,
        on_line: Callable[[str], None],
        locked_digest: str = "",
        *,
        architecture: Architecture,
    ) -> None:
        self.architecture = architecture
        self.base, self.release, self.manager = base, release, manager
        self.store, self.home, self.on_line = store, home, on_line
        self.known = release.digest or locked_digest
        self._stack = ExitStack()
        self._image: KeptImage | None = None
        self._packages: Packages | None = None

    def close(self) -> None:
        """Remove the copy of the image in which packages were chosen."""
        self._stack.close()

    def root(
        self, role: Role, architecture: str, packages: tuple[str, ...], locked: Sequence[FilePin] = ()
    ) -> LockedRoot:
        """The exact image and packages of a root; those `locked` stay as they are, if that is possible.

        Raises what pulling and the package manager raise.
        """
        image = self.image()
        return LockedRoot(
            role=role,
            base=self.base.name,
            manager=self.manager.name,
            suite=self.release.name,
            architecture=architecture,
            wanted=packages,
            image=f"{self.release.image.partition('@')[0]}@{image.digest}",
            env=image.env,
            lists=self.packages().lists() if packages else (),
            packages=(image.pin, *self._choose(packages, locked)),
        )

    def _choose(self, packages: tuple[str, ...], locked: Sequence[FilePin]) -> tuple[FilePin, ...]:
        exactly = [pin.origin.package for pin in locked if isinstance(pin.origin, PackageOrigin)]
        if exactly:
            try:
                return self.packages().choose((*packages, *exactly), self.store)
            except (ConflictError, FetchError):
                self.on_line(
                    "lock: some locked packages are no longer available: resolving all packages again"
                )
        return self.packages().choose(packages, self.store)

    def image(self) -> KeptImage:
        """The image of the release, in the store.

        Raises FetchError, NetworkError, InputError where its package manager cannot run on this machine.
        """
        if self._image is None:
            if self.architecture is not host():
                raise InputError(
                    f"{self.base.name}:{self.release.name} for {self.architecture} cannot be locked here",
                    cause=f"its own {self.manager.name} chooses the packages, which runs on "
                    f"{self.architecture}; this machine is {described()}",
                    next_step=f"rocwright lock on a machine that is {self.architecture}",
                )
            self._image = lock_image(
                self.release.image, self.known, self.store, self.home, self.on_line, self.architecture
            )
        return self._image

    def version(self, package: str) -> str:
        """The upstream version of a package that the image has. Raises FetchError where it has none."""
        version = self.packages().version(package)
        if not version:
            raise FetchError(
                f"the image of {self.base.name}:{self.release.name} has no package {package}",
                cause=f"the base lists it under `provides`, but {self.release.image} does not have it",
                next_step="correct `provides` of the base in the catalog",
            )
        return upstream_version(version)

    def packages(self) -> Packages:
        """The image's package manager, its lists refreshed."""
        if self._packages is None:
            opened = packages_of(
                self.image().pin.sha256,
                self.manager,
                self.base.name,
                self.release.name,
                self.store,
                self.home.work / "image" / "packages",
                self.on_line,
            )
            self._packages = self._stack.enter_context(opened)
        return self._packages
