"""A wheel that stands alone, made: planned, its libraries changed in a scratch folder, written whole."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from packaging.utils import canonicalize_name

from rocbase.errors import CheckError, InputError
from rocbase.folders.temporary import temporary_folder
from rocwheel.wheels.archive import open_wheel
from rocwheel.wheels.asked import code_target
from rocwheel.wheels.elf import MAGIC
from rocwheel.wheels.metadata import Headers, WheelName, dist_info_folder, parse_name, with_local
from rocwheel.wheels.needed import Linkage, linkage_of
from rocwheel.wheels.repair import patchelf
from rocwheel.wheels.repair.alias import alias_library
from rocwheel.wheels.repair.dlls import MAGIC as DLL_MAGIC
from rocwheel.wheels.repair.facts import the_facts
from rocwheel.wheels.repair.finding import Own
from rocwheel.wheels.repair.licences import licences
from rocwheel.wheels.repair.model import Edit, Lacking, Plan, Request
from rocwheel.wheels.repair.plan import plan_linux
from rocwheel.wheels.repair.platform_tag import platform_tag
from rocwheel.wheels.repair.windows import plan_windows
from rocwheel.wheels.retitle import named, retitled
from rocwheel.wheels.write import WheelFile, write_wheel

LABEL = "standalone"
"""What the local version of a wheel that was made so says."""

MOST_AT_ONCE = min(4, os.cpu_count() or 1)
"""Edits that run side by side; patchelf holds the whole of a library in memory."""

_DATA = re.compile(r"[^/]+\.data/(?:platlib|purelib)/")
_ELSEWHERE = re.compile(r"[^/]+\.data/(?:scripts|data|headers)/")
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A wheel that was written, and by which plan."""

    path: Path
    plan: Plan

    @property
    def size(self) -> int:
        """In bytes."""
        return self.path.stat().st_size


def plan_for(wheel: Path, request: Request) -> Plan:
    """What would be done to a wheel. Raises InputError and CheckError for what cannot be read."""
    with _opened(wheel, _with_targets(request)) as opened:
        return opened.plan


def bundle(wheel: Path, request: Request, out: Path, *, epoch: int) -> Made:
    """Write the wheel with all that it needs of ROCm to `out`: a folder, or a file's path.

    All files get the time `epoch`, in seconds since 1970. Raises CheckError where something that is needed
    was not found, InputError where there is nothing to bring in.
    """
    request = _with_targets(request)
    with _opened(wheel, request) as opened:
        plan = opened.plan
        check_whole(plan, wheel)
        version = with_local(opened.name.version, label(request.targets))
        target = out / named(opened.renamed, version) if out.suffix != ".whl" else out
        if target.name != named(opened.renamed, version):
            raise InputError(
                f"{target.name} is not the name of the repaired wheel",
                cause="bundling libraries changes its version and platform tag",
                next_step=f"use -o FOLDER, or -o {named(opened.renamed, version)}",
            )
        files = retitled([*opened.own_files(), *_added_files(opened)], version)
        write_wheel(target, files, epoch=epoch, copy=True)
    return Made(path=target, plan=plan)


def _with_targets(request: Request) -> Request:
    """The request with targets in the place of other names of GPUs. Raises InputError."""
    return replace(request, targets=tuple(dict.fromkeys(map(code_target, request.targets))))


def label(targets: Sequence[str]) -> str:
    """What is added to the local version: standalone.gfx1151."""
    return ".".join((LABEL, *(re.sub(r"[^a-z0-9]+", ".", target.lower()).strip(".") for target in targets)))


def check_whole(plan: Plan, wheel: Path) -> None:
    """Raise CheckError where something needed was not found, InputError where there is nothing to do."""
    if plan.missing:
        few = ", ".join(lacking.name for lacking in plan.missing[:3]) + (
            ", ..." if len(plan.missing) > 3 else ""
        )
        raise CheckError(
            f"{wheel.name} needs libraries that were not found: {few}",
            detail="\n".join(
                f"{lacking.name}  for {', '.join(lacking.wanted_by)}"
                + (f" ({lacking.why})" if lacking.why else "")
                for lacking in plan.missing
            ),
            cause="this ROCm is not the one the wheel was built with, or is incomplete",
            next_step="give the folders with --rocm and --search, or leave libraries out with --exclude",
        )
    if not plan.libraries:
        raise InputError(
            f"{wheel.name} is already self-contained",
            cause="none of its libraries needs one of ROCm that is outside of the wheel",
            next_step="use it as it is; `rocwheel repair --plan` shows what its libraries need",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A wheel under way: its name and files, a scratch folder with copies of its ELF files, the plan."""

    name: WheelName
    files: tuple[WheelFile, ...]
    copies: dict[str, Path]
    scratch: Path
    plan: Plan

    @property
    def renamed(self) -> WheelName:
        return replace(self.name, platform=self.plan.platform or self.name.platform)

    def own_files(self) -> Iterator[WheelFile]:
        """The wheel's files; those that are changed from the scratch folder, WHEEL with other tags."""
        changed = {edit.place for edit in self.plan.edits}
        wheel_file = f"{dist_info_folder(file.path for file in self.files)}/WHEEL"
        for file in self.files:
            if file.path in changed:
                yield replace(file, content=self.scratch / "new" / file.path)
            elif (text := self.plan.texts.get(installed(file.path))) is not None:
                yield replace(file, content=text.encode(errors="surrogateescape"))
            elif file.path == wheel_file:
                yield replace(file, content=self._wheel(file))
            else:
                yield file

    def _wheel(self, file: WheelFile) -> bytes:
        tags = sorted(map(str, self.renamed.tags))
        return Headers(file.read()).replaced("Tag", tags).as_bytes()


@contextmanager
def _opened(wheel: Path, request: Request) -> Iterator[_Opened]:
    name = parse_name(wheel.name)
    windows = (request.layout or ("windows" if "win" in name.platform else "linux")) == "windows"
    with temporary_folder("bundle") as folder, open_wheel(wheel) as files:
        scratch = Path(folder)
        magic = DLL_MAGIC if windows else MAGIC
        copies = {file.path: copy for file in files if (copy := _copy(file, magic, scratch)) is not None}
        if not copies:
            raise InputError(
                f"{wheel.name} contains no library or program",
                cause=f"no file in it is a {'DLL' if windows else 'Linux library'}",
                next_step="say which kind it holds: --layout linux or --layout windows",
            )
        home = home_in(copies, {file.path for file in files}, name)
        plan = (_plan_windows if windows else _plan_linux)(files, copies, request, home)
        plan = replace(plan, licences=_licences(plan, request, files))
        yield _Opened(name=name, files=tuple(files), copies=copies, scratch=scratch, plan=plan)


def _plan_linux(files: Sequence[WheelFile], copies: Mapping[str, Path], request: Request, home: str) -> Plan:
    own = [
        Own(path=path, installed=installed(path), copy=copy, linkage=linkage)
        for path, copy in copies.items()
        if (linkage := linkage_of(copy)) is not None
    ]
    plan = plan_linux(own, request, the_facts(), home=home, requires=_requires(files))
    adrift = [edit.place for edit in plan.edits if _ELSEWHERE.match(edit.place)]
    reason = "its install path is not known, so no RPATH can lead to the libraries; move it into the package"
    missing = (
        *plan.missing,
        *(Lacking(name=path, wanted_by=("its libraries",), why=reason) for path in adrift),
    )
    plan = replace(plan, missing=missing)
    return replace(plan, platform=_platform(own, plan))


def _plan_windows(
    files: Sequence[WheelFile], copies: Mapping[str, Path], request: Request, home: str
) -> Plan:
    package = home.partition("/")[0]
    init = next((file for file in files if installed(file.path) == f"{package}/__init__.py"), None)
    if init is None:
        raise InputError(
            "the DLLs have no package to go into",
            cause="code in the __init__.py of a package finds them, and no library of this wheel is in one",
            next_step="build the wheel with its libraries inside a package",
        )
    return plan_windows(
        copies,
        request,
        the_facts(),
        home=home,
        requires=_requires(files),
        package_init=init.read().decode(errors="surrogateescape"),
    )


def installed(path: str) -> str:
    """Where a file of a wheel lies once it is installed, seen from site-packages."""
    return _DATA.sub("", path, count=1)


def home_in(libraries: Iterable[str], paths: set[str], name: WheelName) -> str:
    """The folder for what is brought in: inside the package whose libraries need it, else one of its own.

    One with a whole ROCm root's shape, so that libraries find what they read where they look for it.
    """
    tops = Counter(installed(path).partition("/")[0] for path in libraries if "/" in installed(path))
    present = {installed(path) for path in paths}
    package = next((top for top, _ in tops.most_common() if f"{top}/__init__.py" in present), "")
    return f"{package}/_rocm" if package else f"{name.name}.rocm"


def _copy(file: WheelFile, magic: bytes, scratch: Path) -> Path | None:
    """A copy on disk of a file that begins with `magic`; None for any other."""
    pieces = file.pieces()
    first = next(iter(pieces), b"")
    if not first.startswith(magic):
        return None
    copy = scratch / "own" / file.path
    copy.parent.mkdir(parents=True, exist_ok=True)
    with copy.open("wb") as target:
        target.write(first)
        for piece in pieces:
            target.write(piece)
    return copy


def _requires(files: Sequence[WheelFile]) -> list[str]:
    folder = dist_info_folder(file.path for file in files)
    metadata = next((file for file in files if file.path == f"{folder}/METADATA"), None)
    requirements = Headers(metadata.read()).all("Requires-Dist") if metadata is not None else []
    return [
        canonicalize_name(match[0])
        for requirement in requirements
        if (match := _REQUIREMENT.match(requirement.strip()))
    ]


def _licences(plan: Plan, request: Request, files: Sequence[WheelFile]) -> dict[str, Path]:
    """Place in the wheel -> licence file."""
    folder = dist_info_folder(file.path for file in files)
    sources = {library.soname: library.source for library in plan.libraries}
    by_library = licences(sources, request.roots, the_facts())
    return {
        f"{folder}/licenses/{plan.home}/{name}/{path.name}": path
        for name, paths in by_library.items()
        for path in paths
    }


def _platform(own: Sequence[Own], plan: Plan) -> str:
    linkages = [library.linkage for library in own]
    machine = next((linkage.machine for linkage in linkages), 0)
    linkages += [Linkage(versions=library.versions, machine=machine) for library in plan.libraries]
    return platform_tag(linkages, outside=bool(plan.kept_out) or bool(plan.missing))


def _added_files(opened: _Opened) -> list[WheelFile]:
    """What is brought in, changed where the plan says so."""
    plan = opened.plan
    edits = {edit.place: edit for edit in plan.edits}
    sources = {library.place: library.source for library in plan.libraries} | {
        file.place: file.source for file in plan.data
    }
    changed = {place: opened.scratch / "new" / place for place in edits}
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        edited = [
            pool.submit(_edit, edit, sources.get(place) or opened.copies[place], changed[place])
            for place, edit in edits.items()
        ]
        for future in edited:
            future.result()
    files = [
        WheelFile(path=place, content=changed.get(place, source), mode=source.stat().st_mode & 0o777)
        for place, source in sources.items()
    ]
    files += [
        WheelFile(
            path=alias.place, content=alias_library(PurePosixPath(alias.place).name, alias.of, alias.machine)
        )
        for alias in plan.aliases
    ]
    present = {installed(file.path) for file in opened.files}
    files += [
        WheelFile(path=place, content=text.encode())
        for place, text in plan.texts.items()
        if place not in present
    ]
    return files + [WheelFile(path=place, content=source) for place, source in plan.licences.items()]


def _edit(edit: Edit, source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    patchelf.apply(edit, source, target)
