"""A request and the catalog -> components, versions and a provider of ROCm that fit together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from rocbase.errors import ConflictError
from rocwright.catalog.base import Base, BaseRelease, Provided, with_python
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Component
from rocwright.catalog.provider import EVERYWHERE, KINDS, Provider
from rocwright.catalog.target import Refusal
from rocwright.plan.resolve.aliases import PYTHON as PYTHON
from rocwright.plan.resolve.aliases import ROCM as ROCM
from rocwright.plan.resolve.aliases import catalog_for, version_pins
from rocwright.plan.resolve.constraints import Requirement, VersionCandidate, solve
from rocwright.plan.resolve.model import Request
from rocwright.plan.resolve.validate import ANOTHER_BASE as ANOTHER_BASE
from rocwright.plan.resolve.validate import check_request
from rocwright.plan.resolve.without_code import lacking, library_lines, to_build

# Comes along where anything is installed before a build: a wheel of it runs as it is.
INSTALLER = "pip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a lock will hold: `components` in an order in which each comes after what it needs.

    `versions` are of all that was chosen, `provided` of what the base brings along; `notes` are for the user.
    """

    base: Base
    release: BaseRelease
    provider: Provider | None
    components: tuple[Component, ...]
    versions: Mapping[str, str]
    provided: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def tools(self) -> tuple[str, ...]:
        """The Python requirements of all builds: tools in their chosen version, and what recipes name."""
        tools = [
            f"{name}=={version}"
            for name, version in self.versions.items()
            if name not in self.provided and name not in {component.name for component in self.components}
        ]
        named = [
            name
            for component in self.components
            for name in component.python_of(self.versions[component.name])
        ]
        return tuple(sorted({*tools, *named, INSTALLER})) if named else ()

    @property
    def built_on(self) -> dict[str, str]:
        """The versions of components, Python and ROCm: the tools of a build are its own affair."""
        names = {*(component.name for component in self.components), PYTHON, ROCM}
        return {name: version for name, version in self.versions.items() if name in names}

    @property
    def run_wheels(self) -> tuple[str, ...]:
        """The Python requirements of checks that import what was built, beside the base's own packages."""
        if not any(check.wheels for component in self.components for check in component.check):
            return ()
        run = {
            name
            for component in self.components
            for name in component.system_of(self.versions[component.name]).run
        }
        brought = {requirement for name, requirement in self.release.wheels.items() if name in run}
        named = {name for component in self.components for name in component.python_run}
        return tuple(sorted({self._pinned(name) for name in named} | brought))

    def _pinned(self, name: str) -> str:
        """A Python package in the version that was chosen, where it is a component."""
        return f"{name}=={self.versions[name]}" if name in self.versions else name


def choose(
    request: Request,
    catalog: Catalog,
    version_of: Callable[[Provided], str],
    constraints: Sequence[Requirement] = (),
    prefer: Mapping[str, str] = MappingProxyType({}),
) -> Choice:
    """Versions of all components of a request, and of all that these need; `solve` explains `constraints`
    and `prefer`.

    `version_of` tells the version of a package that a base brings along. Where a library of ROCm that is used
    has no code for a GPU asked for, it is built along, or must be accepted. Raises InputError for a name that
    is not known, ConflictError with the chain of reasons.
    """
    catalog = catalog_for(request, catalog)
    stack = catalog.stack(request.stack)
    requested = (*stack.components, *request.extra)
    choice = _choice(request, catalog, requested, version_of, constraints, prefer)
    lacks = lacking(
        request, choice.provider, choice.versions.get(ROCM, ""), choice.components, choice.versions
    )
    built = [name for name in to_build(lacks, request, stack, catalog) if name not in requested]
    if built:
        choice = _choice(request, catalog, (*requested, *built), version_of, constraints, prefer)
    return replace(choice, notes=tuple(library_lines(lacks, request, built)))


def _choice(
    request: Request,
    catalog: Catalog,
    requested: Sequence[str],
    version_of: Callable[[Provided], str],
    constraints: Sequence[Requirement],
    prefer: Mapping[str, str],
) -> Choice:
    base, release = check_request(request, catalog)
    offered = {name: package for name, package in base.provided(release).items() if name not in requested}
    needed = _reachable(catalog, requested, offered)

    def version(package: Provided) -> str:
        return version_of(package) if package.package else package.version

    candidates = {
        name: [VersionCandidate(name, version(package), _origin_of(request.base, package))]
        for name, package in offered.items()
        if name in needed and name != ROCM
    }
    if release.python:
        pythons = (release.python, *(python.version for python in release.pythons))
        candidates[PYTHON] = [VersionCandidate(PYTHON, python, request.base) for python in pythons]
    provider = None
    if ROCM in needed:
        provider, rocm_versions = choose_provider(request, catalog, offered.get(ROCM), version_of)
        if rocm_versions:
            candidates[ROCM] = rocm_versions
    pins = version_pins(request.versions)
    chosen = solve(catalog, requested, pins, candidates, request.gpu, constraints, prefer)
    provided = {name: candidate.version for name, candidate in chosen.items() if candidate.provided}
    built = [name for name in chosen if name not in provided and catalog.component(name).kind != "tool"]
    for name in built:
        _check_is_there(catalog.component(name), request)
    base, release = with_python(base, release, provided.get(PYTHON, ""))
    return Choice(
        base=base,
        release=release,
        provider=provider,
        components=tuple(catalog.component(name) for name in _in_order(catalog, chosen, built)),
        versions={name: candidate.version for name, candidate in chosen.items()},
        provided=provided,
    )


def choose_provider(
    request: Request, catalog: Catalog, packaged: Provided | None, version_of: Callable[[Provided], str]
) -> tuple[Provider, list[VersionCandidate]]:
    """Where ROCm comes from, and the versions there that serve every GPU asked for.

    As asked for, as the stack's row for this GPU and base says, or the first that serves. `packaged` is what
    the base brings along. A provider that builds ROCm has no versions here: its recipe has.
    Raises InputError for an unknown provider, ConflictError that names those that serve.
    """

    candidates = _versions(request, catalog, packaged, version_of)
    serving = _serving(request, catalog, candidates)
    refusals = [] if serving else _refusals(request, catalog, packaged, version_of)
    # rows are of x86_64
    rows = () if request.other_architecture else catalog.stack(request.stack).row
    row_providers = (row.provider for row in rows if row.base == request.base and row.gpu in request.gpu)
    named = request.provider or next(row_providers, "")
    if (named and catalog.provider(named) not in serving) or not serving:
        alternatives, architecture = [provider.name for provider in serving], request.other_architecture
        nobody, instead = "the catalog has no provider that does", ANOTHER_BASE
        if architecture:
            nobody = f"no fact of the catalog says that there is ROCm for {architecture} on {request.base}"
            instead = f"--arch {EVERYWHERE[0]}, or a stack that needs no ROCm"
        if refusals:
            nobody = "; ".join(refusals)
            opening = _opening(request, catalog)
            instead = f"{' '.join(opening)}, or {ANOTHER_BASE}" if opening else instead
        elif not alternatives and len(request.gpu) > 1:
            nobody = "; ".join(_alone(gpu, request, catalog, packaged, version_of) for gpu in request.gpu)
        raise ConflictError(
            f"{f'{named} has no ROCm for' if named else 'no provider of ROCm serves'} "
            f"{', '.join(request.gpu)} on {request.base}{architecture and f' for {architecture}'}",
            cause=f"these have: {', '.join(alternatives)}" if alternatives else nobody,
            next_step=f'provider = "{alternatives[0]}" in rocwright.toml' if alternatives else instead,
        )
    provider = catalog.provider(named) if named else serving[0]
    return provider, candidates[provider.name]


def _versions(
    request: Request, catalog: Catalog, packaged: Provided | None, version_of: Callable[[Provided], str]
) -> dict[str, list[VersionCandidate]]:
    """The versions of each provider that serve every GPU of a request."""
    return {
        name: [
            VersionCandidate(ROCM, version, f"{name} on {request.base}")
            for version in _released(provider, packaged, version_of)
            if _serves(provider, version, request, catalog)
        ]
        for name, provider in catalog.providers.items()
    }


def _released(
    provider: Provider, packaged: Provided | None, version_of: Callable[[Provided], str]
) -> tuple[str, ...]:
    """The versions that a provider has ready: a base brings along those of its packages."""
    if provider.kind == "source":
        return ()
    if provider.kind == "packages":
        return (version_of(packaged) if packaged.package else packaged.version,) if packaged else ()
    return provider.versions


def _refusals(
    request: Request, catalog: Catalog, packaged: Provided | None, version_of: Callable[[Provided], str]
) -> list[str]:
    """Explain which runtimes that would serve do not open which GPU, a line for each GPU and reason."""
    lines = {
        (gpu, refusal.reason): f"the runtime of ROCm {version} does not open {gpu}: {refusal.reason}"
        for provider in catalog.providers.values()
        for version in _released(provider, packaged, version_of)
        for gpu in request.gpu
        if provider.evidence(gpu, version, request.base, request.architecture)
        and (refusal := _refusal(gpu, version, request, catalog))
    }
    return [*lines.values()]


def _refusal(gpu: str, version: str, request: Request, catalog: Catalog) -> Refusal | None:
    """Return why the runtime of a ROCm does not open a GPU; None if it or a runtime built here does."""
    built = (*catalog.stack(request.stack).components, *request.extra)
    opened = any(gpu in catalog.components[name].opens for name in built if name in catalog.components)
    return None if opened else catalog.target(gpu).refusal(version)


def _opening(request: Request, catalog: Catalog) -> list[str]:
    """Return the options that add the stack's runtimes which open a GPU of a request."""
    return [
        f"--with {name}"
        for name in catalog.stack(request.stack).optional
        if set(catalog.component(name).opens) & set(request.gpu)
    ]


def _serving(
    request: Request, catalog: Catalog, candidates: Mapping[str, Sequence[VersionCandidate]]
) -> list[Provider]:
    """The providers that serve every GPU of a request, those that cost a user least first."""
    able = [
        provider
        for provider in catalog.providers.values()
        if candidates[provider.name] or _builds(provider, request, catalog)
    ]
    return sorted(able, key=lambda provider: KINDS.index(provider.kind))


def _alone(
    gpu: str,
    request: Request,
    catalog: Catalog,
    packaged: Provided | None,
    version_of: Callable[[Provided], str],
) -> str:
    """Who serves one of several GPUs on the base, in words."""
    alone = request.model_copy(update={"gpu": (gpu,)})
    able = _serving(alone, catalog, _versions(alone, catalog, packaged, version_of))
    return f"{gpu} alone: {' or '.join(provider.name for provider in able) or 'no provider'}"


def _check_is_there(component: Component, request: Request) -> None:
    if component.architectures and request.architecture not in component.architectures:
        raise ConflictError(
            f"{component.name} is not there for {request.architecture}",
            cause=f"its recipe is for {' and '.join(component.architectures)}",
            next_step=f"--arch {component.architectures[0]}, or leave it out",
        )


def _serves(provider: Provider, version: str, request: Request, catalog: Catalog) -> bool:
    if any(_refusal(gpu, version, request, catalog) for gpu in request.gpu):
        return False
    if not provider.serves:
        return request.architecture in EVERYWHERE
    return all(provider.evidence(gpu, version, request.base, request.architecture) for gpu in request.gpu)


def _builds(provider: Provider, request: Request, catalog: Catalog) -> bool:
    return (
        provider.kind == "source"
        and ROCM in catalog.components
        and (
            not provider.serves
            or any(
                _serves(provider, release.version, request, catalog)
                for release in catalog.component(ROCM).release
            )
        )
    )


def _origin_of(base: str, package: Provided) -> str:
    return f"{base} (package {package.package})" if package.package else base


def _reachable(catalog: Catalog, requested: Iterable[str], offered: Mapping[str, Provided]) -> set[str]:
    """Every component that any version of the wanted ones may need, short of what is offered."""
    reachable: set[str] = set()
    waiting = list(requested)
    while waiting:
        name = waiting.pop()
        if name in reachable:
            continue
        reachable.add(name)
        if name not in offered and name in catalog.components:
            waiting += [need for release in catalog.component(name).release for need in release.needs]
    return reachable


def _in_order(catalog: Catalog, chosen: Mapping[str, VersionCandidate], built: Iterable[str]) -> list[str]:
    """Names so that each comes after what it needs."""
    names = list(built)
    ordered: list[str] = []

    def add(name: str) -> None:
        if name in ordered or name not in names:
            return
        for need in catalog.component(name).takes(chosen[name].version, chosen):
            add(need)
        ordered.append(name)

    for name in names:
        add(name)
    return ordered
