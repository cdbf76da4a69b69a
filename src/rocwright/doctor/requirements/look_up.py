"""Looks up what the packages of a list hold: on the package index, or where they are installed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import Distribution, distributions
from pathlib import Path
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement, Requirement

from rocbase.errors import CheckError, ExplainedError
from rocbase.folders.temporary import temporary_folder
from rocwheel.wheels import names
from rocwheel.wheels.choose import Target
from rocwheel.wheels.environment import site_packages
from rocwheel.wheels.overrides import Overrides
from rocwheel.wheels.runs_on import Judged, runs_on
from rocwright.doctor.requirements.facts import PackageFact, PythonPackagesFile, matches
from rocwright.doctor.requirements.lists import Entry
from rocwright.sources.patience import Patience, with_patience
from rocwright.sources.python_resolver import Interpreter
from rocwright.sources.remote_wheel import Allowance, RemoteIndex, RemoteWheel

# Bytes and seconds for a whole list; packed bytes of GPU code that are read of one wheel.
MOST_BYTES, MOST_SECONDS, MOST_CODE = 50 * 1024**2, 60.0, 8 * 1024**2

# Connections at a time: more of them make a mirror slower, not faster.
CONNECTIONS = 8

# Seconds after which a silent host is not asked again.
SILENT = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageContents:
    """What the file holds that an installer takes for an entry.

    `code` are verdicts on its GPU code. `unfit` says why an installer finds no file, `unread` why nobody
    could look.
    """

    version: str = ""
    members: tuple[str, ...] = ()
    requires: tuple[Requirement, ...] = ()
    code: tuple[Judged, ...] = ()
    unfit: str = ""
    unread: str = ""


@dataclass(slots=True, kw_only=True)
class Lookup:
    """Asks indexes for the entries of a list, for one GPU and one Python."""

    facts: PythonPackagesFile
    gpu: Target
    overrides: Overrides
    python: Interpreter
    allowance: Allowance = field(default_factory=lambda: Allowance(MOST_BYTES, MOST_SECONDS))
    patience: Patience = field(default_factory=lambda: Patience(SILENT))

    def look_up(self, entries: Sequence[Entry]) -> dict[Entry, PackageContents]:
        """Return what the files of entries hold, for those that an index can be asked about."""
        options = [entry for entry in entries if entry.option in ("--index-url", "--extra-index-url")]
        own = [url for entry in options if self._is_of_rocm(url := entry.url)]
        with with_patience(self.patience):
            indexes = {url: RemoteIndex(url, self.python, self.allowance) for url in ("", *own)}
        # the time and the bytes that there are go to those of which something is known
        askable = sorted(filter(self._can_ask, entries), key=lambda entry: not self._row(entry))

        def look(entry: Entry) -> PackageContents:
            with with_patience(self.patience):
                return self._look(entry, indexes)

        with ThreadPoolExecutor(CONNECTIONS) as pool:
            contents = dict(zip(askable, pool.map(look, askable), strict=True))
        return {entry: contents[entry] for entry in entries if entry in contents}

    def _is_of_rocm(self, url: str) -> bool:
        return url.startswith("https://") and self.facts.build_of(address=url) == "ROCm"

    def _can_ask(self, entry: Entry) -> bool:
        row = self._row(entry)
        tag = self.facts.build_of(tag=local_tag(entry))
        return bool(entry.name) and not (
            entry.url or entry.conda or tag in ("CUDA", "CPU") or (row and row.part)
        )

    def _row(self, entry: Entry) -> PackageFact | None:
        return self.facts.fact(entry.name, entry.requirement.extras) if entry.requirement else None

    def _look(self, entry: Entry, indexes: dict[str, RemoteIndex]) -> PackageContents:
        """Return what the first index that has a file holds: for ROCm's versions not the general one."""
        assert entry.requirement is not None
        of_rocm = bool(local_tag(entry))
        chosen = {url: index for url, index in indexes.items() if bool(url) == of_rocm}
        if not chosen:
            return PackageContents(unread="not asked: its version is on no index of this list")
        unread = ""
        for url, index in chosen.items():
            try:
                if package := index.find(entry.requirement):
                    wheel = index.open(package) if package.package_type == "wheel" else None
                    return self._contents(wheel, package.version or "")
            except ExplainedError as error:
                host = f"{urlsplit(url).hostname}: " if url else ""
                unread = f"not asked: {host}{error.message}"
        return (
            PackageContents(unread=unread)
            if unread
            else PackageContents(unfit=f"no file for Python {self.python.version}")
        )

    def _contents(self, wheel: RemoteWheel | None, version: str) -> PackageContents:
        if wheel is None:
            return PackageContents(version=version)
        return PackageContents(
            version=version,
            members=wheel.members,
            requires=tuple(parsed(wheel.requires())),
            code=tuple(self._code(wheel)),
        )

    def _code(self, wheel: RemoteWheel) -> Iterator[Judged]:
        """Yield the verdicts on the libraries for ROCm in a wheel that says by their names which they are."""
        paths = [path for path in wheel.members if matches(path, self.facts.named("ROCm").files)]
        with temporary_folder("check") as folder:
            for path in wheel.save(paths, folder, MOST_CODE):
                try:
                    yield from runs_on(path, self.gpu, self.overrides)
                except CheckError:
                    continue  # a library that cannot be read says nothing of the GPU


def installed(path: Path, gpu: Target, overrides: Overrides) -> dict[Entry, PackageContents]:
    """Return the packages of an environment and what they hold. Raises InputError if it is none."""
    contents: dict[Entry, PackageContents] = {}
    for folder in site_packages(path):
        entries = [(_entry(package), package) for package in distributions(path=[str(folder)])]
        packages = [(entry, package) for entry, package in entries if entry is not None]
        files = {str(file): package for _, package in packages for file in package.files or ()}
        code: dict[int, list[Judged]] = {}
        for judged in runs_on(folder, gpu, overrides):
            owner = files.get(judged.path) or next(
                (package for file, package in files.items() if file.startswith(f"{judged.path}/")), None
            )
            code.setdefault(id(owner), []).append(judged)
        for entry, package in packages:
            contents[entry] = PackageContents(
                version=package.version,
                members=tuple(map(str, package.files or ())),
                requires=tuple(parsed(package.requires or ())),
                code=tuple(code.get(id(package), ())),
            )
    return contents


def _entry(package: Distribution) -> Entry | None:
    name, version = package.metadata["Name"], package.metadata["Version"]
    for requirement in parsed([f"{name}=={version}"]):
        return Entry(place="", text=str(requirement), requirement=requirement)
    return None


def parsed(texts: Sequence[str]) -> Iterator[Requirement]:
    """Yield the requirements in texts; one that is none is passed over."""
    for text in texts:
        try:
            yield names.read_requirement(text)
        except InvalidRequirement:
            continue


def applies(requirement: Requirement, python: Interpreter) -> bool:
    """Return whether the marker of a requirement holds for an interpreter, without an extra."""
    marker = requirement.marker
    return marker is None or marker.evaluate({**python.environment(), "extra": ""})


def local_tag(entry: Entry) -> str:
    """Return the local version that an entry asks for: cu121 of 2.5.1+cu121."""
    return entry.pin.partition("+")[2].lower()
