"""The build in systemd-nspawn containers: the same roots, scripts and paths as the Containerfile's."""

from __future__ import annotations

from collections.abc import Iterator

from rocwright.catalog.load import lookup
from rocwright.export.arguments import arguments
from rocwright.export.containerfile import build_files, pattern_of
from rocwright.export.edits import PROGRAM
from rocwright.export.model import ExportFile, ExportSubject, Files, lines_of, slug, variable
from rocwright.export.prepare import file_path
from rocwright.export.quote import comment, shell
from rocwright.export.roots import INSIDE, bootstrap
from rocwright.export.run import engine_lines, warnings
from rocwright.export.steps import cache_of, passed_on, script_path, step_files
from rocwright.export.templates import template
from rocwright.model.step_environment import BUILD, IN, OUT
from rocwright.model.steps import FetchAction, RunAction, Step, TreeAction
from rocwright.plan.resolve.model import LockedRoot


def nspawn(subject: ExportSubject) -> Files:
    """`build-nspawn.sh` beside the files of the Containerfile, and a shell in the root with the GPU."""
    files = dict(sorted(build_files(subject).items()))
    files["build-nspawn.sh"] = lines_of(_lines(subject), executable=True)
    files["shell-nspawn.sh"] = _shell(subject)
    return files


def _lines(subject: ExportSubject) -> Iterator[str]:
    request = subject.lock.request
    yield "#!/bin/sh"
    yield (
        f"# Builds {comment(request.stack)} for {comment(', '.join(request.gpu))} on "
        f"{comment(request.base)} with systemd-nspawn, as root."
    )
    for warning in warnings(subject):
        yield f"# {comment(warning)}"
    yield "#   ./build-nspawn.sh      artifacts are in nspawn/artifacts; WORK=FOLDER puts all of it elsewhere"
    yield "set -eu"
    yield 'cd "$(dirname "$0")"'
    by_day = _known_by_day(subject)
    for argument in arguments(subject):
        value = argument.value or by_day.get(argument.name, "")
        if value:
            yield f'[ -n "${{{argument.name}:-}}" ] || {argument.name}={shell(value)}'
        yield f"export {argument.name}"
        if argument.pending and argument.name not in by_day:
            words = f"build-nspawn.sh: pending: {comment(argument.pending)}; give {argument.name}=..."
            yield f'[ -n "${{{argument.name}:-}}" ] || {{ echo {shell(words)} >&2; exit 2; }}'
    text = template("build-nspawn.sh").replace("@INSIDE@", INSIDE).replace("@BUILD@", BUILD)
    yield from text.replace("@OUT@", OUT).replace("@IN@", IN).strip("\n").split("\n")
    yield ""
    if any(path.startswith("guards/") for path in step_files(subject)):
        yield "cp guards/*.py steps/"
    yield "./prepare.sh"
    for root in subject.roots:
        if root.role == "build":
            yield from _root(root, subject)
    for step in subject.plan.steps:
        if isinstance(step.action, RunAction):
            yield from _component(step, step.action, subject)
    yield 'mkdir -p "$WORK/artifacts"'
    for name in subject.plan.artifacts:
        step = next(candidate for candidate in subject.plan.steps if candidate.name == name)
        if isinstance(step.action, RunAction):
            yield f'cp -r "$WORK/{slug(name)}/out/." "$WORK/artifacts/"'
        elif step.name.startswith("file/"):
            locked = next(
                component for component in subject.lock.components if component.name == step.component
            )
            yield f'cp {shell(file_path(locked, subject))} "$WORK/artifacts/"'
    yield 'echo "artifacts are in $WORK/artifacts"'


def _known_by_day(subject: ExportSubject) -> dict[str, str]:
    """What the archive's snapshot of a day makes known: the packages, by name alone, and that the image is
    not needed where they can be had without it."""
    values = {}
    for root in subject.roots:
        own = root.image and bootstrap(root, subject)
        if own:
            values[variable("image", root.role)] = ""
            if lookup("package manager", root.manager, subject.catalog.managers).snapshot_of(root.suite):
                values[variable("packages", root.role)] = " ".join(root.wanted)
    return values


def _root(root: LockedRoot, subject: ExportSubject) -> Iterator[str]:
    folder = f'"$WORK/root-{root.role}"'
    yield f"# {comment(root.base)} {comment(root.suite)}"
    yield f'if [ ! -e "$WORK/root-{root.role}.made" ]; then'
    yield f"    rm -rf {folder}"
    yield f"    mkdir -p {folder}"
    if not root.image:
        yield f"    tar -C {folder} --numeric-owner -xpf base/{root.role}.tar"
    else:
        own = bootstrap(root, subject)
        if own:
            yield f"    if command -v {own[0]} > /dev/null; then"
            yield from (f"        {line}" for line in _from_archive(root, own[1]))
            yield "    else"
            yield from (f"        {line}" for line in _from_image(root, folder))
            yield "    fi"
        else:
            yield from (f"    {line}" for line in _from_image(root, folder))
    yield f"    mkdir -p {folder}{BUILD} {folder}{OUT} {folder}{IN} {folder}/ccache {folder}{INSIDE}"
    yield f'    : > "$WORK/root-{root.role}.made"'
    yield "fi"


def _from_archive(root: LockedRoot, command: str) -> Iterator[str]:
    """The base's archive and the package manager that this machine has."""
    name = variable("packages", root.role)
    if root.pending:
        yield "# shellcheck disable=SC2086"
        yield f"set -- ${name}"
    else:
        yield "# shellcheck disable=SC2046"
        yield f"set -- $(cat base/{root.role}.packages)"
    yield command


def _from_image(root: LockedRoot, folder: str) -> Iterator[str]:
    """The image's root, by digest; then the packages of the lock by its own package manager."""
    image, packages = variable("image", root.role), variable("packages", root.role)
    failure = f'echo "build-nspawn.sh: give {image}=NAME@sha256:..." >&2'
    yield f'[ -n "${{{image}:-}}" ] || {{ {failure}; exit 2; }}'
    yield from engine_lines("build-nspawn.sh")
    yield f'made=$("$ENGINE" create "${image}" true)'
    yield f'"$ENGINE" export "$made" | tar -C {folder} --numeric-owner -xpf -'
    yield '"$ENGINE" rm "$made" > /dev/null'
    yield f"mkdir -p {folder}{INSIDE}/base"
    yield f"cp base/{root.role}* {folder}{INSIDE}/base/"
    yield f"systemd-nspawn --quiet --register=no --keep-unit --as-pid2 --directory={folder} \\"
    yield f'    --setenv={packages}="${{{packages}:-}}" /bin/sh {INSIDE}/base/{root.role}-root.sh'


def _component(step: Step, action: RunAction, subject: ExportSubject) -> Iterator[str]:
    name = slug(step.name)
    work = f'"$WORK/{name}"'
    tree = next(
        candidate
        for candidate in subject.plan.steps
        for used in step.inputs
        if used.name == "src" and candidate.key == used.key
    )
    assert isinstance(tree.action, TreeAction)
    previous = next(
        candidate for candidate in subject.plan.steps for used in tree.inputs if candidate.key == used.key
    )
    yield f"# {comment(step.name)}"
    yield f"rm -rf {work}"
    yield f"mkdir -p {work}/build/src {work}/in"
    if isinstance(previous.action, RunAction):
        yield f'tar -C {work}/build/src -xf "$WORK/{slug(previous.name)}/out/tree.tar"'
        if tree.action.edits:
            yield f"python3 {PROGRAM} edits/{slug(tree.name)}.json {work}/build/src"
    else:
        locked = subject.locked(step)
        yield f"tar -C {work}/build/src -xf trees/{slug(locked.name if locked else step.name)}.tar"
    for used in step.inputs:
        if used.name in ("root", "src"):
            continue
        source = next(candidate for candidate in subject.plan.steps if candidate.key == used.key)
        paths = (
            f"{slug(source.name)}/."
            if isinstance(source.action, FetchAction)
            else f'"$WORK/{slug(source.name)}/out/"{pattern_of(source, used)}'
        )
        yield f"mkdir -p {work}/in/{shell(used.name)}"
        yield f"cp -r {paths} {work}/in/{shell(used.name)}/"
    script = script_path(step).rpartition("/")[2]
    settings = [
        f'--setenv={variable_name}="${variable_name}"'
        for variable_name in passed_on(step, subject)
        if variable_name != "JOBS"
    ]
    yield f"component {name} {script} {cache_of(step)} {' '.join(settings)}"


def _shell(subject: ExportSubject) -> ExportFile:
    """A shell in the root with the GPU: the devices by node, and the rule that lets them be opened."""
    serve = [subject.catalog.component(component.name).serve for component in subject.lock.components]
    devices = sorted({device for service in serve if service for device in service.devices}) or [
        "/dev/kfd",
        "/dev/dri",
    ]
    lines = [
        "#!/bin/sh",
        "# A shell in the build's root with the GPU in it, as root: ./shell-nspawn.sh",
        "set -eu",
        'cd "$(dirname "$0")"',
        '[ -n "${WORK:-}" ] || WORK=$PWD/nspawn',
        "set --",
        "# shellcheck disable=SC2043",
        f"for device in {' '.join(map(shell, devices))}; do",
        '    [ -e "$device" ] || { echo "$device is not here: is the amdgpu driver loaded?" >&2; continue; }',
        '    set -- "$@" --bind="$device"',
        "done",
        "# DRM nodes by their class; the compute node has a number of its own at each start of the machine",
        "set -- \"$@\" --property='DeviceAllow=char-drm rw' --property='DeviceAllow=char-kfd rw'",
        'mkdir -p "$WORK/artifacts"',
        f'exec systemd-nspawn --quiet --directory="$WORK/root-build" --bind="$WORK/artifacts:{OUT}" "$@"',
    ]
    return lines_of(lines, executable=True)
