"""A root file system from an image and packages, by the image's own package manager.

Its commands are data. What `lock` has the manager choose and download, with a network, is pinned file by
file; fetching gets the same files; the root itself is made from them and the image without a network.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rocbase.errors import CheckError, ConflictError, FetchError, NetworkError
from rocbase.folders.listing import shown
from rocwright.catalog.base import PackageManager, filled
from rocwright.catalog.load import lookup, the_catalog
from rocwright.model.step_environment import PACKAGES
from rocwright.model.steps import BaseAction, FilePin, PackageOrigin
from rocwright.sandbox.untrusted import Untrusted
from rocwright.sources.bases.roots import remove_tree
from rocwright.sources.bases.writable import WritableRoot, writable_root
from rocwright.sources.mirrors import mirrors
from rocwright.store.model import Store

_NO_NETWORK = re.compile(
    r"could ?n.t (resolve|connect)|failed to (fetch|download|retrieve)|temporary failure|timed out|"
    r"network is unreachable|curl error",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packages:
    """The package manager of one release of an image base, at work in a copy of the image's root."""

    root: WritableRoot
    manager: PackageManager
    base: str
    release: str
    image: str
    folder: Path

    def refresh(self) -> None:
        """Get the newest package lists, of the release's day where it is one. Raises NetworkError."""
        snapshot = mirrors().at(self.manager.snapshot_of(self.release))
        commands = [filled(self.manager.repository, snapshot=snapshot)] if snapshot else []
        for command in (*commands, self.manager.refresh):
            code, output = self._run(command)
            if code != 0:
                raise NetworkError(
                    f"the package lists of {self.base}:{self.release} could not be fetched",
                    cause=_last(output),
                    next_step="check the network, and that this base's archive is reached from this machine",
                )

    def choose(self, packages: Sequence[str], store: Store) -> tuple[FilePin, ...]:
        """Download packages and what they need that the image has not, into the store; a pin for each file.

        Raises ConflictError where the manager finds no answer, NetworkError.
        """
        if not packages and not self.manager.snapshot_of(self.release):
            return ()
        code, output = self._run(filled(self.manager.download, packages, folder=PACKAGES))
        if code != 0:
            raise self._explain(
                f"no set of packages of {self.base}:{self.release} gives {', '.join(packages)}", output
            )
        pins = []
        for name in sorted(file.path for file in self._downloaded().matches(self.manager.files)):
            package = self._ask(name)
            sha256, size = self._stored(name, store)
            pins.append(
                FilePin(
                    filename=name,
                    sha256=sha256,
                    size=size,
                    origin=PackageOrigin(
                        base=self.base,
                        release=self.release,
                        manager=self.manager.name,
                        image=self.image,
                        package=package,
                    ),
                )
            )
        self._empty()
        return tuple(pins)

    def _downloaded(self) -> Untrusted:
        """What the package manager put there: it is the image's, and may be anything."""
        return Untrusted(self.folder, f"the package manager of {self.base}:{self.release}")

    def _stored(self, name: str, store: Store) -> tuple[str, int]:
        with tempfile.TemporaryDirectory(dir=self.folder.parent, prefix="taken-") as folder:
            return store.put_file(self._downloaded().take(name, Path(folder, name)), move=True)

    def version(self, package: str) -> str:
        """The version of a package that the image has, or nothing where it has none of that name."""
        _, output = self._run(self.manager.list)
        rows = (line.split() for line in output)
        return next((words[1] for words in rows if len(words) > 1 and words[0] == package), "")

    def lists(self) -> tuple[str, ...]:
        """The addresses of the package lists that packages are chosen from, as far as the manager tells."""
        _, output = self._run(self.manager.lists) if self.manager.lists else (0, [])
        return tuple(dict.fromkeys(line for line in output if line.startswith(("http://", "https://"))))

    def fetch(self, pins: Sequence[FilePin], target: Path) -> None:
        """Download exactly these files into `target`; the caller checks the hashes. Raises FetchError."""
        packages = [pin.origin.package for pin in pins if isinstance(pin.origin, PackageOrigin)]
        code, output = self._run(filled(self.manager.fetch, packages, folder=PACKAGES))
        absent = [pin.filename for pin in pins if not os.path.lexists(self.folder / pin.filename)]
        if code != 0 and absent:
            raise self._explain(
                f"{self.base}:{self.release} did not give all packages of the lock", output, absent
            )
        for pin in pins:
            if pin.filename not in absent:
                self._downloaded().take(pin.filename, target / pin.filename)
        self._empty()

    def _ask(self, name: str) -> str:
        code, output = self._run(filled(self.manager.ask, file=f"{PACKAGES}/{name}"))
        if code != 0 or not output:
            raise CheckError(
                f"{shown(name)} is not a package that {self.manager.name} can read",
                cause=_last(output),
                next_step="rocwright lock again; if it stays so, the archive is broken",
            )
        return output[-1].strip()

    def _run(self, command: Sequence[str]) -> tuple[int, list[str]]:
        output: list[str] = []
        completed = self.root.run(
            command, self.manager.env, folder=self.folder, network=True, on_line=output.append
        )
        return completed.returncode, output

    def _empty(self) -> None:
        for path in self.folder.iterdir():
            # a folder may belong to the user that the manager downloads as
            remove_tree(path)

    def _explain(
        self, problem: str, output: Sequence[str], absent: Sequence[str] = ()
    ) -> FetchError | NetworkError | ConflictError:
        detail = "\n".join(output[-20:])
        if any(_NO_NETWORK.search(line) for line in output):
            next_step = "check the network, then try again"
            return NetworkError(problem, cause=_last(output), detail=detail, next_step=next_step)
        if absent:
            return FetchError(
                problem,
                cause=f"it carries no {', '.join(absent)}",
                detail=detail,
                next_step="the archive has moved on: rocwright lock takes what it carries now",
            )
        return ConflictError(
            problem,
            cause=_last(output),
            detail=detail,
            next_step="correct the names in the catalog's system.toml or in the base's [packages]",
        )


@contextmanager
def packages_of(
    image: str,
    manager: PackageManager,
    base: str,
    release: str,
    store: Store,
    scratch: Path,
    on_line: Callable[[str], None],
) -> Iterator[Packages]:
    """The package manager of an image, whose packed root has the sha256 `image`, with its lists refreshed."""
    with writable_root(store, image, scratch, on_line) as root:
        folder = scratch / "packages"
        folder.mkdir(parents=True, exist_ok=True)
        packages = Packages(
            root=root, manager=manager, base=base, release=release, image=image, folder=folder.absolute()
        )
        on_line(f"base: package lists of {base}:{release}")
        try:
            packages.refresh()
            yield packages
        finally:
            remove_tree(folder)


def fetch_packages(
    pins: Sequence[FilePin], store: Store, scratch: Path, on_line: Callable[[str], None]
) -> None:
    """Download the pinned packages of image bases into `scratch`; the caller checks the hashes.

    The images they belong to must be in the store. Raises FetchError, NetworkError.
    """
    groups: defaultdict[tuple[str, str, str, str], list[FilePin]] = defaultdict(list)
    for pin in pins:
        assert isinstance(pin.origin, PackageOrigin)
        groups[pin.origin.image, pin.origin.manager, pin.origin.base, pin.origin.release].append(pin)
    for (image, name, base, release), group in groups.items():
        manager = lookup("package manager", name, the_catalog().managers)
        with packages_of(image, manager, base, release, store, scratch / "inside", on_line) as packages:
            packages.fetch(group, scratch)


def make_image_root(
    action: BaseAction,
    packages: Sequence[tuple[str, Path]],
    store: Store,
    target: Path,
    scratch: Path,
    on_line: Callable[[str], None],
) -> str:
    """Write the root file system of an image with `packages` ((file name, path) of each) to `target`.

    Nothing but the image and these packages is used, and no network. Gives the hex sha256 of the tar,
    uncompressed.
    Raises CheckError where the package manager cannot install them.
    """
    folder = (scratch / "packages").absolute()
    folder.mkdir(parents=True)
    for filename, path in packages:
        try:
            os.link(path, folder / filename)
        except OSError:
            shutil.copyfile(path, folder / filename)
    with writable_root(store, action.image, scratch, on_line) as root:
        on_line(f"base: {len(packages)} packages, no network")
        output: list[str] = []

        def note(line: str) -> None:
            output.append(line)
            on_line(line)

        if packages and not root.run(action.install, action.env, folder=folder, on_line=note).ok:
            raise CheckError(
                "the packages of the lock cannot be installed in the image",
                cause=_last(output),
                detail="\n".join(output[-20:]),
                next_step="rocwright logs shows all; rocwright lock takes a newer set",
            )
        root.forget(action.forget)
        on_line("base: packing")
        content = root.pack(target)
    shutil.rmtree(folder)
    return content


def _last(output: Sequence[str]) -> str:
    errors = [line for line in output if line.startswith(("E:", "error:", "Error:"))]
    return (errors or [line for line in output if line.strip()] or ["no message"])[-1].strip()
