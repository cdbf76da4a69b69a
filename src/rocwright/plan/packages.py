"""The steps of Python packages: those that are fetched, and those made from a source distribution."""

from __future__ import annotations

from collections.abc import Iterator

from rocwright.catalog.base import Base
from rocwright.model.steps import (
    FetchAction,
    FilePin,
    Input,
    OutputSpec,
    Resources,
    RunAction,
    Step,
    TreeAction,
)
from rocwright.plan.domain import digests, domain_of
from rocwright.plan.resolve.model import LockedSdist

WHEEL_OUTPUT = OutputSpec(name="wheel", pattern="*.whl")

# The step that fetches what checks install beside the wheels that were built.
RUN_WHEELS = "python/check"

# A source distribution becomes a wheel, by what is installed and nothing else.
BUILD_WHEEL = (
    "python3 -m pip wheel --no-deps --no-index --no-build-isolation --no-cache-dir --wheel-dir $OUT .",
)


def fetched(name: str, component: str, files: tuple[FilePin, ...], pending: str = "") -> Step:
    """The step that fetches these files."""
    return Step(
        name=name,
        component=component,
        action=FetchAction(files=files, pending=pending),
        resources=Resources(disk=sum(pin.size for pin in files), seconds=10),
    )


def wheel_steps(
    part: str, sdist: LockedSdist, root: Step, base: Base, interpreter: str = ""
) -> Iterator[Step]:
    """From a source distribution to its wheel, built by exactly what the lock says that builds it."""
    name = f"{part}/{sdist.name}"
    source = fetched(f"{name}/source", sdist.name, sdist.files)
    requires = fetched(f"{name}/requires", sdist.name, sdist.requires)
    tree = Step(
        name=f"{name}/tree",
        component=sdist.name,
        action=TreeAction(version=sdist.version),
        inputs=(Input(name="source", key=source.key, output="*"),),
        resources=Resources(disk=10 * source.resources.disk, seconds=5, limit=3600),
    )
    yield from (source, requires, tree)
    yield Step(
        name=name,
        component=sdist.name,
        action=RunAction(
            commands=BUILD_WHEEL,
            outputs=(WHEEL_OUTPUT,),
            install=("requires",),
            python=interpreter,
            compiler_reads=base.compiler_reads,
        ),
        inputs=(
            Input(name="root", key=root.key, output="root"),
            Input(name="src", key=tree.key, output="tree"),
            Input(name="requires", key=requires.key, output="*"),
        ),
        resources=Resources(memory=1024**3, disk=1024**3, seconds=30, limit=3600),
        domain=domain_of(
            sdist.name,
            root=root.key,
            sources=digests(sdist.files),
            commands=BUILD_WHEEL,
            installed=digests(sdist.requires),
        ),
    )
