"""The last stages of a Containerfile: the environment of a wheel stack, and the image that serves it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rocbase.errors import InputError
from rocbase.toml.folders import holder
from rocwright.export.environment import (
    ARTIFACT,
    CACHE,
    DATA,
    ENTRY,
    MODEL,
    PAGE,
    PLACE,
    REQUIRED,
    EnvironmentImage,
    environment_image,
    gpu_env,
    image_arguments,
    interpreter_of,
    required,
)
from rocwright.export.model import ExportFile, ExportSubject, Files, lines_of, slug
from rocwright.export.quote import comment, docker, shell
from rocwright.export.requirements import requirement_lines
from rocwright.export.run import served_env
from rocwright.export.templates import template
from rocwright.model.step_environment import OUT
from rocwright.model.steps import FetchAction, RunAction, Step
from rocwright.plan.packages import RUN_WHEELS
from rocwright.plan.resolve.aliases import ROCM

# Folders of the stage that installs: wheels that are installed, and wheels to choose from.
_WHEELS, _CHOICE = "/wheels/own", "/wheels/choice"

_MODEL_SLOT = "{model}"


def image_files(subject: ExportSubject) -> Files:
    """The scripts of the image, the files that its server shows, and the hashes of its packages."""
    image = environment_image(subject)
    if image is None:
        return {}
    files = {
        "image/install.sh": _install_script(image, subject),
        "image/serve": lines_of(_serve_lines(image, subject), executable=True),
        **_page_files(image, subject),
    }
    run = subject.lock.python_run
    if run is not None and run.files:
        files[f"{slug(RUN_WHEELS)}/requirements.lock"] = lines_of(requirement_lines(run.files))
    packages = required(subject)
    if packages is not None and packages.files:
        files[f"{REQUIRED}/requirements.lock"] = lines_of(requirement_lines(packages.files))
    return files


def _page_files(image: EnvironmentImage, subject: ExportSubject) -> Files:
    """The folder of the catalog that the server shows or reads. Raises InputError if there is none."""
    name = image.server.page
    if not name:
        return {}
    folder = holder(name, subject.catalog.folders)
    if folder is None:
        raise InputError(
            f"the catalog has no {name}",
            cause=f"the server of {image.component.name} needs that folder",
            next_step="rocwright catalog check",
        )
    paths = [path for path in sorted((folder / name).rglob("*")) if path.is_file()]
    return {
        f"image/page/{path.relative_to(folder / name).as_posix()}": ExportFile(path.read_bytes())
        for path in paths
        if "__pycache__" not in path.parts
    }


def _install_script(image: EnvironmentImage, subject: ExportSubject) -> ExportFile:
    run = subject.lock.python_run
    text = template("install.sh").replace("@PYTHON@", shell(interpreter_of(subject)))
    text = text.replace("@PLACE@", PLACE).replace("@WHEELS@", _WHEELS).replace("@CHOICE@", _CHOICE)
    text = text.replace("@WANTED@", " ".join(map(shell, run.wanted if run is not None else ())))
    program = _program(image.server.command[0])
    text = text.replace("@PROGRAM@", program if program.startswith(PLACE) else f"{PLACE}/bin/python")
    return ExportFile(text.encode(), executable=True)


def _program(word: str) -> str:
    """A server's program by its path in the image."""
    return word if word.startswith(("/", "{")) else f"{PLACE}/bin/{word}"


def _places(image: EnvironmentImage) -> dict[str, str]:
    port = str(image.server.port)
    return {
        "artifact": ARTIFACT,
        "model": MODEL,
        "host": "0.0.0.0",  # noqa: S104 - in a container, whose port is published for this machine alone
        "port": port,
        "listen": f"0.0.0.0:{port}",
        "key_file": "/run/key",
        "page": PAGE,
        "data": DATA,
    }


def _serve_lines(image: EnvironmentImage, subject: ExportSubject) -> Iterator[str]:
    """The entry point: it serves the model that its first argument names, or the one in the folder models."""
    server, places = image.server, _places(image)
    first, *words = server.command
    for flags in server.flags:
        if not flags.targets or set(flags.targets) & set(subject.lock.request.gpu):
            words += flags.words
    yield "#!/bin/sh"
    yield f"# Serves {comment(image.component.name)} on port {server.port}."
    yield "set -eu"
    if server.keeps:
        yield f"mkdir -p {' '.join(shell(f'{DATA}/{name}') for name in server.keeps)}"
    if any(_MODEL_SLOT in word for word in words):
        yield f"model={MODEL}"
        yield "case ${1:-} in '' | -*) ;; *) model=$1; shift ;; esac"
        failure = f"serve: {MODEL} does not exist: put a model there, or name one as the first argument"
        yield f'if [ "$model" = {MODEL} ] && [ ! -e "$model" ]; then'
        yield f"    echo {shell(failure)} >&2"
        yield "    exit 2"
        yield "fi"
    filled = [shell(_program(first).format_map(places)), *(_word(word, places) for word in words)]
    yield f'exec {" ".join(filled)} "$@"'


def _word(word: str, places: dict[str, str]) -> str:
    """A word of a command as sh takes it, with the script's variable for the model."""
    parts = [part.format_map(places) for part in word.split(_MODEL_SLOT)]
    return '"$model"'.join(shell(part) if part else "" for part in parts) or "''"


def _wheel_lines(subject: ExportSubject) -> Iterator[str]:
    """Bring the wheels that the stack makes or takes, and those that it may need besides."""
    shared = ROCM if subject.tarballs is None else ""
    for step in subject.plan.steps:
        folder = f"{slug(step.name)}/"
        is_artifact = step.name in subject.plan.artifacts
        if isinstance(step.action, FetchAction) and (is_artifact or step.name == shared):
            yield f"COPY {folder} {_WHEELS}/"
        elif isinstance(step.action, FetchAction) and step.name == RUN_WHEELS:
            yield f"COPY {folder} {_CHOICE}/"
        elif _makes_wheel(step) and (is_artifact or (shared and step.name.startswith(f"{shared}/"))):
            yield f"COPY --from={slug(step.name)} {OUT}/*.whl {_WHEELS}/"
    if required(subject) is not None:
        yield f"COPY {REQUIRED}/ {_CHOICE}/"


def _makes_wheel(step: Step) -> bool:
    return isinstance(step.action, RunAction) and any(
        output.pattern.endswith(".whl") for output in step.action.outputs
    )


def image_env(image: EnvironmentImage, subject: ExportSubject) -> dict[str, str]:
    """The whole environment of the server."""
    env = {"PATH": f"{PLACE}/bin:/usr/local/bin:/usr/bin:/bin", "VIRTUAL_ENV": PLACE, "XDG_CACHE_HOME": CACHE}
    env |= dict(gpu_env(subject))
    if image.component.serve is not None:
        env |= {var.name: var.value for var in served_env(subject, image.component)}
    places = _places(image)
    return env | {name: text.format_map(places) for name, text in image.server.env.items()}


def stage_lines(image: EnvironmentImage, root: str, subject: ExportSubject) -> Iterator[str]:
    """The stages behind the artifacts, on the stage `root`; labels follow."""
    yield f"# {comment(image.component.summary)}: buildah build --target {image.stage} ."
    yield f"FROM {root} AS environment"
    yield from _wheel_lines(subject)
    yield f"COPY image/install.sh {PLACE}/"
    yield f"RUN {json.dumps(['/bin/sh', f'{PLACE}/install.sh'])}"
    yield ""
    is_application = image.component.kind == "application"
    if is_application:
        yield f"FROM {slug(image.component.name)} AS application"
        yield f"RUN mkdir /unpacked && tar -C /unpacked --strip-components=1 -xf {OUT}/*.tar.*"
        yield ""
    yield f"FROM {root} AS {image.stage}"
    yield f"COPY --from=environment {PLACE} {PLACE}"
    if is_application:
        yield f"COPY --from=application /unpacked {ARTIFACT}"
    if image.server.page:
        yield f"COPY image/page/ {PAGE}/"
    yield f"COPY image/serve {ENTRY}"
    for name, value in image_env(image, subject).items():
        yield f"ENV {name}={docker(value)}"
    yield f"EXPOSE {image.server.port}"
    yield f"ENTRYPOINT {json.dumps([ENTRY])}"


def image_lines(subject: ExportSubject, python: str, machine: str) -> Iterator[str]:
    """Commands of `prepare.sh` that fetch the packages of the image, each by its hash."""
    run = subject.lock.python_run
    if run is not None and (run.files or run.pending):
        yield f"wheels {slug(RUN_WHEELS)} {shell(python)} {shell(machine)}"
    packages = required(subject)
    if packages is None:
        return
    for argument in image_arguments(subject):
        if argument.name.endswith("_REQUIREMENTS_SHA256"):
            yield f'[ -n "${{{argument.name}:-}}" ] || pending {argument.name} {shell(argument.pending)}'
            listed = f'"${argument.name}" {REQUIRED}/requirements.lock'
            yield f"printf '%s  %s\\n' {listed} | sha256sum --check --quiet"
    yield f"wheels {REQUIRED} {shell(python)} {shell(machine)}"
