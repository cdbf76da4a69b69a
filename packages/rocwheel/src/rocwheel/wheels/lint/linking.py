"""Of the libraries in a wheel: what they need and nobody brings, and folders searched that should not be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from auditwheel.architecture import Architecture
from auditwheel.libc import Libc
from auditwheel.policy import Policy, WheelPolicies

from rocwheel.wheels.lint.model import Grade, LintFinding
from rocwheel.wheels.needed import Linkage, inside_folders, of_system

ARCHITECTURES = {62: "x86_64", 183: "aarch64", 21: "ppc64le", 22: "s390x", 243: "riscv64", 258: "loongarch64"}
"""What a platform tag calls a 64-bit ELF machine, by e_machine (PEP 513, PEP 599; the ELF specification)."""


def missing_libraries(libraries: Mapping[str, Linkage]) -> dict[str, tuple[str, ...]]:
    """Libraries that others of the wheel need and that are neither in it nor every system's: by whom.

    `libraries` are the wheel's own, by path. One counts as in the wheel where its name or SONAME is there.
    """
    inside = {PurePosixPath(path).name for path in libraries} | {
        library.soname for library in libraries.values()
    }
    missing: dict[str, list[str]] = {}
    for path, library in libraries.items():
        for name in library.needed:
            if name not in inside and not of_system(name):
                missing.setdefault(name, []).append(path)
    return {name: tuple(paths) for name, paths in sorted(missing.items())}


def linking_findings(libraries: Mapping[str, Linkage], declared: Iterable[str] = ()) -> Iterator[LintFinding]:
    """Libraries from elsewhere, and search paths out of the wheel; `declared` are its requirements' names."""
    requirements = ", ".join(declared) or "none"
    for name, paths in missing_libraries(libraries).items():
        yield LintFinding(
            grade=Grade.WARNING,
            kind="library from elsewhere",
            path=paths[0],
            what=f"{name} is needed by {_some(paths)} but not in the wheel, which requires: {requirements}",
            next_step="install the package that provides it, or bundle it with `rocwheel repair`",
        )
    for path, library in libraries.items():
        strange = [
            folder for folder in library.search_path if not any(True for _ in inside_folders([folder], path))
        ]
        relative = [folder for folder in strange if "$ORIGIN" in folder.replace("${ORIGIN}", "$ORIGIN")]
        fixed = [folder for folder in strange if folder not in relative]
        if fixed:
            yield LintFinding(
                grade=Grade.WARNING,
                kind="search path",
                path=path,
                what=f"libraries are looked for in {', '.join(fixed)}, wherever the wheel is installed",
                next_step="link with -Wl,-rpath,'$ORIGIN', or run patchelf --set-rpath on the built file",
            )
        if relative:
            yield LintFinding(
                grade=Grade.NOTE,
                kind="search path",
                path=path,
                what=f"libraries are looked for in {', '.join(relative)}, in another package",
            )


def policy_findings(libraries: Mapping[str, Linkage], platforms: Iterable[str]) -> Iterator[LintFinding]:
    """Where the libraries want more than the platform tags promise (PEP 600; policies: auditwheel's data)."""
    for platform in platforms:
        policies = _policies(platform)
        claimed = next((policy for policy in policies if platform in (policy.name, *policy.aliases)), None)
        if policies and claimed is None:
            yield LintFinding(
                grade=Grade.NOTE,
                kind="platform tag",
                path="",
                what=f"no policy is known for {platform}: symbol versions were not compared with it",
            )
        if claimed is None:
            continue
        for path, library in libraries.items():
            excess = {
                version
                for versions in library.versions.values()
                for version in versions
                if not _promised(version, claimed)
            }
            if excess:
                fits = next(
                    (
                        policy.name
                        for policy in policies
                        if all(_promised(version, policy) for version in excess)
                    ),
                    "linux",
                )
                yield LintFinding(
                    grade=Grade.ERROR,
                    kind="platform tag",
                    path=path,
                    what=f"it needs {', '.join(sorted(excess))}, which {platform} does not promise",
                    next_step=f"build on an older system, or tag the wheel {fits}",
                )


def machine_findings(libraries: Mapping[str, Linkage], platforms: Iterable[str]) -> Iterator[LintFinding]:
    """Libraries of another machine than the platform tags name."""
    tags = tuple(platforms)
    for path, library in libraries.items():
        machine = ARCHITECTURES.get(library.machine, f"ELF machine {library.machine}")
        wrong = [tag for tag in tags if tag == "any" or not tag.endswith(f"_{machine}")]
        if wrong and not any(tag.startswith("macosx") for tag in wrong):
            yield LintFinding(
                grade=Grade.ERROR,
                kind="platform tag",
                path=path,
                what=f"it is for {machine}; the wheel says {', '.join(wrong)}",
                next_step="give the wheel the tag of what it contains",
            )


def _policies(platform: str) -> list[Policy]:
    """The policies of a platform tag's machine, the most demanding last; nothing for other systems."""
    libc = Libc.MUSL if platform.startswith("musllinux") else Libc.GLIBC
    machine = next(
        (architecture for architecture in Architecture if platform.endswith(f"_{architecture.value}")), None
    )
    if machine is None or not platform.startswith(("manylinux", "musllinux")):
        return []
    name = platform.removesuffix(f"_{machine.value}")
    policies = WheelPolicies(libc=libc, arch=machine, musl_policy=name if libc is Libc.MUSL else None)
    return sorted(policies, key=lambda policy: -policy.priority)


def _promised(version: str, policy: Policy) -> bool:
    """Whether a symbol version (GLIBC_2.34) is among a policy's, or of a library that none rules."""
    family, _, number = version.partition("_")
    ruled = policy.symbol_versions.get(family)
    return ruled is None or not number or number in ruled


def _some(paths: tuple[str, ...]) -> str:
    return paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
