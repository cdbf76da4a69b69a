"""Reads lists of Python packages: pip's, conda's, pyproject.toml and lock files."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name
from packaging.version import InvalidVersion

from rocbase.errors import InputError
from rocbase.files.bounds import METADATA
from rocwheel.wheels import names
from rocwheel.wheels.formats import AR_MAGIC, ZIP_MAGIC, packing

# Bytes of a list: the largest lock files have 3 MB. Entries of one, with the lists that it includes.
MOST_BYTES, MOST_ENTRIES, MOST_FILES, MOST_ON_A_LINE = METADATA, 5000, 32, 16

FORMS = (
    "requirements.txt, environment.yml, pyproject.toml, uv.lock, pylock.toml, poetry.lock or an environment"
)
INDEX_OPTIONS = {
    "-i": "--index-url",
    "--index-url": "--index-url",
    "--pypi-url": "--index-url",
    "--extra-index-url": "--extra-index-url",
    "-f": "--find-links",
    "--find-links": "--find-links",
}
_INCLUDES = ("-r", "--requirement", "-c", "--constraint")
_OPTION = re.compile(r"(--?[A-Za-z][\w-]*)(?:\s*=\s*|\s+)?(\S*)")
_CONDA = re.compile(r"(?:[\w./:-]+::)?([\w.-]+)\s*(?:=(?!=)\s*([\w.*+!]+)|([<>!~=]=?\s*\w.*))?(?:=\S+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One package of a list, or an option that names an index; `place` is its line.

    `url` is the address or path of a file that is named instead of a version. An entry of `conda` is not
    looked for on the Python index. `problem` says why an entry cannot be read.
    """

    place: str
    text: str
    requirement: Requirement | None = None
    option: str = ""
    url: str = ""
    conda: bool = False
    problem: str = ""

    @property
    def name(self) -> str:
        """The normal name of its package, empty for an option."""
        return canonicalize_name(self.requirement.name) if self.requirement else ""

    @property
    def pin(self) -> str:
        """The exact version that it asks for, if it does."""
        return pin_of(self.requirement) if self.requirement else ""


def pin_of(requirement: Requirement) -> str:
    """Return the exact version that a requirement asks for, if it does."""
    pins = [clause.version for clause in requirement.specifier if clause.operator in ("==", "===")]
    return next((pin for pin in pins if not pin.endswith("*")), "")


def read_list(path: Path, gpu: str) -> list[Entry]:
    """Return the entries of a list. Raises InputError for a file that is none, such as a wheel for `gpu`."""
    text = _text_of(path, gpu)
    if path.suffix in (".yml", ".yaml"):
        form = _conda(text)
    elif path.suffix in (".toml", ".lock"):
        form = _tables(_toml(path, text), text)
    else:
        form = _pip(path, text, "", {path.resolve()})
    entries = [*islice(form, MOST_ENTRIES + 1)]
    if len(entries) > MOST_ENTRIES:
        raise _no_list(path, f"it has more than {MOST_ENTRIES:,} entries", "split it")
    unread = [entry for entry in entries if entry.problem]
    if 2 * len(unread) >= len(entries):
        cause = (
            f"line {unread[0].place} is no requirement"
            if unread
            else "it names no package in a form read here"
        )
        raise _no_list(path, cause, f"give {FORMS}")
    return entries


def _no_list(path: Path, cause: str, next_step: str) -> InputError:
    return InputError(f"{path} is no list of Python packages", cause=cause, next_step=next_step)


def _text_of(path: Path, gpu: str) -> str:
    if not path.is_file():
        raise _no_list(path, "it is not a file", f"give {FORMS}")
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise _no_list(path, error.strerror or str(error), "check the path and its permissions") from error
    if data.startswith((ZIP_MAGIC, AR_MAGIC, b"\x7fELF", b"MZ")) or packing(data) or path.suffix == ".whl":
        check = shlex.join(["rocwright", "wheel", "check-gpu", gpu, str(path)])
        raise _no_list(path, "it is a wheel, an archive or a library", check)
    if len(data) > MOST_BYTES:
        raise _no_list(path, f"it has more than {MOST_BYTES:,} bytes", f"give {FORMS}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _no_list(path, "it is not UTF-8 text", f"give {FORMS}") from error


def _toml(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _no_list(path, f"it is not TOML: {str(error)[:200]}", f"give {FORMS}") from error


def _pip(path: Path, text: str, prefix: str, included: set[Path]) -> Iterator[Entry]:
    """Yield the entries of pip's form, with those of lists that it includes from its own folder."""
    number, pending = 0, ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = pending + re.sub(r"(^|\s)#.*$", "", raw).strip()
        if line.endswith("\\"):
            pending = line[:-1].rstrip() + " "
            continue
        pending = ""
        yield from _pip_line(path, line, f"{prefix}{number}", included)
    if pending.strip():
        yield from _pip_line(path, pending.strip(), f"{prefix}{number}", included)


def _pip_line(path: Path, line: str, place: str, included: set[Path]) -> Iterator[Entry]:
    head, *options = re.split(r"(?:^|\s)(?=--?[A-Za-z])", line)
    if head.strip():
        yield from requirements_in(head.strip(), place)
    for match in filter(None, map(_OPTION.fullmatch, map(str.strip, options))):
        name, value = match.groups()
        if name in INDEX_OPTIONS and value:
            yield Entry(
                place=place, text=f"{INDEX_OPTIONS[name]} {value}", option=INDEX_OPTIONS[name], url=value
            )
        elif name in _INCLUDES:
            yield from _include(path, value, place, included)
        elif name in ("-e", "--editable", "--pre", "--no-binary", "--only-binary"):
            yield Entry(place=place, text=match[0], option=name)


def _include(path: Path, value: str, place: str, included: set[Path]) -> Iterator[Entry]:
    inner = (path.parent / value).resolve()
    if inner in included:
        return
    if not inner.is_relative_to(path.parent.resolve()) or len(included) >= MOST_FILES or not inner.is_file():
        yield Entry(place=place, text=value, problem="not read: it is not a list in this folder")
        return
    included.add(inner)
    yield from _pip(inner, _text_of(inner, "GPU"), f"{value}:", included)


def requirements_in(text: str, place: str) -> Iterator[Entry]:
    """Yield the requirement in a text, or all of several with blanks between them, or why there is none."""
    entry = _requirement(text, place)
    parts = [_requirement(part, place) for part in text.split(None, MOST_ON_A_LINE)] if entry.problem else []
    yield from parts if parts and not any(part.problem for part in parts) else [entry]


def _requirement(text: str, place: str) -> Entry:
    file = text.partition("#")[0].rstrip("/").rpartition("/")[2].partition("?")[0]
    try:
        if file.endswith(".whl") and " @ " not in text:
            project, version, *_ = names.read_wheel_name(unquote(file))
            return Entry(place=place, text=text, requirement=Requirement(f"{project}=={version}"), url=text)
        if text.startswith(("git+", "https://", "http://", "./", "../", "/")):
            egg = re.search(r"#egg=([\w.-]+)", text)
            name = egg[1] if egg else re.split(r"@|\.git|\.zip|\.tar", file)[0]
            return Entry(place=place, text=text, requirement=names.read_requirement(name), url=text)
        requirement = names.read_requirement(text)
    except (InvalidRequirement, InvalidWheelFilename, InvalidVersion):
        return Entry(place=place, text=text, problem="not read: it is no requirement")
    if requirement.url and (entry := _requirement(requirement.url, place)).pin:
        return replace(entry, text=text)
    return Entry(place=place, text=text, requirement=requirement, url=requirement.url or "")


def _conda(text: str) -> Iterator[Entry]:
    """Yield the entries of `dependencies:` and of `pip:` in it: block lists of plain texts, a line each."""
    section = pip = -1
    for number, line in enumerate(text.splitlines(), 1):
        bare = re.sub(r"(^|\s)#.*$", "", line).rstrip()
        indent, body = len(bare) - len(bare.lstrip()), bare.strip()
        if not body:
            continue
        if not body.startswith("-"):
            section, pip = (indent, -1) if body == "dependencies:" else (-1, -1)
            if body.startswith("dependencies:") and section < 0:
                yield Entry(place=str(number), text=body, problem="not read: write it as a list of lines")
            continue
        value = body[1:].strip().strip("\"'")
        pip = -1 if indent <= pip else pip
        if section < 0:
            continue
        if value == "pip:":
            pip = indent
        elif pip >= 0:
            yield from _pip_line(Path(), value, str(number), set())
        else:
            yield _conda_entry(value, str(number))


def _conda_entry(value: str, place: str) -> Entry:
    match = _CONDA.fullmatch(value)
    if match is None:
        return Entry(place=place, text=value, problem="not read: it is no package of conda")
    name, pin, specifier = match.groups()
    version = f"=={pin.rstrip('*').rstrip('.')}.*" if pin else specifier or ""
    entry = _requirement(f"{name}{version}", place)
    return replace(entry, text=value, conda=True)


def _tables(data: Mapping[str, Any], text: str) -> Iterator[Entry]:
    """Yield the entries of pyproject.toml, or of a lock file's list of packages."""

    def place(words: str) -> str:
        position = text.find(words)
        return str(text.count("\n", 0, position) + 1) if position >= 0 else ""

    project, tool = _table(data, "project"), _table(_table(data, "tool"), "uv")
    groups = (*_table(project, "optional-dependencies").values(), *_table(data, "dependency-groups").values())
    for group in (project.get("dependencies"), *groups, tool.get("dev-dependencies")):
        for line in group if isinstance(group, list) else ():
            if isinstance(line, str):
                yield _requirement(line, place(line))
    for index in tool.get("index", ()) if isinstance(tool.get("index"), list) else ():
        if isinstance(index, dict) and isinstance(url := index.get("url"), str):
            yield Entry(
                place=place(url), text=f"--extra-index-url {url}", option="--extra-index-url", url=url
            )
    packages = data.get("package", data.get("packages"))
    for package in packages if isinstance(packages, list) else ():
        if isinstance(package, dict) and not _is_local(package):
            name, version = package.get("name"), package.get("version")
            if isinstance(name, str) and isinstance(version, str):
                yield _requirement(f"{name}=={version}", place(f'name = "{name}"'))


def _is_local(package: Mapping[str, Any]) -> bool:
    """Return whether a lock names the project itself or a folder beside it."""
    source = _table(package, "source")
    return bool({"virtual", "editable", "directory", "path"} & source.keys()) or "directory" in package


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    return value if isinstance(value, dict) else {}
