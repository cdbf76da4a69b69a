"""Of a wheel's words: file name, WHEEL, METADATA and RECORD against one another and against the files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from rocbase.errors import CheckError, InputError
from rocwheel.wheels.lint.model import Grade, LintFinding
from rocwheel.wheels.metadata import (
    Headers,
    RecordRow,
    WheelName,
    name_problems,
    read_record,
    record_contradictions,
    record_gaps,
)

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
