"""A wheel, or a folder of libraries, judged as a whole in one pass over its files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from rocbase.errors import CheckError, InputError
from rocwheel.wheels.devicecode.fatbin import check_name, fat_binary, may_hold_code
from rocwheel.wheels.devicecode.gpu import is_gpu_elf
from rocwheel.wheels.elf import MAGIC
from rocwheel.wheels.lint.leftovers import LeftoverSearch
from rocwheel.wheels.lint.linking import linking_findings, machine_findings, policy_findings
from rocwheel.wheels.lint.model import Grade, LintFinding
from rocwheel.wheels.members import Member, members
from rocwheel.wheels.metadata import (
    Headers,
    RecordRow,
    WheelName,
    dist_info_folder,
    name_problems,
    parse_name,
    read_record,
    record_contradictions,
    record_gaps,
)
from rocwheel.wheels.needed import Linkage, linkage

_PE_MAGIC = b"MZ"
_PE_LIBRARIES = (".dll", ".pyd")
_PE_PROGRAM = ".exe"
_TEXTS = ("WHEEL", "METADATA", "RECORD")


def judge(path: Path, progress: Callable[[int], None] = lambda _: None) -> list[LintFinding]:
    """What is wrong or worth knowing of `path`: a wheel, or anything else that holds libraries.

    A wheel's words are compared with its content; libraries and leftovers are looked at in everything.
    `progress` gets the bytes of each file that is done. Raises InputError or CheckError where it cannot be
    read.
    """
    name = parse_name(path.name) if path.suffix == ".whl" else None
    rows: dict[str, RecordRow] = {}
    texts: dict[str, bytes] = {}
    libraries: dict[str, Linkage] = {}
    binaries: list[str] = []
    findings: list[LintFinding] = []
    for member in members(path):
        rows[member.path], search = _read(member)
        findings += search.findings()
        if name is not None and _is_word(member):
            dist_info_folder([*texts, member.path])  # one folder: all of its texts are held
            texts[member.path] = member.read()
        if _is_binary(member):
            binaries.append(member.path)
        if member.head.startswith(MAGIC):
            try:
                library = linkage(member.open())
            except CheckError as error:
                findings.append(_unreadable(member.path, error))
                continue
            if library is not None:
                libraries[member.path] = library
        findings += _code_findings(member)
        progress(member.size)
    headers = Headers(b"")
    if name is not None:
        folder = dist_info_folder(rows)
        inside = {
            text_path.removeprefix(f"{folder}/"): data
            for text_path, data in texts.items()
            if text_path.startswith(folder)
        }
        headers = Headers(inside.get("METADATA", b""))
        purelib = Headers(inside.get("WHEEL", b"")).get("Root-Is-Purelib").lower() == "true"
        findings += word_findings(name, folder, inside, rows)
        findings += content_findings(name, purelib, binaries)
        findings += _of_platforms(libraries, name)
    findings += linking_findings(
        libraries, [_requirement(requirement) for requirement in headers.all("Requires-Dist")]
    )
    order = list(Grade)
    return sorted(
        findings, key=lambda finding: (order.index(finding.grade), finding.kind, finding.path, finding.what)
    )


def _of_platforms(libraries: Mapping[str, Linkage], name: WheelName) -> list[LintFinding]:
    platforms = sorted({tag.platform for tag in name.tags})
    return [*machine_findings(libraries, platforms), *policy_findings(libraries, platforms)]


def _read(member: Member) -> tuple[RecordRow, LeftoverSearch]:
    """A file's row of RECORD and what was left behind in it, in one reading."""
    digest, search = hashlib.sha256(), LeftoverSearch(member.path)
    for piece in member.open().chunks(0, member.size):
        digest.update(piece)
        search.feed(piece)
    return RecordRow(path=member.path, sha256=digest.hexdigest(), size=member.size), search


def _is_word(member: Member) -> bool:
    folder, _, name = member.path.partition("/")
    return folder.endswith(".dist-info") and name in _TEXTS


def _is_binary(member: Member) -> bool:
    """Whether a file is a library or program for some machine's processor, not for a GPU.

    A program of Windows counts where it is installed to be run: those in a package are data, which tools copy
    (distlib's launchers, in pip and setuptools).
    """
    if member.head.startswith(MAGIC):
        return not is_gpu_elf(member.head)
    path = member.path.lower()
    runs = path.endswith(_PE_PROGRAM) and path.partition("/")[0].endswith(".data")
    return member.head.startswith(_PE_MAGIC) and (runs or path.endswith(_PE_LIBRARIES))


def _code_findings(member: Member) -> Iterator[LintFinding]:
    """Of a file's GPU code: what cannot be read, as far as its targets are told."""
    binary = None
    try:
        if may_hold_code(member.head):
            binary = fat_binary(member.open(), heads=True)
        else:
            check_name(member.path)
    except CheckError as error:
        yield LintFinding(
            grade=Grade.ERROR,
            kind="GPU code",
            path=member.path,
            what=error.message,
            next_step=error.next_step,
        )
        return
    for reason in binary.unread if binary else ():
        yield LintFinding(
            grade=Grade.WARNING, kind="GPU code", path=member.path, what=f"cannot be read: {reason}"
        )


def _unreadable(path: str, error: CheckError) -> LintFinding:
    return LintFinding(
        grade=Grade.ERROR, kind="damaged", path=path, what=error.message, next_step=error.next_step
    )


def _requirement(text: str) -> str:
    return text.partition(";")[0].strip()


MOST_SHOWN = 3

_EXTENSION = re.compile(
    r"\.(?P<abi>cpython-(?P<cpython>\d+)\w*(?:-[\w-]+)?|abi3|cp(?P<windows>\d+)-\w+)\.(?:so|pyd)$"
)


def word_findings(
    name: WheelName, folder: str, texts: Mapping[str, bytes], content: Mapping[str, RecordRow]
) -> Iterator[LintFinding]:
    """Contradictions; `texts` are the files of `folder` (*.dist-info) by name, `content` every file's row."""
    wheel, metadata = Headers(texts.get("WHEEL", b"")), Headers(texts.get("METADATA", b""))
    for problem in name_problems(name, folder, wheel, metadata):
        yield _error("metadata", "", problem)
    try:
        rows = read_record(texts.get("RECORD", b""))
        problems = [*record_contradictions(rows, content), *record_gaps(rows, content, folder)]
    except (CheckError, InputError) as error:
        problems = [f"{error.message}: {error.cause}"]
    for problem in problems[:MOST_SHOWN]:
        yield _error("RECORD", "", problem)
    if len(problems) > MOST_SHOWN:
        yield _error("RECORD", "", f"and {len(problems) - MOST_SHOWN:,} more like these")


def content_findings(name: WheelName, purelib: bool, binaries: Iterable[str]) -> Iterator[LintFinding]:
    """Tags against what kind of files there are; `binaries` are paths of libraries and programs for machines.

    Sources: PEP 425 (tags), PEP 427 (Root-Is-Purelib), PEP 3149 and PEP 384 (names of extension modules).
    """
    paths = sorted(binaries)
    if purelib and paths:
        yield _error("WHEEL", paths[0], "Root-Is-Purelib is true, but this is machine code")
    pythons = {tag.interpreter.removeprefix("cp") for tag in name.tags if tag.interpreter.startswith("cp")}
    for path in paths:
        match = _EXTENSION.search(path)
        made_for = match and (match["cpython"] or match["windows"])
        if match is None:
            continue
        if made_for and made_for not in pythons:
            interpreters = ", ".join(sorted({tag.interpreter for tag in name.tags}))
            yield _error(
                "python tag",
                path,
                f"it is an extension of CPython {_dotted(made_for)}; the wheel says {interpreters}",
            )
        if match["abi"] == "abi3" and not any(tag.interpreter.startswith("cp") for tag in name.tags):
            yield _error(
                "python tag", path, "it is an extension of CPython, but the wheel's tag names no CPython"
            )


def _dotted(digits: str) -> str:
    return f"{digits[0]}.{digits[1:]}"


def _error(kind: str, path: str, problem: str) -> LintFinding:
    return LintFinding(grade=Grade.ERROR, kind=kind, path=path, what=problem)
