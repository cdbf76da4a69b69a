"""The Debian archive that this machine is set up for, for any suite: package sets, packages, source packages.

mmdebstrap finds the mirror and leaves a private apt folder; from then on apt does the work with that folder.
Both run in the tools root and see the settings of the machine's own apt: its proxies and credentials hold.
"""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from filelock import FileLock

from rocbase.errors import ConflictError, FetchError, InputError, NetworkError
from rocbase.files.atomic import write_atomic
from rocbase.processes import run as process
from rocwright.model.steps import DebianOrigin, DebianSourceOrigin, FilePin
from rocwright.sources.bases.tools import ARCHIVE, Tools
from rocwright.sources.debian_control import parse_stanzas, upstream_version
from rocwright.sources.debian_failures import archive_failure, last_error
from rocwright.sources.mirrors import debian_snapshot
from rocwright.sources.patience import asked, current, within

# A suite without updates of its own, as mmdebstrap knows. For another such (experimental) it asks for them
# in vain: that one's folder is made from this one's.
LONE = "sid"

# A frozen snapshot's Release file is past its date; its packages are pinned by hash all the same. Images of
# Debian turn the package cache off: each call of apt would take 1.1 s of CPU time instead of 0.1.
OPTIONS = """\
Dir::Cache::pkgcache "pkgcache.bin";
Dir::Cache::srcpkgcache "srcpkgcache.bin";
Acquire::Check-Valid-Until "false";
Acquire::Retries "3";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11-icons::DefaultEnabled "false";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
Dir::Log "/dev/null";
"""

_INST = re.compile(r"^Inst (\S+) \((\S+) ([^\[]*)")
_MISSING = re.compile(r"^E: (?:Unable to locate package|Package '?)\s*([a-z0-9][a-z0-9+.-]+)", re.MULTILINE)
_NOT_SERVED = re.compile(
    r"^E: (?:Version '[^']*' for|Unable to locate package) '?([a-z0-9][a-z0-9+.-]+)", re.M
)
_NO_NETWORK = ("Could not resolve", "Could not connect", "Temporary failure resolving", "Unable to connect")
_NO_RELEASE = "does not have a Release file"
_SUITE = re.compile(r"[a-z][a-z0-9-]*(@[0-9]{8}(T[0-9]{6}Z)?)?")


@dataclass(frozen=True, slots=True)
class SourcePackage:
    """A source package of a suite: its version and files."""

    name: str
    version: str
    files: tuple[FilePin, ...]


def _limits(*, quoted: bool = False) -> Iterator[str]:
    """apt's settings of how long a host may be silent, where somebody said that."""
    patience = current()
    if patience is not None:
        for name, value in (("http::Timeout", max(round(patience.seconds), 1)), ("Retries", 0)):
            yield f'Acquire::{name} "{value}"' if quoted else f"Acquire::{name}={value}"


class DebianArchive:
    """One suite of the Debian archive, through a private apt folder. `components` are the archive's areas.

    `over` is a suite below an incomplete one such as experimental: all packages come from it but those of the
    source packages `takes`, and source packages do. "sid@20261101" is a suite of that day, from the mirror of
    snapshots that the settings name.
    """

    def __init__(
        self,
        tools: Tools,
        suite: str,
        architecture: str,
        components: Sequence[str] = ("main",),
        *,
        over: str = "",
        takes: Sequence[str] = (),
    ):
        if not _SUITE.fullmatch(suite):
            raise InputError(
                f"{suite!r} is not the name of a Debian suite",
                cause="a suite has lowercase letters, digits, dots and dashes only",
                next_step="use the name of a suite, such as trixie or sid",
            )
        self.tools = tools
        parts = (suite, over and f"over-{over}", architecture)
        self.folder = tools.home.apt / "-".join(filter(None, parts))
        self.suite, _, self.snapshot = suite.partition("@")
        self.below = over or self.suite
        self.takes = tuple(takes)
        self.architecture = architecture
        self.components = tuple(components)

    def refresh(self) -> None:
        """Make the apt folder if need be, and get the newest package lists. Raises NetworkError."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with asked(f"the archive of Debian {self.suite}"):
            self._refresh()

    def prepare(self) -> None:
        """Make the private apt folder if need be. Raises NetworkError."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with self._lock():
            if not self._configured.exists():
                self._create()

    def _refresh(self) -> None:
        with self._lock():
            if not self._configured.exists():
                self._create()
            limits = [word for option in _limits() for word in ("-o", option)]
            completed = self.apt("apt-get", *limits, "update", "--error-on=any", seconds=within(1800))
        if not completed.ok:
            raise archive_failure(
                f"the package lists of Debian {self.suite} could not be fetched",
                completed,
                self.folder,
                "check the network and the machine's own apt (apt-get update), then try again",
            )

    @property
    def _configured(self) -> Path:
        """There once the folder is whole."""
        return self.folder / "etc/apt/tools.conf"

    def _lock(self) -> FileLock:
        return FileLock(self.folder.with_suffix(".lock"))

    def _create(self) -> None:
        for suite in dict.fromkeys((self.below, LONE)):
            completed = self._bootstrap(suite)
            if completed.ok or _NO_RELEASE not in completed.stderr:
                break
        if not completed.ok:
            raise archive_failure(
                f"mmdebstrap cannot read an archive with the suite {self.below}",
                completed,
                self.folder,
                "check the network, then try again",
            )
        listed = self.folder / "etc/apt/sources.list"
        entries = [line for line in listed.read_text().splitlines() if line.startswith("deb ")]
        binary = [line.replace(f" {suite} ", f" {self.below} ") for line in entries]
        above = [line.replace(f" {self.below} ", f" {self.suite} ") for line in binary]
        sources = [f"deb-src {line[4:]}" for line in binary]
        listed.write_text("\n".join(dict.fromkeys([*binary, *above, *sources])) + "\n")
        for name in ("etc/apt/preferences.d", "var/cache/apt/archives/partial", "var/lib/apt/lists/partial"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        if self.takes:
            packages = " ".join(f"src:{name}" for name in self.takes)
            preferred = f"Package: {packages}\nPin: release a={self.suite}\nPin-Priority: 990\n"
            write_atomic(self.folder / "etc/apt/preferences.d/takes", preferred)
        write_atomic(self._configured, self._configuration())

    def _bootstrap(self, suite: str) -> process.Finished:
        """The folder as mmdebstrap makes it for a suite, with the mirror that it finds."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        words = [
            "mmdebstrap",
            "--simulate",
            "--mode=root",
            "--variant=custom",
            "--skip=check/qemu",  # lists are read for another architecture too: nothing of it is run
            "--skip=check/empty",
            f"--keyring={_keys()}",
            f"--architectures={self.architecture}",
            f"--components={','.join(self.components)}",
            '--aptopt=Acquire::Check-Valid-Until "false"',
            *(f"--aptopt={option}" for option in _limits(quoted=True)),
            suite,
            str(ARCHIVE),
            *([debian_snapshot(self.snapshot)] if self.snapshot else []),
        ]
        return self.tools.run(words, archive=self.folder, network=True, seconds=within(600))

    def _configuration(self) -> str:
        return (
            f'Dir "{ARCHIVE}/";\n'
            f'Dir::State::status "{ARCHIVE}/var/lib/dpkg/status";\n'
            f'Dir::Etc::TrustedParts "{_keys()}/";\n'
            f'APT::Architecture "{self.architecture}";\n'
            f'APT::Architectures {{ "{self.architecture}"; }};\n' + OPTIONS
        )

    def apt(
        self, program: str, *words: str, files: Path | None = None, seconds: float = 1800
    ) -> process.Finished:
        """Run a program of apt with the private folder; `files` is where it works.

        A status other than 0 raises nothing.
        """
        command = [program, f"--config-file={ARCHIVE}/etc/apt/tools.conf", *words]
        return self.tools.run(command, archive=self.folder, files=files, network=True, seconds=seconds)

    def resolve(self, packages: Iterable[str], kept: Iterable[FilePin] = ()) -> tuple[FilePin, ...]:
        """The exact set that installs `packages` on top of the essential ones, in the order of names.

        Packages `kept` stay in their version where the suite still has it and it fits. Raises InputError for
        a package that the suite has not, ConflictError where no set exists.
        """
        requested = sorted(set(packages))
        completed = self._keeping(requested, kept) or self._simulate(requested)
        if not completed.ok:
            raise self._explain(completed.stderr + completed.stdout, requested)
        chosen = [match.groups() for line in completed.stdout.splitlines() if (match := _INST.match(line))]
        stanzas = self._stanzas((name, version) for name, version, _ in chosen)
        pins = []
        for name, version, archive in chosen:
            suite = self.suite if f":{self.suite}" in archive else self.below
            pins.append(self._pin(stanzas[name.split(":")[0], version], suite))
        return tuple(sorted(pins, key=lambda pin: pin.filename))

    def _stanzas(self, packages: Iterable[tuple[str, str]]) -> dict[tuple[str, str], dict[str, str]]:
        """What the signed lists say of packages, by name and version; what they have not is left out."""
        listed = self.apt("apt-cache", "show", "--", *(f"{name}={version}" for name, version in packages))
        return {
            (stanza["Package"], stanza["Version"]): stanza
            for stanza in parse_stanzas(listed.stdout)
            if stanza["Architecture"] in (self.architecture, "all")
        }

    def signed(self, packages: Iterable[DebianOrigin]) -> set[str]:
        """The hashes that the signed lists have of packages in their versions. Raises NetworkError."""
        if not self._configured.exists():
            self.refresh()
        stanzas = self._stanzas((package.package, package.version) for package in packages)
        return {stanza["SHA256"] for stanza in stanzas.values() if "SHA256" in stanza}

    def _simulate(self, words: Sequence[str]) -> process.Finished:
        return self.apt("apt-get", "--simulate", "install", "--", "?essential", "apt", *words)

    def _keeping(self, requested: Sequence[str], locked: Iterable[FilePin]) -> process.Finished | None:
        """The same with what is kept in its version; None where that has no answer."""
        versions = {
            pin.origin.package: pin.origin.version for pin in locked if isinstance(pin.origin, DebianOrigin)
        }
        while versions:
            exactly = [f"{name}={version}" for name, version in versions.items()]
            completed = self._simulate([*(name for name in requested if name not in versions), *exactly])
            if completed.ok:
                return completed
            missing = set(_NOT_SERVED.findall(completed.stderr)) & set(versions)
            if not missing:
                return None
            versions = {name: version for name, version in versions.items() if name not in missing}
        return None

    def _pin(self, stanza: dict[str, str], suite: str) -> FilePin:
        return FilePin(
            filename=Path(stanza["Filename"]).name,
            sha256=stanza["SHA256"],
            size=int(stanza["Size"]),
            origin=DebianOrigin(
                suite=self._named(suite),
                package=stanza["Package"],
                version=stanza["Version"],
                architecture=self.architecture,
            ),
        )

    def _named(self, suite: str) -> str:
        return f"{suite}@{self.snapshot}" if self.snapshot else suite

    def _explain(self, output: str, requested: Sequence[str]) -> InputError | ConflictError:
        missing = sorted(set(_MISSING.findall(output)))
        if missing:
            names = self.apt("apt-cache", "pkgnames").stdout.split()
            nearest = {name: get_close_matches(name, names, n=3, cutoff=0.75) for name in missing}
            return InputError(
                f"Debian {self.suite} has no package {', '.join(missing)}",
                cause="; ".join(f"near {name}: {', '.join(near)}" for name, near in nearest.items() if near)
                or "the name is not known there",
                next_step="correct the name in the catalog's system.toml or in the recipe's needs",
            )
        return ConflictError(
            f"no set of packages of Debian {self.suite} satisfies {', '.join(requested)}",
            cause=last_error(output),
            detail="\n".join(line for line in output.splitlines() if " : " in line or line.startswith("E:")),
            next_step="use another suite, or try again later (sid is often inconsistent for some hours)",
        )

    def package_version(self, package: str) -> str:
        """The upstream version of the newest package of that name. Raises InputError where there is none."""
        shown = self.apt("apt-cache", "show", "--no-all-versions", package)
        stanza = next(parse_stanzas(shown.stdout), None)
        if stanza is None:
            raise self._explain(f"E: Unable to locate package {package}", [package])
        return upstream_version(stanza["Version"])

    def source(self, package: str, version: str | None = None) -> SourcePackage:
        """The newest source package of that name, or the version named. Raises FetchError."""
        shown = self.apt("apt-cache", "showsrc", package)
        stanzas = [
            stanza
            for stanza in parse_stanzas(shown.stdout)
            if stanza.get("Package") == package and (version is None or stanza["Version"] == version)
        ]
        if not stanzas:
            raise FetchError(
                f"Debian {self.suite} has no source package {package}{f' {version}' if version else ''}",
                cause="the archive has newer versions only, or does not know the name",
                next_step="run rocwright lock again, or name another source in the recipe",
            )
        stanza = stanzas[-1]
        origin = DebianSourceOrigin(
            suite=self._named(self.below),
            package=package,
            version=stanza["Version"],
            architecture=self.architecture,
        )
        rows = (line.split() for line in stanza["Checksums-Sha256"].splitlines() if line.strip())
        files = tuple(
            FilePin(filename=name, sha256=digest, size=int(size), origin=origin)
            for digest, size, name in rows
        )
        return SourcePackage(name=package, version=stanza["Version"], files=files)

    def download(self, pins: Sequence[FilePin], folder: Path) -> None:
        """Download packages or source files by name and version into `folder`; the caller checks the hashes.

        Raises FetchError that names what the archive does not carry any more.
        """
        if not self._configured.exists():
            # a lock that another machine made
            self.refresh()
        folder.mkdir(parents=True, exist_ok=True)
        failed = self._download_packages(pins, folder) + self._download_sources(pins, folder)
        _plain_names(folder)
        # an archive may lack files of a source package that nobody asked for
        if not failed or not _absent(pins, folder):
            return
        if any(sign in failed for sign in _NO_NETWORK):
            raise NetworkError(
                f"the archive of Debian {self.suite} does not answer",
                cause=last_error(failed),
                next_step="check the network and the machine's own apt, then try again: finished "
                "downloads are kept",
            )
        raise FetchError(
            f"Debian {self.suite} no longer has all files of the lock",
            cause=f"missing: {', '.join(_absent(pins, folder))}",
            detail="\n".join(line for line in failed.splitlines() if line.startswith("E:"))[:4000],
            next_step="rocwright lock takes today's; --base debian:sid@YYYYMMDD takes those of a day, from "
            "the mirror that debian_snapshots in config.toml names",
        )

    def _download_packages(self, pins: Sequence[FilePin], folder: Path) -> str:
        origins = [pin.origin for pin in pins if isinstance(pin.origin, DebianOrigin)]
        if not origins:
            return ""
        words = [f"{origin.package}={origin.version}" for origin in origins]
        completed = self.apt("apt-get", "download", "--", *words, files=folder)
        return "" if completed.ok else completed.stderr

    def _download_sources(self, pins: Sequence[FilePin], folder: Path) -> str:
        sources: defaultdict[str, list[str]] = defaultdict(list)
        for pin in pins:
            if isinstance(pin.origin, DebianSourceOrigin):
                sources[f"{pin.origin.package}={pin.origin.version}"].append(pin.filename)
        failed = ""
        for source, filenames in sorted(sources.items()):
            only = ["--tar-only"] if all(".orig.tar." in name for name in filenames) else []
            completed = self.apt("apt-get", "source", "--download-only", *only, "--", source, files=folder)
            failed += "" if completed.ok else completed.stderr
        return failed


def _keys() -> str:
    """Return the folder of keys as the tools root sees it: that of the machine's apt if it has Debian's."""
    folder = Path("/etc/apt/trusted.gpg.d")
    return str(folder) if any(folder.glob("debian-archive-*")) else "/usr/share/keyrings"


def _absent(pins: Sequence[FilePin], folder: Path) -> list[str]:
    return [pin.filename for pin in pins if not (folder / pin.filename).exists()]


def _plain_names(folder: Path) -> None:
    # apt writes the colon of an epoch as %3a; the archive's own file names leave the epoch out
    for path in folder.glob("*_*%3a*"):
        name, version, suffix = path.name.split("_", 2)
        path.rename(folder / f"{name}_{version.split('%3a', 1)[1]}_{suffix}")
