"""TUTORIAL.md: how the pins of an exported pipeline are changed by hand, with this lock's own names."""

from __future__ import annotations

from collections.abc import Iterator

from rocwright.export.arguments import arguments
from rocwright.export.model import ExportSubject, Files, lines_of, slug, variable
from rocwright.export.prepare import edit_files
from rocwright.export.quote import comment
from rocwright.export.run import warnings


def tutorial(subject: ExportSubject) -> Files:
    """One page for who has the exported files and wants a newer version in them."""
    return {"TUTORIAL.md": lines_of(_lines(subject))}


def _code(text: str) -> str:
    """Inline code of Markdown, whatever the text holds."""
    return f"`{comment(text).replace('`', chr(39))}`"


def _lines(subject: ExportSubject) -> Iterator[str]:
    lock = subject.lock
    request = lock.request
    yield f"# {comment(request.stack)} for {comment(', '.join(request.gpu))} on {comment(request.base)}"
    yield ""
    for warning in warnings(subject):
        yield f"> {comment(warning)}"
        yield ""
    yield f"Exported by rocwright {_code(lock.rocwright)} from the lock of {_code(lock.created)}."
    yield ""
    yield "## What is pinned"
    yield ""
    yield "| name in versions.env | value | what it is |"
    yield "| --- | --- | --- |"
    for argument in arguments(subject):
        value = f"pending: {comment(argument.pending)}" if argument.pending else _code(argument.value)
        description = comment(argument.about).replace("|", "/")
        yield f"| {_code(argument.name)} | {value.replace('|', '/')} | {description} |"
    yield ""
    if lock.pending:
        yield (
            "A value that is pending was not known when this was written. Nothing is built until it is "
            "given, or"
        )
        yield "until the files are exported again after an online `rocwright lock`."
        yield ""
    yield "## With rocwright"
    yield ""
    yield "```"
    yield (
        f"rocwright init --stack {comment(request.stack)} "
        f"{' '.join(f'--gpu {comment(target)}' for target in request.gpu)} --base {comment(request.base)}"
    )
    first = lock.components[0]
    yield f'# [versions]: {comment(first.name)} = "..."; or: rocwright import versions.env'
    yield "rocwright lock"
    yield "rocwright export pipeline --out NEW"
    yield "```"
    yield ""
    yield "`lock` refuses versions that do not fit together and says why; the new files have every hash."
    yield ""
    edited = edit_files(subject)
    yield "## By hand"
    yield ""
    for locked in lock.components:
        name = locked.name
        yield f"### {comment(name)} {comment(locked.version)}"
        yield ""
        yield f"Taken from: {_code(locked.place)}."
        yield ""
        match locked.kind:
            case "git":
                assignment = f"{variable(name, 'version')}=... {variable(name, 'commit')}=..."
                yield "1. Find the commit: `git ls-remote URL 'refs/tags/TAG^{}'` (peeled)."
                yield f"2. Give it: {_code(assignment)} in versions.env or on the command line."
            case "image":
                yield "1. Find the digest: `skopeo inspect --format '{{.Digest}}' docker://NAME:TAG`."
                assignment = f"{variable(name, 'image')}=NAME@sha256:..."
                yield f"2. Give it: {_code(assignment)}. A tag alone may move."
            case "wheels":
                listed = f"wheels-{slug(name)}/requirements.lock"
                yield f"1. Put the new versions into {_code(listed)}, with the sha256 of each wheel."
                yield "2. Name the index in the same file, unless pip is set up for it."
            case "builtin":
                yield "It comes with rocwright; another version of it comes with another rocwright."
            case _:
                hashes, assignment = f"sources/{slug(name)}/sha256", f"{variable(name, 'version')}=..."
                yield f"1. Put the new sha256 and name into {_code(hashes)}, as upstream announced it."
                yield f"2. Give {_code(assignment)}, and the version in prepare.sh where it fetches the file."
        edits = f"edits/tree-{slug(name)}.json"
        if edits in edited:
            yield (
                "3. Run `./prepare.sh`. An edit that no longer fits ends it with the file and the number of "
                "matches: look at"
            )
            yield f"   the file, then correct {_code(edits)}."
        else:
            yield "3. Run `./prepare.sh`."
        yield ""
    yield "## The base"
    yield ""
    for root in subject.roots:
        if root.image:
            yield (
                f"- To {root.role}: {_code(root.image)}. A new digest goes into "
                f"{_code(variable('image', root.role))}."
            )
        else:
            yield (
                f"- To {root.role}: {len(root.packages)} packages of {comment(root.base)} "
                f"{comment(root.suite)}, in {_code(f'base/{root.role}.sha256')} and "
                f"{_code(f'base/{root.role}.packages')}."
            )
    yield ""
    yield "Change the base and the components one after the other: then what breaks has one cause."
    yield ""
    yield "## Then"
    yield ""
    yield (
        "Build, verify on the card, and only then call the new set good. What was not run on a GPU was "
        "not run on a GPU."
    )
