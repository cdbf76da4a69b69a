"""A stack of as many components as wanted, and its lock: for what must not grow faster than its steps."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

from rocwright.catalog.load import Catalog, builtin_catalog
from rocwright.catalog.model import Component, Release, Stack
from rocwright.catalog.place import BuiltinPlace
from rocwright.model.steps import DebianOrigin, FilePin, GitOrigin, OutputSpec
from rocwright.plan.resolve.model import Lock, LockedComponent, LockedRoot, Request
from rocwright.plan.resolve.validate import wanted_packages

PACKAGES = 400
"""Packages in the root file system."""

ENVIRONMENT = 20
"""Variables in each step's environment."""

STACK = "made-up"


def many_components(count: int) -> Catalog:
    """A catalog with one stack, of that many components."""
    release = Release(version="1.0", places=(BuiltinPlace(builtin="it"),), source="made up")
    components = {
        f"component-{number}": Component(
            name=f"component-{number}",
            summary="made up",
            license="MIT",
            kind="archive",
            release=(release,),
            env={f"VARIABLE_{each}": f"{{version}} {{targets}} {each}" for each in range(ENVIRONMENT)},
            run=("cmake -S . -B build -G Ninja", "cmake --build build", "cmake --install build"),
            output=(OutputSpec(name="archive", pattern="*.tar.gz"),),
        )
        for number in range(count)
    }
    base = next(one for one in builtin_catalog().bases.values() if one.made == "packages")
    stack = Stack(
        name=STACK,
        summary="made up",
        components=tuple(components),
        bases=(base.names[0],),
        source="made up",
    )
    return replace(builtin_catalog(), components=components, stacks={STACK: stack})


def lock_of_all(catalog: Catalog) -> Lock:
    """The lock of that stack."""
    base, release = catalog.base(catalog.stacks[STACK].bases[0])
    packages = tuple(
        FilePin(
            filename=f"package-{count}.deb",
            sha256=_digest(f"package {count}"),
            size=100_000,
            origin=DebianOrigin(
                suite=release.name, package=f"package-{count}", version="1.0-1", architecture="amd64"
            ),
        )
        for count in range(PACKAGES)
    )
    components = tuple(
        LockedComponent(
            name=name,
            version="1.0",
            kind="git",
            place="git",
            files=(
                FilePin(
                    filename=f"{name}.tar.zst",
                    sha256=_digest(name),
                    size=1_000_000,
                    origin=GitOrigin(url="https://example.org/it.git", commit=_digest(name)[:40]),
                ),
            ),
        )
        for name in catalog.components
    )
    versions = {name: one.release[0].version for name, one in catalog.components.items()}
    wanted = wanted_packages(catalog, tuple(catalog.components.values()), versions, base, release, (), False)
    root = LockedRoot(
        role="build",
        base=base.name,
        manager=base.manager,
        suite=release.name,
        architecture="amd64",
        wanted=wanted["build"],
        packages=packages,
    )
    return Lock(
        rocwright="0",
        created="2025-01-01T00:00:00Z",
        request=Request(stack=STACK, gpu=("gfx1151",), base=f"{base.name}:{release.name}"),
        roots=(root,),
        components=components,
    )


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
