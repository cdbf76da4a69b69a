"""Built wheels into somebody's own Python environment, so that one working copy of what they need stays."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.parser import BytesParser
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from rocbase.errors import CheckError, ConflictError, InputError
from rocbase.folders.temporary import temporary_folder
from rocbase.processes import run as process
from rocbase.processes.python import python_module
from rocwheel.wheels.archive import read_metadata
from rocwheel.wheels.names import read_requirement
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.model import Lock
from rocwright.project import Project, built_outputs, published_wheels
from rocwright.provenance.materials import made_from
from rocwright.provenance.sidecars import lay_file
from rocwright.store.model import Output, verified

GUARD = "guards/single_package.py"

_LIST = """\
import importlib.metadata as m, json
print(json.dumps({d.metadata["Name"]: d.version for d in m.distributions() if d.metadata["Name"]}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel's name, version and requirements, as its own metadata says."""

    path: Path
    name: str
    version: str
    needs: tuple[Requirement, ...]


def install(project: Project, locked: Lock, environment: Path, say: Callable[[str], None]) -> list[Wheel]:
    """Install every wheel of a built stack into a virtual environment, and nothing else.

    The environment keeps exactly one working copy of each package that the stack's recipes guard. Raises
    InputError where there is no environment or no wheel, ConflictError where it has another version of
    something than the wheels were built for, CheckError where a guarded package is not one, or does not work.
    """
    python = environment_python(environment)
    plan = make_plan(locked, project.catalog)
    components = [project.catalog.component(component.name) for component in locked.components]
    guarded = tuple(sorted({name for component in components for name in component.guard}))
    steps = {step.name: step for step in plan.steps}
    built = built_outputs(project, plan)
    outputs = {name: output for name, output in built.items() if output.filename.endswith(".whl")}
    published = first_of_each(published_wheels(project, plan).values())
    if not outputs and not published:
        raise InputError(
            f"the stack {project.request.stack} makes no wheels",
            cause="only wheels are installed into a Python environment",
            next_step=f"its artifacts are in {project.output / project.request.stack}",
        )
    guard = project.catalog.file(GUARD)
    with temporary_folder("install") as folder:
        paths = [Path(folder) / output.filename for output in outputs.values()]
        for path, (name, output) in zip(paths, outputs.items(), strict=True):
            lay_file(project, made_from(steps[name], plan, locked), locked, output, path, say)
        for published_file in published:
            _check_is_wheel(published_file.filename)
            (Path(folder) / published_file.filename).symlink_to(
                verified(project.store, published_file.sha256)
            )
            paths.append(Path(folder) / published_file.filename)
        wheels = [read_wheel(path) for path in paths]
        check_versions(wheels, installed(python), guarded, environment)
        present = [name for name in guarded if name in installed(python)]
        _guard(guard, python, present, Path(folder), importing=False)
        say(f"installing {', '.join(f'{wheel.name} {wheel.version}' for wheel in wheels)} into {environment}")
        _pip_install(python, paths)
        say(f"guard: one {', '.join(guarded)} in {environment}, and it imports")
        _guard(guard, python, guarded, Path(folder), importing=True)
    return wheels


def first_of_each(several: Iterable[Sequence[Output]]) -> list[Output]:
    """The files of published wheels, one of each project: what a component brings holds for later ones."""
    by_name: dict[str, Output] = {}
    for outputs in several:
        for output in outputs:
            by_name.setdefault(canonicalize_name(output.filename.partition("-")[0]), output)
    return list(by_name.values())


def environment_python(environment: Path) -> Path:
    """The Python of a virtual environment. Raises InputError where there is none."""
    python = environment / "bin" / "python"
    if not (environment / "pyvenv.cfg").is_file() or not python.exists():
        raise InputError(
            f"{environment} is not a virtual environment",
            cause="it has no pyvenv.cfg or no bin/python",
            next_step=f"python3 -m venv {environment}",
        )
    return python.absolute()


def read_wheel(path: Path) -> Wheel:
    """Return what a wheel says of itself. Raises CheckError or InputError if it says nothing of the kind."""
    headers = BytesParser().parsebytes(read_metadata(path))
    try:
        needs = tuple(read_requirement(str(need)) for need in headers.get_all("Requires-Dist", []))
        return Wheel(path=path, name=str(headers["Name"]), version=str(headers["Version"]), needs=needs)
    except InvalidRequirement as error:
        raise CheckError(
            f"the METADATA of {path.name} cannot be read",
            cause=str(error).splitlines()[0][:300],
            next_step="remove the wheel and run rocwright build again",
        ) from error


def installed(python: Path) -> dict[str, str]:
    """The distributions of an environment, by their normal name."""
    completed = process.run([python, "-I", "-c", _LIST], timeout=120)
    if not completed.ok:
        raise InputError(
            f"{python} does not run",
            cause=completed.stderr.strip()[-300:],
            next_step="create the environment again: python3 -m venv --clear FOLDER",
        )
    return {canonicalize_name(name): version for name, version in json.loads(completed.stdout).items()}


def check_versions(
    wheels: Sequence[Wheel], present: Mapping[str, str], guarded: Sequence[str], environment: Path
) -> None:
    """Raise ConflictError where a guarded package will not be the one that the wheels were built for."""
    versions = dict(present) | {canonicalize_name(wheel.name): wheel.version for wheel in wheels}
    wrong = []
    for wheel in wheels:
        for need in wheel.needs:
            name = canonicalize_name(need.name)
            if name not in guarded or (need.marker and not need.marker.evaluate({"extra": ""})):
                continue
            version = versions.get(name)
            if version is None or not need.specifier.contains(version, prereleases=True):
                wrong.append(f"{wheel.name} {wheel.version} needs {need}; there is {version or 'none'}")
    if wrong:
        raise ConflictError(
            f"the wheels do not fit the packages in {environment}",
            cause="; ".join(wrong),
            next_step="install that version there first, or use another environment",
        )


def _check_is_wheel(filename: str) -> None:
    """Raise InputError for a source distribution: pip would run its code here, outside of every sandbox."""
    if not filename.endswith(".whl"):
        raise InputError(
            f"{filename} is not a wheel",
            cause="installing a source distribution runs its code, outside of any sandbox",
            next_step=f"rocwright build puts it into rocwright-out; if you trust it: pip install {filename}",
        )


def _pip_install(python: Path, paths: Sequence[Path]) -> None:
    words = python_module("pip", "--python", str(python), "install", "--no-index", "--no-deps")
    words += ["--only-binary", ":all:", "--force-reinstall", "--disable-pip-version-check"]
    completed = process.run([*words, *paths], timeout=1800)
    if not completed.ok:
        raise CheckError(
            "the wheels cannot be installed there",
            cause=next(
                (line for line in completed.stderr.splitlines() if line.startswith("ERROR")),
                f"pip ended with status {completed.returncode}",
            ),
            detail=completed.stderr[-2000:],
            next_step="use an environment with the Python version that the wheels are for",
        )


def _guard(guard: Path, python: Path, names: Iterable[str], folder: Path, *, importing: bool) -> None:
    chosen = list(names)
    if not chosen:
        return
    work = folder / "empty"
    work.mkdir(exist_ok=True)
    how = [] if importing else ["--no-import"]
    completed = process.run([python, guard, *chosen, "--workdir", work, *how], timeout=900)
    if not completed.ok:
        lines = completed.stdout.splitlines()
        message = next((line.partition("] ")[2] for line in lines if line.startswith("error[")), "")
        raise CheckError(
            message or f"{', '.join(chosen)} is not one working package there",
            cause="nothing was installed yet" if not importing else "seen after the installation",
            detail="\n".join(lines[:60]) or completed.stderr[-2000:],
            next_step="read the guard's messages above",
        )
