"""`build_pipeline.sh` and `versions.env` around the Containerfile; defaults are the lock's."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocbase.errors import InputError
from rocwright.export.arguments import TARGETS, arguments
from rocwright.export.containerfile import containerfile, image_words, network
from rocwright.export.environment import environment_image, image_arguments
from rocwright.export.model import Argument, ExportFile, ExportSubject, Files, lines_of
from rocwright.export.quote import comment, shell
from rocwright.export.templates import template

VERSIONS = "versions.env"
# What a value of versions.env may hold: nothing that any shell takes for more than a letter.
VALUE = re.compile(r"[A-Za-z0-9._,:/@+~=^-]*")


def pipeline(subject: ExportSubject) -> Files:
    """The Containerfile's files, and the script that builds them with the values of versions.env."""
    files = containerfile(subject)
    files["build_pipeline.sh"] = _script(subject, files["Containerfile"].text)
    files[VERSIONS] = lines_of(versions_lines(subject))
    return files


def _script(subject: ExportSubject, built: str) -> ExportFile:
    stack = subject.catalog.stack(subject.lock.request.stack)
    if " AS artifacts" in built:
        build = (
            'exec "$ENGINE" build @NETWORK@"$@" --target artifacts --output "type=local,dest=${OUT:-out}" .'
        )
        image = environment_image(subject)
        if image is not None:
            words = image_words(image, subject)
            build = f'[ -z "${{IMAGE:-}}" ] || exec "$ENGINE" build "$@" {words}\n{build}'
    else:
        build = f'exec "$ENGINE" build "$@" --tag {shell(f"localhost/{subject.name}")} .'
    text = template("build_pipeline.sh").replace("@BUILD@", build).replace("@TARGETS@", TARGETS)
    text = text.replace("@NETWORK@", network(subject.roots))
    usage = "#   IMAGE=1 ./build_pipeline.sh      builds the image that serves, instead of the artifacts\n"
    text = text.replace("@IMAGE@", usage if environment_image(subject) is not None else "")
    text = text.replace("@KNOWN@", " ".join(argument.name for argument in _arguments(subject)))
    text = text.replace("@WARNINGS@", f"# WARNING: {comment(stack.warning)}\n" if stack.warning else "")
    request = subject.lock.request
    description = comment(f"{request.stack} for {', '.join(request.gpu)} on {request.base}")
    return ExportFile(text.replace("@ABOUT@", description).encode(), executable=True)


def _arguments(subject: ExportSubject) -> tuple[Argument, ...]:
    return (*arguments(subject), *image_arguments(subject))


def versions_lines(subject: ExportSubject) -> Iterator[str]:
    """NAME=VALUE for every argument; what is pending stands there as a comment."""
    request = subject.lock.request
    yield (
        f"# The known-good set of {comment(request.stack)} on {comment(request.base)}, as locked "
        f"{comment(subject.lock.created)}."
    )
    yield "# Lines are NAME=VALUE. `rocwright import versions.env` puts the versions into rocwright.toml."
    for argument in _arguments(subject):
        yield f"# {comment(argument.about)}"
        value = argument.value.replace(";", ",") if argument.name == TARGETS else argument.value
        if argument.pending:
            yield f"# PENDING: {comment(argument.pending)}"
            yield f"# {argument.name}="
        else:
            yield f"{argument.name}={_plain(argument, value)}"


def _plain(argument: Argument, value: str) -> str:
    if not VALUE.fullmatch(value):
        raise InputError(
            f"{value!r} is not a valid value for {VERSIONS}",
            cause=f"{argument.about}: it has characters other than letters, digits and ._,:/@+~=^-",
            next_step="correct the recipe or the lock that has this value",
        )
    return value
