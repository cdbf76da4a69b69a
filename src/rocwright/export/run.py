"""How the artifacts of a run stack are run: scripts for podman and docker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rocwright.catalog.model import Component, Serve
from rocwright.export.arguments import component_arguments, image_of
from rocwright.export.environment import MODEL, MODELS, environment_image
from rocwright.export.model import ExportFile, ExportSubject, Files, lines_of, slug, variable
from rocwright.export.quote import comment, shell
from rocwright.model.steps import ImageAction
from rocwright.plan.resolve.model import LockedComponent
from rocwright.plan.values import expand, present


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable of the environment that a component is run with, and why."""

    name: str
    value: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A component that is run: its image, and where the image is from."""

    component: Component
    locked: LockedComponent
    serve: Serve
    image: str
    built: bool
    made_by_export: bool = False

    @property
    def program(self) -> str:
        """The program that takes the place of the image's own; "" if that is kept."""
        return next(iter(self.serve.entrypoint), "")

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments of the program: engines take an entry point of a single word."""
        return (*self.serve.entrypoint[1:], *self.serve.command)


def served(subject: ExportSubject) -> Iterator[Served]:
    """The components of a lock that a recipe says how to run."""
    images = {
        step.component: step.action.reference
        for step in subject.plan.steps
        if isinstance(step.action, ImageAction)
    }
    environment = environment_image(subject)
    serves = {}
    if environment is not None:
        images[environment.component.name] = environment.reference
        serves[environment.component.name] = environment.serve
    for locked in subject.lock.components:
        component = subject.catalog.component(locked.name)
        built, serve = images.get(locked.name, ""), serves.get(locked.name, component.serve)
        if serve is not None and (built or locked.kind == "image"):
            yield Served(
                component=component,
                locked=locked,
                serve=serve,
                image=f"localhost/{built}" if built else image_of(locked),
                built=bool(built),
                made_by_export=locked.name in serves,
            )


def served_env(subject: ExportSubject, component: Component) -> Iterator[Variable]:
    """The variables of a component's `serve` that hold for this lock, each with its reason, behind those of
    what it was built on and that runs no command of its own."""
    assert component.serve is not None
    locked = next(candidate for candidate in subject.lock.components if candidate.name == component.name)
    fields = {
        "version": locked.version,
        "targets": ";".join(subject.lock.request.gpu),
        "commit": locked.commit,
    }
    have = present(subject.lock)
    serves = (subject.catalog.component(entry.name).serve for entry in subject.lock.components)
    env = {
        name: setting
        for serve in serves
        if serve and not serve.command
        for name, setting in serve.env.items()
    }
    for name, setting in (env | component.serve.env).items():
        text, reason, when = (
            (setting, "", "") if isinstance(setting, str) else (setting.value, setting.why, setting.when)
        )
        if not when or (when.removeprefix("!") in have) != when.startswith("!"):
            value = expand(text, fields, f"{component.name}: {name}")
            yield Variable(name=name, value=value, why=reason or "as the recipe says")


def warnings(subject: ExportSubject) -> list[str]:
    """What is said before anything is run."""
    stack = subject.catalog.stack(subject.lock.request.stack)
    lines = [f"WARNING: {stack.warning}"] if stack.warning else []
    return [*lines, *([f"Better, if it is available: the stack {stack.prefer}"] if stack.prefer else [])]


def engine_lines(script: str) -> Iterator[str]:
    """Set ENGINE to the engine of the machine, unless it is given; end with a message if there is none."""
    yield "ENGINE=${ENGINE:-$(command -v podman || command -v docker || true)}"
    failure = f"{script}: install podman or docker, or give ENGINE=..."
    yield f'[ -n "$ENGINE" ] || {{ echo "{failure}" >&2; exit 2; }}'


def not_run(subject: ExportSubject) -> str:
    """Why a stack has nothing to run, in words."""
    return f"{subject.lock.request.stack} has no component with a recipe for running in a container"


def run_scripts(subject: ExportSubject) -> Files:
    """`run-COMPONENT.sh` for each component that is run."""
    return {f"run-{slug(entry.component.name)}.sh": _script(entry, subject) for entry in served(subject)}


def _script(served: Served, subject: ExportSubject) -> ExportFile:
    return lines_of(_lines(served, subject), executable=True)


def _lines(served: Served, subject: ExportSubject) -> Iterator[str]:
    name, serve = slug(served.component.name), served.serve
    yield "#!/bin/sh"
    yield (
        f"# {comment(served.component.summary)}: {comment(served.locked.version)}, for "
        f"{comment(', '.join(subject.lock.request.gpu))}"
    )
    for warning in warnings(subject):
        yield f"# {comment(warning)}"
    yield "#"
    yield (
        f"#   ./run-{name}.sh [ARGUMENTS]     ENGINE=docker runs it with docker; DATA=FOLDER keeps its "
        "data there"
    )
    if served.made_by_export and MODELS in serve.folders:
        yield f"#   The first argument names the model, such as {MODELS}/NAME; without one it is {MODEL}."
    yield "set -eu"
    for warning in warnings(subject)[:1]:
        yield f"echo {shell(comment(warning))} >&2"
    variable_name = variable(served.component.name, "image")
    argument = next((arg for arg in component_arguments(served.locked) if arg.name == variable_name), None)
    yield f'[ -n "${{{variable_name}:-}}" ] || {variable_name}={shell(served.image)}'
    if argument is not None and argument.pending:
        yield f'if [ -z "${variable_name}" ]; then'
        yield f"    echo {shell(f'pending: {comment(argument.pending)}')} >&2"
        yield (
            f"    echo 'give {variable_name}=NAME@sha256:..., or export again after an online rocwright "
            "lock' >&2"
        )
        yield "    exit 2"
        yield "fi"
    yield from engine_lines(f"run-{name}.sh")
    yield f"DATA=${{DATA:-${{XDG_DATA_HOME:-$HOME/.local/share}}/{name}}}"
    if served.built:
        yield (
            "# the image is built here: rocwright build, or the exported Containerfile; then podman load "
            f"-i or --tag {served.image}"
            if not served.made_by_export
            else "# the exported pipeline builds the image: IMAGE=1 ./build_pipeline.sh"
        )
    yield f'set -- {" ".join(map(shell, served.words))} "$@"'.replace("--  ", "-- ")
    flags = [("--entrypoint", shell(served.program))] if served.program else []
    for device in serve.devices:
        yield f"# {comment(device)}: the GPU"
        yield (
            f"[ -e {shell(device)} ] || echo {shell(f'{device} is not here: is the amdgpu driver loaded?')} "
            ">&2"
        )
        flags.append(("--device", shell(device)))
    groups = ", ".join(serve.groups)
    if groups:
        yield (
            f"# groups {comment(groups)}: who may open the devices; by number, since the image may not know "
            "the names"
        )
        yield "groups="
        yield 'if [ "${ENGINE##*/}" = podman ] && [ "$(id -u)" != 0 ]; then'
        yield "    # the host's numbers mean other groups in a rootless container: the user keeps its own"
        yield "    groups='--group-add keep-groups'"
        yield "else"
        yield "    # shellcheck disable=SC2043"
        yield f"    for group in {' '.join(map(shell, serve.groups))}; do"
        yield '        number=$(getent group "$group" | cut -d : -f 3)'
        yield '        [ -z "$number" ] || groups="$groups --group-add $number"'
        yield "    done"
        yield "fi"
    for place, label in serve.folders.items():
        folder = f'"$DATA"/{shell(slug(label))}'
        yield f"# {comment(place)}: {comment(label)}"
        yield f"mkdir -p {folder}"
        flags.append(("--volume", f"{folder}:{shell(place)}:Z"))
    for port in serve.ports:
        yield f"# port {port}: for this machine alone; write 0.0.0.0 for others to reach it"
        flags.append(("--publish", f"127.0.0.1:{port}:{port}"))
    if serve.shared_memory:
        yield "# shared memory: the processes of one server hand tensors to each other through it"
        flags.append(("--shm-size", str(serve.shared_memory)))
    for var in served_env(subject, served.component):
        yield f"# {var.name}: {comment(var.why)}"
        flags.append(("--env", shell(f"{var.name}={var.value}")))
    yield "# shellcheck disable=SC2086"
    yield 'exec "$ENGINE" run --rm --init --name ' + name + " \\"
    if groups:
        yield "    $groups \\"
    for flag, value in flags:
        yield f"    {flag} {value} \\"
    yield f'    "${variable_name}" "$@"'
