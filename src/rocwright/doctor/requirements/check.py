"""Checks a list of Python packages, or an environment, and makes the list that works."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rocbase.model import Frozen
from rocwheel.wheels.choose import Target
from rocwright.catalog.load import Catalog
from rocwright.doctor.requirements.facts import package_facts
from rocwright.doctor.requirements.judge import Judge, ListFinding
from rocwright.doctor.requirements.lists import Entry, read_list
from rocwright.doctor.requirements.look_up import Lookup, applies, installed
from rocwright.doctor.requirements.substitutes import Substitutes
from rocwright.sources.python_resolver import Interpreter


class CheckedList(Frozen):
    """A list of Python packages that was checked for a GPU: findings, and the `lines` of one that works.

    `looked_up` counts the packages whose files could be looked into, `received` the bytes for that.
    """

    path: str
    gpu: str
    python: str
    entries: int
    looked_up: int
    received: int
    findings: tuple[ListFinding, ...]
    lines: tuple[str, ...]

    @property
    def stops(self) -> int:
        """How many findings are errors."""
        return sum(finding.grade == "error" for finding in self.findings)

    @property
    def unsure(self) -> bool:
        """Whether a line could not be read, or its file not looked into."""
        return any(finding.grade == "note" for finding in self.findings)

    @property
    def indexes(self) -> tuple[str, ...]:
        """The package indexes that the new lines need beside the usual one."""
        return tuple(dict.fromkeys(finding.index for finding in self.findings if finding.index))


def check_list(path: Path, gpu: str, python: Interpreter, catalog: Catalog) -> CheckedList:
    """Check a list or an environment's folder. Raises InputError if it is neither."""
    facts, target = package_facts(), Target(gpu)
    received = 0
    if path.is_dir():
        contents = installed(path, target, catalog.overrides)
        entries = [*contents]
    else:
        entries = [
            entry
            for entry in read_list(path, gpu)
            if not entry.requirement or applies(entry.requirement, python)
        ]
        lookup = Lookup(facts=facts, gpu=target, overrides=catalog.overrides, python=python)
        contents = lookup.look_up(entries)
        received = lookup.allowance.received
    judge = Judge(
        entries=entries,
        contents=contents,
        python=python,
        facts=facts,
        substitutes=Substitutes(catalog=catalog, gpu=gpu),
        is_installed=path.is_dir(),
    )
    findings = judge.findings()
    return CheckedList(
        path=str(path),
        gpu=gpu,
        python=python.version,
        entries=sum(bool(entry.name) for entry in entries),
        looked_up=sum(bool(files.version) for files in contents.values()),
        received=received,
        findings=tuple(findings.values()),
        lines=tuple(_lines(entries, findings)),
    )


def _lines(entries: list[Entry], findings: dict[Entry, ListFinding]) -> Iterator[str]:
    """Yield the lines of the list that works, for pip and uv: without hashes, which are of the old files."""
    yield from (
        f"--extra-index-url {index}"
        for index in dict.fromkeys(finding.index for finding in findings.values())
        if index
    )
    for entry in (*entries, *(entry for entry, finding in findings.items() if finding.added)):
        finding = findings.get(entry)
        if entry.problem or (entry.conda and finding is None):
            yield f"# not for pip: {entry.text}"
        elif finding is None or finding.stays:
            yield entry.text
        elif finding.write:
            yield finding.write
        else:
            yield f"# {entry.text}: {finding.problem}; {finding.advice}".replace("\n", " ")
