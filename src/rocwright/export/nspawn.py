"""The build in systemd-nspawn containers: the same roots, scripts and paths as the Containerfile's."""

from __future__ import annotations

from collections.abc import Iterator

from rocwright.export.arguments import arguments
from rocwright.export.containerfile import containerfile, pattern_of
from rocwright.export.edits import PROGRAM
from rocwright.export.model import File, Files, Subject, lines_of, slug
from rocwright.export.quote import comment, shell
from rocwright.export.roots import INSIDE
from rocwright.export.run import warnings
from rocwright.export.steps import passed_on, script_path, step_files
from rocwright.export.templates import template
from rocwright.plan.environment import BUILD, IN, OUT
from rocwright.plan.model import FetchAction, RunAction, Step, TreeAction
from rocwright.resolve.model import LockedRoot


def nspawn(subject: Subject) -> Files:
    """`build-nspawn.sh` beside the files of the Containerfile, and a shell in the root with the GPU."""
    files = containerfile(subject)
    files.pop("Containerfile")
    files.pop(".dockerignore")
    files["build-nspawn.sh"] = lines_of(_lines(subject), executable=True)
    files["shell-nspawn.sh"] = _shell(subject)
    return files


def _lines(subject: Subject) -> Iterator[str]:
    request = subject.lock.request
    yield "#!/bin/sh"
    yield (
        f"# Builds {comment(request.stack)} for {comment(', '.join(request.gpu))} on "
        f"{comment(request.base)} with systemd-nspawn, as root."
    )
    for told in warnings(subject):
        yield f"# {comment(told)}"
    yield "#   ./build-nspawn.sh      artifacts are in nspawn/out; WORK=FOLDER puts all of it elsewhere"
    yield "set -eu"
    yield 'cd "$(dirname "$0")"'
    for one in arguments(subject):
        if one.value:
            yield f'[ -n "${{{one.name}:-}}" ] || {one.name}={shell(one.value)}'
        yield f"export {one.name}"
        if one.pending:
            words = f"build-nspawn.sh: pending: {comment(one.pending)}; give {one.name}=..."
            yield f'[ -n "${{{one.name}:-}}" ] || {{ echo {shell(words)} >&2; exit 2; }}'
    text = template("build-nspawn.sh").replace("@INSIDE@", INSIDE).replace("@BUILD@", BUILD)
    yield from text.replace("@OUT@", OUT).replace("@IN@", IN).strip("\n").split("\n")
    yield ""
    if any(path.startswith("guards/") for path in step_files(subject)):
        yield "cp guards/*.py steps/"
    yield "./prepare.sh"
    for root in subject.roots:
        if root.role == "build":
            yield from _root(root)
    for step in subject.plan.steps:
        if isinstance(step.action, RunAction):
            yield from _component(step, step.action, subject)
    yield 'mkdir -p "$WORK/artifacts"'
    for name in subject.plan.artifacts:
        step = next(one for one in subject.plan.steps if one.name == name)
        if isinstance(step.action, RunAction):
            yield f'cp -r "$WORK/{slug(name)}/out/." "$WORK/artifacts/"'
    yield 'echo "artifacts are in $WORK/artifacts"'


def _root(root: LockedRoot) -> Iterator[str]:
    made = f'"$WORK/root-{root.role}"'
    yield f"# {comment(root.base)} {comment(root.suite)}"
    yield f"if [ ! -e {made}/usr ]; then"
    yield f"    mkdir -p {made}"
    if not root.image:
        yield f"    tar -C {made} --numeric-owner -xpf base/{root.role}.tar"
    else:
        image = f"IMAGE_{root.role.upper()}"
        yield "    # the image's root, by digest; then the packages of the lock by its own package manager"
        yield "    engine=$(command -v podman || command -v docker)"
        yield f'    made=$("$engine" create "${image}" true)'
        yield f'    "$engine" export "$made" | tar -C {made} --numeric-owner -xpf -'
        yield '    "$engine" rm "$made" > /dev/null'
        packages = f"PACKAGES_{root.role.upper()}"
        yield f"    systemd-nspawn --quiet --register=no --keep-unit --as-pid2 --directory={made} \\"
        yield f'        --bind-ro="$PWD/base:{INSIDE}/base" --setenv={packages}="${{{packages}:-}}" \\'
        yield f"        /bin/sh {INSIDE}/base/{root.role}-root.sh"
    yield f"    mkdir -p {made}{BUILD} {made}{OUT} {made}{IN} {made}/ccache {made}{INSIDE}"
    yield "fi"


def _component(step: Step, action: RunAction, subject: Subject) -> Iterator[str]:
    name = slug(step.name)
    work = f'"$WORK/{name}"'
    tree = next(
        one
        for one in subject.plan.steps
        for used in step.inputs
        if used.name == "src" and one.key == used.key
    )
    assert isinstance(tree.action, TreeAction)
    before = next(one for one in subject.plan.steps for used in tree.inputs if one.key == used.key)
    yield f"# {comment(step.name)}"
    yield f"rm -rf {work}"
    yield f"mkdir -p {work}/build/src {work}/in"
    if isinstance(before.action, RunAction):
        yield f'tar -C {work}/build/src -xf "$WORK/{slug(before.name)}/out/tree.tar"'
        if tree.action.edits:
            yield f"python3 {PROGRAM} edits/{slug(tree.name)}.json {work}/build/src"
    else:
        locked = subject.locked(step)
        yield f"tar -C {work}/build/src -xf trees/{slug(locked.name if locked else step.name)}.tar"
    for used in step.inputs:
        if used.name in ("root", "src"):
            continue
        source = next(one for one in subject.plan.steps if one.key == used.key)
        taken = (
            f"{slug(source.name)}/."
            if isinstance(source.action, FetchAction)
            else f'"$WORK/{slug(source.name)}/out/"{pattern_of(source, used)}'
        )
        yield f"mkdir -p {work}/in/{shell(used.name)}"
        yield f"cp -r {taken} {work}/in/{shell(used.name)}/"
    script = script_path(step).rpartition("/")[2]
    given = [f'--setenv={one}="${one}"' for one in passed_on(step, subject) if one != "JOBS"]
    yield f"component {name} {script} {' '.join(given)}"


def _shell(subject: Subject) -> File:
    """A shell in the root with the GPU: the devices by node, and the rule that lets them be opened."""
    serve = [subject.catalog.component(one.name).serve for one in subject.lock.components]
    devices = sorted({device for one in serve if one for device in one.devices}) or ["/dev/kfd", "/dev/dri"]
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
