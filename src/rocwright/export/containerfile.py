"""The plan of a lock as one Containerfile: a stage a root, a stage a component, the artifacts last."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from rocwright.doctor.remedies.words import does
from rocwright.execution.run import GUARDS
from rocwright.execution.workspace import CCACHE
from rocwright.export.arguments import arguments, component_arguments, root_arguments
from rocwright.export.edits import PROGRAM
from rocwright.export.environment import EnvironmentImage, environment_image, image_arguments
from rocwright.export.environment_stage import image_files, image_lines, stage_lines
from rocwright.export.model import Argument, ExportSubject, Files, lines_of, slug, variable
from rocwright.export.prepare import file_path, prepare_files, python_of, root_lines
from rocwright.export.quote import comment, docker, shell
from rocwright.export.roots import INSIDE, root_files
from rocwright.export.run import served_env
from rocwright.export.steps import cache_of, passed_on, script_path, step_files
from rocwright.model.step_environment import IN, OUT, SOURCE
from rocwright.model.steps import FetchAction, ImageAction, Input, RunAction, Step, TreeAction
from rocwright.plan.labels import version_labels
from rocwright.plan.resolve.aliases import base_of
from rocwright.plan.resolve.model import LockedComponent, LockedRoot


def containerfile(subject: ExportSubject) -> Files:
    """The Containerfile and all that its build context holds; `prepare.sh` brings what is fetched."""
    image = environment_image(subject)
    files = {
        "Containerfile": lines_of(_lines(subject)),
        ".dockerignore": lines_of(["base/packages", "sources/.work", "out"]),
        **build_files(subject),
    }
    if image is not None:
        lines = list(_image_preparation(image, subject))
        files |= {
            **image_files(subject),
            **root_files(subject, (*subject.roots, image.root)),
            **prepare_files(subject, lines),
        }
    return dict(sorted(files.items()))


def build_files(subject: ExportSubject) -> Files:
    """The files of a build of the artifacts, whatever runs it."""
    return {**root_files(subject, subject.roots), **prepare_files(subject), **step_files(subject)}


def _image_preparation(image: EnvironmentImage, subject: ExportSubject) -> Iterator[str]:
    yield "# ./prepare.sh image: the root file system and the packages of the image that serves"
    yield '[ "${1:-}" = image ] || exit 0'
    yield from root_lines((image.root,))
    yield from image_lines(subject, python_of(subject), subject.lock.request.architecture)


def _lines(subject: ExportSubject) -> Iterator[str]:
    request = subject.lock.request
    yield (
        f"# {comment(request.stack)} for {comment(', '.join(request.gpu))} on {comment(request.base)}, "
        f"exported by rocwright from its lock of {comment(subject.lock.created)}."
    )
    yield "#"
    yield (
        "#   ./prepare.sh                 fetches sources and packages, checks each by its hash, edits "
        "the sources"
    )
    artifacts = list(_artifact_lines(subject))
    words = "--target artifacts --output type=local,dest=out" if artifacts else f"--tag {subject.name}"
    yield f"#   buildah build {network(subject.roots)}{words} .      (or: podman build, docker build)"
    environment = environment_image(subject)
    if environment is not None:
        yield "#   ./prepare.sh image           fetches the packages of the image that serves, too"
        yield f"#   buildah build {image_words(environment, subject)}"
    yield "#"
    yield (
        "# An argument that is pending has no value in the lock: give it with --build-arg, or export "
        "anew after an"
    )
    yield "# online `rocwright lock`."
    for argument in (*arguments(subject), *image_arguments(subject)):
        if argument.pending:
            yield f"# PENDING {argument.name}: {comment(argument.pending)}"
    yield ""
    yield from _global_arguments(subject)
    for root in subject.roots:
        yield from _root_stage(root)
    for step in subject.plan.steps:
        match step.action:
            case RunAction():
                yield from _component_stage(step, step.action, subject)
            case ImageAction():
                yield from _image_stage(step, step.action, subject)
            case FetchAction() if step.name.startswith("image/"):
                locked = _locked(subject, step.component)
                yield from _pulled_stage(step, locked, subject)
    if artifacts:
        yield "# the artifacts, and nothing else"
        yield "FROM scratch AS artifacts"
        yield from artifacts
        yield from _labels(subject)
    if environment is not None:
        yield ""
        yield from _root_stage(environment.root)
        yield from stage_lines(environment, _stage(f"root/{environment.root.role}"), subject)
        yield from _labels(subject, environment.locked)


def _artifact_lines(subject: ExportSubject) -> Iterator[str]:
    """The instructions that gather the artifacts."""
    for step in subject.plan.steps:
        match step.action:
            case RunAction() if step.name in subject.plan.artifacts:
                yield f"COPY --from={_stage(step.name)} {OUT}/ /"
            case FetchAction() if step.name.startswith("file/"):
                yield f"COPY {file_path(_locked(subject, step.component), subject)} /"
            case FetchAction() if step.name.startswith("wheels/"):
                yield f"COPY {slug(step.name)}/ /"


def network(roots: Iterable[LockedRoot]) -> str:
    """The flag that builds without a network: only packages put into an image need one."""
    return "" if any(root.image for root in roots) else "--network none "


def image_words(image: EnvironmentImage, subject: ExportSubject) -> str:
    """The arguments of a builder that makes the image that serves."""
    flag = network((*subject.roots, image.root))
    return f"{flag}--target {image.stage} --tag localhost/{image.reference} ."


def _global_arguments(subject: ExportSubject) -> Iterator[str]:
    """Arguments before the first FROM: the images that stages start from."""
    arguments = [argument for root in subject.roots for argument in root_arguments(root)]
    arguments += image_arguments(subject)
    arguments += [argument for locked in subject.lock.components for argument in component_arguments(locked)]
    for argument in arguments:
        if argument.name.endswith("_IMAGE") or argument.name.startswith("IMAGE_"):
            # an engine says the name that it cannot find: here, what to do
            value = (
                argument.value
                or f"localhost/pending/give-build-arg-{slug(argument.name)}:{slug(argument.pending)[:100]}"
            )
            yield f"# {comment(argument.about)}"
            yield f"ARG {argument.name}={docker(value)}"
    yield ""


def _stage(name: str) -> str:
    return slug(name)


def _root_stage(root: LockedRoot) -> Iterator[str]:
    stage = _stage(f"root/{root.role}")
    if not root.image:
        yield (
            f"# {comment(root.base)} {comment(root.suite)}: {len(root.packages)} packages; "
            f"base/make-root.sh {root.role} makes the tar"
        )
        yield f"FROM scratch AS {stage}"
        yield f"ADD base/{root.role}.tar /"
        yield ""
        return
    name = variable("packages", root.role)
    yield (
        f"# {comment(root.base)} {comment(root.suite)}: the image, and {len(root.packages)} files of the lock"
    )
    yield f"FROM ${{{variable('image', root.role)}}} AS {stage}"
    if root.pending:
        yield f"# PENDING: {comment(root.pending)}"
        yield f'ARG {name}=""'
    yield f"COPY base/{root.role}* {INSIDE}/base/"
    yield f"RUN {json.dumps(['/bin/sh', f'{INSIDE}/base/{root.role}-root.sh'])}"
    yield ""


def _argument(argument: Argument) -> Iterator[str]:
    if argument.pending:
        yield f"# PENDING: {comment(argument.pending)}"
    yield f"ARG {argument.name}={docker(argument.value)}"


def _component_stage(step: Step, action: RunAction, subject: ExportSubject) -> Iterator[str]:
    locked = subject.locked(step)
    named = {argument.name: argument for argument in arguments(subject)}
    tree = next(
        candidate
        for candidate in subject.plan.steps
        for used in step.inputs
        if used.name == "src" and candidate.key == used.key
    )
    description = (
        f"{locked.name} {locked.version}: {locked.place}" if locked is not None else f"{step.name}: a wheel"
    )
    yield f"# {comment(description)}"
    yield f"FROM {_stage('root/build')} AS {_stage(step.name)}"
    for name in passed_on(step, subject):
        if name in named:
            yield from _argument(named[name])
    yield 'ARG JOBS=""'
    yield from _source(tree, locked, subject) if locked is not None else _package_source(step)
    for used in step.inputs:
        if used.name not in ("root", "src"):
            yield _input(used, subject)
    if action.guard:
        yield f"COPY guards/ {GUARDS}/"
    yield f"COPY {script_path(step)} {INSIDE}/"
    command = json.dumps(["/bin/sh", f"{INSIDE}/{script_path(step).rpartition('/')[2]}"])
    # one compiler cache a trust domain: what a component leaves there reaches no other
    yield f"RUN --mount=type=cache,id={cache_of(step)},target={CCACHE} {command}"
    yield ""


def _source(tree: Step, locked: LockedComponent, subject: ExportSubject) -> Iterator[str]:
    """The checked and edited tree in its place; edits that wait for commands are applied here."""
    assert isinstance(tree.action, TreeAction)
    previous = next(step for step in subject.plan.steps for used in tree.inputs if step.key == used.key)
    if not isinstance(previous.action, RunAction):
        name = slug(locked.name)
        if locked.kind == "git":
            commit = variable(locked.name, "commit")
            check = f'test "$(cat /sources/commit)" = "${commit}"'
            words = (
                f"pending: give --build-arg {commit}=..."
                if not locked.commit
                else "prepare.sh brought another commit"
            )
        elif locked.pending and locked.kind != "builtin":
            name_of = variable(locked.name, "sha256")
            yield f"# PENDING: {comment(locked.pending)}"
            yield f'ARG {name_of}=""'
            check = f'test -n "${name_of}" && test "$(cat /sources/given)" = "${name_of}"'
            words = f"pending: give --build-arg {name_of}=..., and the same to prepare.sh"
        else:
            check, words = "cd /sources && sha256sum --check --quiet sha256", "prepare.sh brought other files"
        failure = f"{{ echo {shell(f'{locked.name}: {words}')} >&2; exit 2; }}"
        yield "# hadolint ignore=DL3003,SC2015"
        yield f"RUN --mount=type=bind,source=sources/{name},target=/sources {check} || {failure}"
        yield f"ADD trees/{name}.tar {SOURCE}/"
        return
    edits = tree.action.edits
    yield f"COPY --from={_stage(previous.name)} {OUT}/tree.tar /"
    yield f"RUN mkdir -p {SOURCE} && tar -C {SOURCE} -xf /tree.tar && rm /tree.tar"
    if edits:
        yield f"COPY {PROGRAM} edits/{slug(tree.name)}.json {INSIDE}/"
        python = base_of(subject.lock, subject.catalog)[1].interpreter or "python3"
        command = [python, f"{INSIDE}/apply.py", f"{INSIDE}/{slug(tree.name)}.json", SOURCE]
        yield f"RUN {json.dumps(command)}"


def _package_source(step: Step) -> Iterator[str]:
    """The tree of a source distribution in its place."""
    yield "# hadolint ignore=DL3003"
    check = "cd /sources && sha256sum --check --quiet sha256"
    yield f"RUN --mount=type=bind,source=sources/{slug(step.name)},target=/sources {check}"
    yield f"ADD trees/{slug(step.name)}.tar {SOURCE}/"


def _input(used: Input, subject: ExportSubject) -> str:
    step = next(candidate for candidate in subject.plan.steps if candidate.key == used.key)
    if isinstance(step.action, FetchAction):
        return f"COPY {slug(step.name)}/ {IN}/{used.name}/"
    return f"COPY --from={_stage(step.name)} {OUT}/{pattern_of(step, used)} {IN}/{used.name}/"


def pattern_of(step: Step, used: Input) -> str:
    """The one of a step's outputs that another takes in, as a glob."""
    assert isinstance(step.action, RunAction)
    return next(output.pattern for output in step.action.outputs if output.name == used.output)


def _image_stage(step: Step, action: ImageAction, subject: ExportSubject) -> Iterator[str]:
    """The artifact on the root that it runs in; `--target` builds it."""
    built = _stage(step.component)
    yield f"# {comment(action.reference)}: buildah build --target {_stage(step.name)} ."
    yield f"FROM {built} AS {_stage(f'unpacked/{step.component}')}"
    yield f"RUN mkdir /unpacked && tar -C /unpacked --strip-components=1 -xf {OUT}/*.tar.*"
    yield f"FROM {_stage('root/run')} AS {_stage(step.name)}"
    yield f"COPY --from={_stage(f'unpacked/{step.component}')} /unpacked {action.prefix}"
    for name, value in action.env.items():
        yield f"ENV {name}={docker(value)}"
    yield from _labels(subject)
    if action.entrypoint:
        yield f"ENTRYPOINT {json.dumps(list(action.entrypoint))}"
    yield ""


def _pulled_stage(step: Step, locked: LockedComponent, subject: ExportSubject) -> Iterator[str]:
    """An image as it is, at its digest, with the environment that it is run with."""
    component = subject.catalog.component(locked.name)
    yield f"# {comment(component.summary)}"
    stack = subject.catalog.stack(subject.lock.request.stack)
    if stack.warning:
        yield f"# WARNING: {comment(stack.warning)}"
    yield f"FROM ${{{variable(locked.name, 'image')}}} AS {_stage(step.name)}"
    if component.serve is not None:
        for entry in served_env(subject, component):
            yield f"# {comment(entry.why)}"
            yield f"ENV {entry.name}={docker(entry.value)}"
        for port in component.serve.ports:
            yield f"EXPOSE {port}"
    yield from _labels(subject)
    if component.serve is not None and component.serve.entrypoint:
        yield f"ENTRYPOINT {json.dumps(list(component.serve.entrypoint))}"
    if component.serve is not None and component.serve.command:
        yield f"CMD {json.dumps(list(component.serve.command))}"
    yield ""


def _labels(subject: ExportSubject, own: LockedComponent | None = None) -> Iterator[str]:
    for name, value in labels(subject, own).items():
        yield f"LABEL {name}={docker(value)}"


def labels(subject: ExportSubject, own: LockedComponent | None = None) -> dict[str, str]:
    """Labels of the OCI image specification, and every version, commit and hash of the lock; the version is
    that of `own`, by default the stack's first component."""
    lock = subject.lock
    stack = subject.catalog.stack(lock.request.stack)
    # a lock begins with what the stack's own component needs
    own = own or next(
        (entry for entry in lock.components if entry.name == stack.components[0]), lock.components[0]
    )
    licenses = sorted({subject.catalog.component(component.name).license for component in lock.components})
    labels = {
        "org.opencontainers.image.title": f"{lock.request.stack} for {', '.join(lock.request.gpu)}",
        "org.opencontainers.image.description": stack.summary,
        "org.opencontainers.image.version": own.version,
        "org.opencontainers.image.licenses": " AND ".join(licenses),
        "org.opencontainers.image.source": subject.catalog.component(own.name).homepage,
        "org.opencontainers.image.revision": own.commit,
        "org.opencontainers.image.created": lock.created,
        "org.opencontainers.image.base.name": lock.request.base,
        "rocwright.gpu": ",".join(lock.request.gpu),
    }
    labels |= version_labels(lock, lock.components)
    for remedy in lock.in_force:
        labels[f"rocwright.remedy.{slug(remedy.issue)}"] = does(remedy.action, remedy.component)
    return {name: value for name, value in labels.items() if value}


def _locked(subject: ExportSubject, name: str) -> LockedComponent:
    return next(component for component in subject.lock.components if component.name == name)
