"""From the places that a recipe names to one exact source: the first place that can be reached."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rocbase.errors import FetchError, NetworkError
from rocbase.files.atomic import sha256_file
from rocbase.folders.temporary import temporary_folder
from rocwright.catalog.address import ArchivePlace
from rocwright.catalog.place import (
    BuiltinPlace,
    DebianPlace,
    GitPlace,
    ImagePlace,
    IndexPlace,
    Place,
    PlaceKind,
    WheelsPlace,
)
from rocwright.model.step_environment import EPOCH
from rocwright.model.steps import BuiltinOrigin, FilePin, GitOrigin, ImageOrigin
from rocwright.sources import git, index, web
from rocwright.sources.archive import pack
from rocwright.sources.debian import DebianArchive
from rocwright.sources.debian_control import upstream_version
from rocwright.store.model import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """One exact source: its files, where they are, and why other places were passed over."""

    files: tuple[FilePin, ...]
    place: str
    kind: PlaceKind = "git"
    commit: str = ""
    subdir: str = ""
    series: tuple[str, ...] = ()
    packaging: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


def no_image(place: ImagePlace) -> tuple[FilePin, Mapping[str, str]]:
    """Refuse: what looks for trees of sources finds none in an image."""
    raise FetchError(
        f"{describe(place)} is not a source tree",
        cause="an image can only be used as a whole",
        next_step="name another source in the recipe",
    )


def no_wheels(place: WheelsPlace) -> tuple[FilePin, ...]:
    """Refuse: what looks for trees of sources finds none in wheels."""
    raise FetchError(
        f"{describe(place)}: not a source tree",
        cause="wheels are installed as they were published",
        next_step="name another source in the recipe",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What looking for sources needs: the store for what is fetched on the way, the archive of a suite (the
    base's own for ""), who pulls images and tells the variables that they set, who asks an index for wheels,
    and the sha256 that an earlier lock knows of an address."""

    store: Store
    archive: Callable[[str], DebianArchive]
    carried: Callable[[str], Path]
    image: Callable[[ImagePlace], tuple[FilePin, Mapping[str, str]]] = no_image
    wheels: Callable[[WheelsPlace], tuple[FilePin, ...]] = no_wheels
    known: Mapping[str, str] = field(default_factory=dict)
    commits: dict[str, FilePin] = field(default_factory=dict)

    def packed(self, origin: GitOrigin) -> FilePin:
        """The tree of a commit, in the store; what two recipes take is fetched once."""
        key = origin.model_dump_json()
        if key not in self.commits:
            with temporary_folder("git") as folder:
                pin = git.pack_commit(origin, Path(folder))
                self.store.put_file(Path(folder) / pin.filename)
            self.commits[key] = pin
        return self.commits[key]


def locate(name: str, version: str, places: Sequence[Place], reach: Reach) -> Located:
    """The first of `places` that has the release. Raises FetchError that says why each of them does not,
    or that there is none, NetworkError where none of them answers."""
    if not places:
        raise FetchError(
            f"no source of {name} {version} is known",
            cause="its recipe names no place for this release",
            next_step=f"add a place to it in {name}.toml: rocwright catalog schema component shows how",
            subject=name,
        )
    reasons: list[str] = []
    errors: list[NetworkError | FetchError] = []
    for place in places:
        try:
            located = _locate(place, version, reach)
        except (NetworkError, FetchError) as error:
            errors.append(error)
            reasons.append(f"{describe(place)}: {_reason(error)}")
            continue
        return replace(located, kind=kind_of(place), passed_over=tuple(reasons))
    silent = all(isinstance(error, NetworkError) for error in errors)
    raise (NetworkError if silent else FetchError)(
        f"no source of {name} {version} can be reached",
        cause="every source in the recipe was tried",
        detail="\n".join(f"- {reason}" for reason in reasons),
        next_step="check the network, or add a source to the recipe",
        subject=name,
    )


def _reason(error: NetworkError | FetchError) -> str:
    # that a place cannot be reached is said by its cause already
    return error.cause if isinstance(error, NetworkError) else f"{error.message} ({error.cause})"


def kind_of(place: Place) -> PlaceKind:
    """The kind of a place, as an edit of a recipe names it."""
    match place:
        case GitPlace():
            return "git"
        case IndexPlace():
            return "sdist"
        case DebianPlace():
            return "debian"
        case ArchivePlace():
            return "archive"
        case BuiltinPlace():
            return "builtin"
        case ImagePlace():
            return "image"
        case WheelsPlace():
            return "wheels"


def describe(place: Place) -> str:
    """A place in words."""
    match place:
        case GitPlace():
            return f"git {place.git} {place.tag or place.commit[:12]}"
        case ImagePlace():
            return f"image {place.image}"
        case IndexPlace():
            return f"source distribution {place.sdist} {place.version}"
        case DebianPlace():
            return f"Debian source package {place.debian}"
        case ArchivePlace():
            return f"archive {place.url}"
        case BuiltinPlace():
            return "carried by rocwright"
        case WheelsPlace():
            suffix = f" for Python {place.python}" if place.python else ""
            return f"wheels {', '.join(place.wheels)} of {place.index or 'the package index'}{suffix}"


def _locate(place: Place, version: str, reach: Reach) -> Located:
    match place:
        case GitPlace():
            commit = git.resolve_tag(place.git, place.tag, place.commit) if place.tag else place.commit
            origin = GitOrigin(
                url=place.git,
                commit=commit,
                held=place.held,
                paths=place.paths,
                repository=place.repository,
            )
            return Located(
                files=(reach.packed(origin),),
                place=f"{describe(place)} (commit {commit})",
                commit=commit,
                subdir=place.subdir,
            )
        case IndexPlace():
            pin = index.find_sdist(place.sdist, place.version, reach.store)
            return Located(files=(pin,), place=describe(place), subdir=place.subdir)
        case DebianPlace():
            return _locate_debian(place, version, reach)
        case ArchivePlace():
            pin = web.find_file(place, reach.store, reach.known.get(place.url, ""))
            return Located(files=(pin,), place=describe(place), subdir=place.subdir)
        case ImagePlace():
            pin, env = reach.image(place)
            assert isinstance(pin.origin, ImageOrigin)
            return Located(files=(pin,), place=describe(place), commit=pin.origin.digest, env=env)
        case WheelsPlace():
            return Located(files=reach.wheels(place), place=describe(place))
        case BuiltinPlace():
            pin = pack_builtin(place.builtin, reach.carried(place.builtin), reach.store)
            return Located(files=(pin,), place=describe(place))


def _locate_debian(place: DebianPlace, version: str, reach: Reach) -> Located:
    archive = reach.archive(place.suite)
    package = archive.source(place.debian)
    if upstream_version(package.version) != version:
        raise FetchError(
            f"Debian {archive.suite} has {place.debian} {package.version}",
            cause=f"{version} is wanted",
            next_step="use a suite that has the wanted version",
        )
    markers = (".orig.tar.", ".debian.tar.") if place.series or place.packaging else (".orig.tar.",)
    # beside a tarball may stand upstream's detached signature; the archive's own signature covers both
    parts = [pin for pin in package.files if not pin.filename.endswith(".asc")]
    files = tuple(pin for pin in parts if any(part in pin.filename for part in markers))
    return Located(
        files=tuple(sorted(files, key=lambda pin: ".debian.tar." in pin.filename)),
        place=f"{describe(place)} {package.version} ({archive.suite})",
        series=place.series,
        packaging=place.packaging,
    )


def pack_builtin(name: str, carried: Path, store: Store, expected: str = "") -> FilePin:
    """Pack the tree `carried` of the catalog, and keep it in the store; but not what is not as `expected`."""
    with temporary_folder("pack") as folder:
        packed = Path(folder) / f"{name}.tar.zst"
        # an import in an installed tree leaves byte code behind, which is no source
        tree = Path(folder) / "tree"
        shutil.copytree(carried, tree, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True)
        pack(tree, packed, epoch=EPOCH)
        pin = FilePin(
            filename=packed.name,
            sha256=sha256_file(packed),
            size=packed.stat().st_size,
            origin=BuiltinOrigin(name=name),
        )
        if expected in ("", pin.sha256):
            store.put_file(packed)
    return pin
