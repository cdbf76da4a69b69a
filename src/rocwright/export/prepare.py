"""`prepare.sh`: sources fetched, checked by hash or commit, edited and packed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rocbase.files.atomic import sha256_bytes
from rocwright.catalog.address import ArchivePlace, filename_of
from rocwright.catalog.place import DebianPlace, GitPlace, IndexPlace
from rocwright.export.arguments import TARBALLS, component_arguments, root_arguments
from rocwright.export.edits import PROGRAM, edits_file, program
from rocwright.export.model import ExportFile, ExportSubject, Files, lines_of, slug, variable
from rocwright.export.packages import package_files, package_lines, sdists
from rocwright.export.quote import comment, shell
from rocwright.export.requirements import requirement_files
from rocwright.export.roots import from_packages
from rocwright.export.templates import template
from rocwright.model.step_environment import EPOCH
from rocwright.model.steps import (
    ArchiveOrigin,
    BuiltinOrigin,
    DebianSourceOrigin,
    GitOrigin,
    IndexOrigin,
    TreeAction,
)
from rocwright.model.versions import version_in
from rocwright.plan.make import DOWNLOADS
from rocwright.plan.resolve.aliases import base_of
from rocwright.plan.resolve.model import LockedComponent, LockedRoot
from rocwright.sources.places import describe, kind_of

_SDIST = '''\
"""Download the source distribution of a release from the index that pip is set up for.

usage: sdist.py PROJECT VERSION FOLDER [INDEX]
"""

import html.parser
import re
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found += [value for name, value in attributes if tag == "a" and name == "href" and value]


def index():
    """The simple index of pip: its environment, then its files, then its own default."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True, cwd="/"
    ).stdout
    found = dict(re.findall(r"^(\\S*)\\.index-url='([^']+)'$", listed, re.MULTILINE))
    if found:
        return found.get(":env:") or list(found.values())[-1]
    from pip._internal.models.index import PyPI

    return PyPI.simple_url


def main(project, version, folder, named=""):
    page = (named or index()).rstrip("/") + "/" + re.sub(r"[-_.]+", "-", project).lower() + "/"
    with urllib.request.urlopen(page) as answer:
        links = Links()
        links.feed(answer.read().decode())
    name = re.sub(r"[-_.]+", "[-_.]+", re.escape(project).replace("\\\\-", "-"))
    wanted = re.compile(rf"(?i){name}-{re.escape(version)}\\.(tar\\.gz|zip)")
    for link in links.found:
        url = urllib.parse.urljoin(page, link)
        filename = urllib.parse.unquote(urllib.parse.urlsplit(url).path.rpartition("/")[2])
        if wanted.fullmatch(filename):
            with urllib.request.urlopen(url.partition("#")[0]) as answer:
                Path(folder, filename).write_bytes(answer.read())
            return
    sys.exit(f"the index has no source distribution of {project} {version}")


main(*sys.argv[1:])
'''


def edit_files(subject: ExportSubject) -> Files:
    """The edits of each tree, `edits/STEP.json`, and the program that applies them."""
    files: Files = {}
    for step in subject.plan.steps:
        if isinstance(step.action, TreeAction) and step.action.edits:
            files[f"edits/{slug(step.name)}.json"] = edits_file(
                step.action.edits,
                [_absorbed(edit.absorbed, step.action.version) for edit in step.action.edits],
            )
            files[PROGRAM] = program()
    return files


def prepare_files(subject: ExportSubject, image_lines: Iterable[str] = ()) -> Files:
    """The script, the hashes of the sources, what rocwright carries of them, and the edits; `image_lines`
    are the commands that only an image needs."""
    files = edit_files(subject)
    for locked in _built(subject):
        folder = f"sources/{slug(locked.name)}"
        if locked.kind == "git":
            continue
        if locked.kind == "sdist":
            files["sources/sdist.py"] = ExportFile(_SDIST.encode())
        if locked.files:
            files[f"{folder}/sha256"] = lines_of(f"{pin.sha256}  {pin.filename}" for pin in locked.files)
        carried = dict(_carried(locked, subject))
        if carried and not locked.files:
            files[f"{folder}/sha256"] = lines_of(
                f"{sha256_bytes(content)}  {name}" for name, content in carried.items()
            )
        files |= {f"{folder}/{name}": ExportFile(data) for name, data in carried.items()}
    files |= requirement_files(subject) | package_files(subject)
    if sdists(subject):
        files["sources/sdist.py"] = ExportFile(_SDIST.encode())
    files["prepare.sh"] = _script(subject, image_lines)
    return files


def _absorbed(versions: str, version: str) -> bool:
    return bool(versions and version) and version_in(version, versions)


def _built(subject: ExportSubject) -> list[LockedComponent]:
    return [component for component in subject.lock.components if component.kind not in ("image", "wheels")]


def _carried(locked: LockedComponent, subject: ExportSubject) -> Iterator[tuple[str, bytes]]:
    for pin in locked.files:
        if isinstance(pin.origin, BuiltinOrigin) and pin.origin.name in subject.sources:
            yield pin.filename, subject.sources[pin.origin.name]
    if not locked.files and locked.kind == "builtin":
        for name, data in subject.sources.items():
            yield f"{name}.tar.zst", data


def _script(subject: ExportSubject, image_lines: Iterable[str]) -> ExportFile:
    lines = [template("prepare.sh").replace("@EPOCH@", str(EPOCH)).rstrip("\n"), ""]
    for locked in _built(subject):
        lines += (_file_lines if is_file(locked, subject) else _source_lines)(locked, subject)
    lines += root_lines(subject.roots)
    lines += _python_lines(subject)
    lines += image_lines
    return lines_of(lines, executable=True)


def root_lines(roots: Iterable[LockedRoot]) -> Iterator[str]:
    """Make the root file systems that consist of packages alone."""
    for root in from_packages(roots):
        name = next((argument.name for argument in root_arguments(root) if argument.pending), "")
        if name:
            yield f'[ -n "${{{name}:-}}" ] || pending {name} {shell(root.pending)}'
        yield f"[ -e base/{root.role}.tar ] || base/make-root.sh {root.role}"


def python_of(subject: ExportSubject) -> str:
    """The version of Python that wheels are fetched for."""
    lock = subject.lock
    python = lock.python.version if lock.python is not None else lock.provided.get("python", "")
    return python or base_of(lock, subject.catalog)[1].python


def _python_lines(subject: ExportSubject) -> Iterator[str]:
    python, machine = python_of(subject), subject.lock.request.architecture
    for folder, part in subject.packages:
        if not (part.files or part.pending):
            continue
        if part.pending:
            name = variable(folder, "requirements", "sha256")
            yield f'[ -n "${{{name}:-}}" ] || pending {name} {shell(part.pending)}'
            yield f"mkdir -p {folder}"
            yield f"printf '%s  %s\\n' \"${name}\" {folder}/requirements.lock | sha256sum --check --quiet"
        yield f"wheels {folder} {shell(python)} {shell(machine)}"
    yield from _tarball_lines(subject)
    yield from package_lines(subject, python, machine)


def is_file(locked: LockedComponent, subject: ExportSubject) -> bool:
    """Whether a component is handed on as it was published."""
    return subject.catalog.component(locked.name).kind == "file"


def _file_lines(locked: LockedComponent, subject: ExportSubject) -> Iterator[str]:
    """What is handed on as it was published: fetched, and checked by its hash."""
    name = slug(locked.name)
    yield f"# {comment(locked.name)} {comment(locked.version)}: {comment(locked.place)}"
    yield from (
        f'[ -n "${{{argument.name}:-}}" ] || pending {argument.name} {shell(argument.pending)}'
        for argument in component_arguments(locked)
        if argument.pending
    )
    yield from _fetch_lines(locked, subject)
    hash_name = next((argument.name for argument in component_arguments(locked) if argument.pending), "")
    yield f'given sources/{name} "${hash_name}"' if hash_name else f"checked sources/{name}"
    yield ""


def file_path(locked: LockedComponent, subject: ExportSubject) -> str:
    """Where `prepare.sh` puts a file that is handed on as it was published."""
    return f"sources/{slug(locked.name)}/{filename_of(_place(locked, subject).url)}"


def _tarball_lines(subject: ExportSubject) -> Iterator[str]:
    part = subject.tarballs
    if part is None:
        return
    if part.pending:
        yield f'[ -n "${{{TARBALLS}:-}}" ] || pending {TARBALLS} {shell(part.pending)}'
    for url in part.wanted:
        yield f"fetched rocm {shell(filename_of(url))} {shell(url)}"
    for pin in part.files:
        yield f"hashed {shell(f'rocm/{pin.filename}')} sha256 {pin.sha256}"
    if part.pending:
        yield f'given rocm "${TARBALLS}"'


def _source_lines(locked: LockedComponent, subject: ExportSubject) -> Iterator[str]:
    tree = next(step for step in subject.plan.steps if step.name == f"tree/{locked.name}")
    assert isinstance(tree.action, TreeAction)
    name = slug(locked.name)
    yield f"# {comment(locked.name)} {comment(locked.version)}: {comment(locked.place)}"
    for argument in component_arguments(locked):
        yield f'[ -n "${{{argument.name}:-}}" ] || {argument.name}={shell(argument.value)}'
        if argument.pending:
            yield f'[ -n "${argument.name}" ] || pending {argument.name} {shell(argument.pending)}'
    yield from _fetch_lines(locked, subject)
    yield from _download_lines(locked, subject)
    if locked.kind == "builtin" or (locked.files and locked.kind != "git"):
        yield f"checked sources/{name}"
    elif locked.kind != "git":
        variable_name = next(argument.name for argument in component_arguments(locked) if argument.pending)
        yield f'given sources/{name} "${variable_name}"'
    yield f"unpacked {name} {shell(locked.subdir)}"
    if tree.action.series:
        yield f"series {name} {' '.join(map(shell, tree.action.series))}"
    if tree.action.packaging:
        yield f"packaging {name} {' '.join(map(shell, tree.action.packaging))}"
    if tree.action.edits:
        yield f'python3 {PROGRAM} edits/{slug(tree.name)}.json "$tree"'
    yield f"packed {name}"
    yield ""


def _fetch_lines(locked: LockedComponent, subject: ExportSubject) -> Iterator[str]:
    name = slug(locked.name)
    version, *arguments = [argument.name for argument in component_arguments(locked)]
    place = _place(locked, subject)
    match locked.kind:
        case "git":
            submodules = " ".join(shell(f"{path}={commit}") for path, commit in sorted(place.held.items()))
            paths, repository = shell(" ".join(place.paths)), "1" if place.repository else "''"
            words = f'{name} {shell(place.url)} "${arguments[0]}" {paths} {repository} {submodules}'
            yield f"git_tree {words}".rstrip()
        case "sdist":
            version_word = (
                shell(place.version) if locked.files or place.version != locked.version else f'"${version}"'
            )
            yield f"sdist {name} {shell(place.project)} {version_word}"
        case "archive":
            yield f"fetched sources/{name} {shell(filename_of(place.url))} {shell(place.url)}"
        case "debian":
            root = subject.lock.roots[0]
            package = f"{place.project}={place.version}" if locked.files else place.project
            yield (
                f"debian {name} {shell(place.suite or root.suite)} "
                f"{shell(root.architecture)} {shell(package)}"
            )
        case _:
            return


def _download_lines(locked: LockedComponent, subject: ExportSubject) -> Iterator[str]:
    """What the build would download, by the hashes of the lock, or, where it has none yet, of the recipe."""
    step = next(
        (candidate for candidate in subject.plan.steps if candidate.name == f"{DOWNLOADS}/{locked.name}"),
        None,
    )
    if step is None:
        return
    folder = slug(step.name)
    locked_hashes = {
        pin.origin.url: pin.sha256 for pin in locked.downloads if isinstance(pin.origin, ArchiveOrigin)
    }
    for file in subject.catalog.component(locked.name).downloads(locked.version):
        sha256 = locked_hashes.get(file.url, file.sha256)
        kind, digest = ("sha256", sha256) if sha256 else ("sha512", file.sha512)
        yield f"fetched {folder} {shell(file.filename)} {shell(file.url)}"
        yield f"hashed {shell(f'{folder}/{file.filename}')} {kind} {digest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a source is, from its pins, or, where these are not known, from the recipe."""

    url: str = ""
    project: str = ""
    version: str = ""
    suite: str = ""
    held: dict[str, str] = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    repository: bool = False


def _place(locked: LockedComponent, subject: ExportSubject) -> _Place:
    for pin in locked.files:
        match pin.origin:
            case GitOrigin():
                return _Place(
                    url=pin.origin.url,
                    held=dict(pin.origin.held),
                    paths=pin.origin.paths,
                    repository=pin.origin.repository,
                )
            case IndexOrigin():
                return _Place(project=pin.origin.project, version=pin.origin.version)
            case ArchiveOrigin():
                return _Place(url=pin.origin.url)
            case DebianSourceOrigin():
                return _Place(project=pin.origin.package, version=pin.origin.version, suite=pin.origin.suite)
            case _:
                continue
    component = subject.catalog.component(locked.name)
    for place in component.released(locked.version).places:
        if describe(place) == locked.place or kind_of(place) == locked.kind:
            match place:
                case GitPlace():
                    return _Place(
                        url=place.git, held=dict(place.held), paths=place.paths, repository=place.repository
                    )
                case ArchivePlace():
                    return _Place(url=place.url)
                case IndexPlace():
                    return _Place(project=place.sdist, version=place.version)
                case DebianPlace():
                    return _Place(project=place.debian)
                case _:
                    continue
    return _Place()
