"""Judges a list of Python packages for a GPU: what brings CUDA, what lacks code, what cannot go together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rocbase.model import Frozen
from rocbase.units import printable
from rocwheel.wheels.runs_on import Judged, RunsOn
from rocwright.doctor.requirements.facts import PackageFact, PythonPackagesFile, matches
from rocwright.doctor.requirements.lists import Entry, pin_of
from rocwright.doctor.requirements.look_up import PackageContents, applies, local_tag
from rocwright.doctor.requirements.substitutes import Substitute, Substitutes
from rocwright.model.versions import version_in
from rocwright.sources.python_resolver import Interpreter

Grade = Literal["error", "warning", "note"]

_MINOR = re.compile(r"(?:rocm)?(\d+\.\d+)")


class ListFinding(Frozen):
    """What is wrong with an entry of a list; an `error` stops what the list is for.

    `write` is the requirement to write instead, from the package index `index` if it is not the usual one;
    `advice` is for a person. An entry that `stays` is in the new list as it was; one that is `added` was
    missing.
    """

    line: str
    name: str
    grade: Grade
    problem: str
    write: str = ""
    index: str = ""
    advice: str = ""
    stays: bool = False
    added: bool = False


@dataclass(slots=True, kw_only=True)
class Judge:
    """Judges the entries of a list; `contents` is what their files hold, as far as somebody could look."""

    entries: Sequence[Entry]
    contents: Mapping[Entry, PackageContents]
    python: Interpreter
    facts: PythonPackagesFile
    substitutes: Substitutes
    is_installed: bool = False
    _findings: dict[Entry, ListFinding] = field(default_factory=dict, init=False)
    _brought: dict[str, str] = field(default_factory=dict, init=False)

    def findings(self) -> dict[Entry, ListFinding]:
        """Return what is wrong by entry, in the order of the list; what is missing comes last."""
        for entry in self.entries:
            if finding := self._judged(entry):
                self._findings[entry] = finding
        self._leave_what_is_brought()
        for rule in (self._versions_apart, self._rocms_apart, self._copies):
            for entry, problem, substitute in [*rule()]:
                finding = self._findings.get(entry)
                if finding is None or finding.grade == "note":
                    self._findings[entry] = _finding(
                        entry, "error", problem, substitute, stays=not substitute.write
                    )
                else:
                    joined = f"{finding.problem}; {printable(problem)[:200]}"
                    self._findings[entry] = finding.model_copy(update={"problem": joined})
        ordered = {entry: self._findings[entry] for entry in self.entries if entry in self._findings}
        return ordered | ({} if self.is_installed else dict(self._missing()))

    def _row(self, entry: Entry) -> PackageFact | None:
        extras = entry.requirement.extras if entry.requirement else ()
        return self.facts.fact(self._name(entry), extras) if entry.name else None

    def _name(self, entry: Entry) -> str:
        return self.facts.conda.get(entry.name, entry.name) if entry.conda else entry.name

    def _judged(self, entry: Entry) -> ListFinding | None:
        if entry.problem:
            return _finding(entry, "note", entry.problem, stays=True)
        if entry.requirement is None:
            build, substitute = self.facts.build_of(address=entry.url), Substitute(advice="leave it out")
            return (
                _finding(entry, "error", f"{build} builds", substitute) if build in ("CUDA", "CPU") else None
            )
        contents, row, tag = self.contents.get(entry, PackageContents()), self._row(entry), local_tag(entry)
        build = self.facts.build_of(tag=tag) or self.facts.build_of(address=entry.url)
        problem = f"a {build} build" if build in ("CUDA", "CPU") else self._shown_by(contents)
        fault = self.substitutes.fault(row, entry, self._name(entry))
        if problem or fault:
            return self._answered(entry, row, "error", problem or fault or "")
        if contents.unfit:
            answered = self._answered(entry, row, "error", contents.unfit)
            return answered if row else _finding(entry, "error", contents.unfit, stays=True)
        if row and row.brings and build != "ROCm" and fault is None and not self._holds_rocm(contents):
            return self._answered(entry, row, row.grade, row.brings)
        unread = contents.unread or (
            "" if fault == "" or contents.version or build != "ROCm" else "not asked"
        )
        return _finding(entry, "note", unread, stays=True) if unread else None

    def _holds_rocm(self, contents: PackageContents) -> bool:
        files = self.facts.named("ROCm").files
        return bool(contents.code) or any(matches(path, files) for path in contents.members)

    def _shown_by(self, contents: PackageContents) -> str:
        """Return the problem that the files of a package show."""
        for judged in _worst_first(contents.code):
            if judged.verdict in (RunsOn.NO, RunsOn.OVERRIDE):
                suffix = " without an override" if judged.verdict is RunsOn.OVERRIDE else ""
                return f"no code for {self.substitutes.gpu}{suffix} ({PurePosixPath(judged.path).name})"
        cuda = self.facts.named("CUDA").files
        shown = next((path for path in contents.members if matches(path, cuda)), "")
        if shown and not self._holds_rocm(contents):
            return f"a CUDA build ({PurePosixPath(shown).name})"
        for name in self._required(contents):
            row = self.facts.fact(name)
            if row and row.part:
                return f"requires {name}, {row.brings}"
        return ""

    def _required(self, contents: PackageContents) -> Iterator[str]:
        for requirement in contents.requires:
            if applies(requirement, self.python):
                yield canonicalize_name(requirement.name)

    def _answered(self, entry: Entry, row: PackageFact | None, grade: Grade, problem: str) -> ListFinding:
        specifier = str(entry.requirement.specifier) if entry.requirement else ""
        substitute = self.substitutes.find(row, self._name(entry), specifier)
        if substitute.python and not version_in(f"{self.python.version}.0", substitute.python):
            problem = f"{problem}; its wheel for ROCm needs Python {substitute.python}"
        self._brought |= dict.fromkeys(substitute.brings, entry.name)
        stays = grade == "warning" and not substitute.write
        return _finding(entry, grade, problem, substitute, stays=stays)

    def _leave_what_is_brought(self) -> None:
        """Leave out what another entry's new wheel brings itself: the torch of vLLM's index is vLLM's own."""
        for entry, finding in [*self._findings.items()]:
            row = self._row(entry)
            bringer = (
                next((self._brought[name] for name in row.names if name in self._brought), "") if row else ""
            )
            if finding.write and bringer not in ("", entry.name):
                substitute = Substitute(advice=f"leave it out: it comes with {bringer}")
                self._findings[entry] = _finding(entry, finding.grade, finding.problem, substitute)

    def _versions_apart(self) -> Iterator[tuple[Entry, str, Substitute]]:
        """Yield packages of one version that require another version of a package than the list has."""
        by_name = {self._name(entry): entry for entry in self.entries if entry.name}
        for entry, contents in self.contents.items():
            written = entry not in self._findings
            substitute = Substitute() if self.is_installed else Substitute(write=_without_version(entry))
            for requirement in contents.requires if entry.pin else ():
                listed_entry = by_name.get(canonicalize_name(requirement.name))
                if not listed_entry or not applies(requirement, self.python):
                    continue
                if problem := self._apart(requirement, listed_entry, written=written):
                    yield entry, problem, substitute
                    break

    def _apart(self, requirement: Requirement, listed_entry: Entry, *, written: bool) -> str:
        """Return why an entry is not of a required version: the one that is `written` instead, or its own."""
        finding = self._findings.get(listed_entry) if written else None
        if finding and not finding.stays and not finding.write:
            return ""
        new = finding.write if finding and not finding.stays else ""
        pin = pin_of(Requirement(new)) if new else listed_entry.pin
        needs = f"requires {requirement.name}{requirement.specifier}"
        line = "" if self.is_installed else f" of line {listed_entry.place}"
        if pin and not version_in(pin, str(requirement.specifier)):
            return f"{needs}, not {pin}{line}"
        own = listed_entry.requirement.specifier if listed_entry.requirement and not new else ""
        required = pin_of(requirement)
        return f"{needs}, not {own}{line}" if required and not version_in(required, str(own)) else ""

    def _rocms_apart(self) -> Iterator[tuple[Entry, str, Substitute]]:
        """Yield the packages for a ROCm of another minor version than the first."""
        minors: dict[Entry, str] = {}
        for entry in self.entries:
            tag = entry.pin if matches(entry.name, self.facts.named("ROCm").versions) else local_tag(entry)
            match = _MINOR.match(tag) or re.search(r"rocm(\d+\.\d+)", entry.url)
            if match:
                minors[entry] = match[1]
        for entry, minor in minors.items():
            first, first_minor = next(iter(minors.items()))
            if minor != first_minor:
                problem = f"for ROCm {minor}, but {first.name or 'the index'} is for {first_minor}"
                row = self._row(entry)
                yield (
                    entry,
                    problem,
                    self.substitutes.find(row, entry.name) if row else Substitute(advice="use one ROCm"),
                )

    def _copies(self) -> Iterator[tuple[Entry, str, Substitute]]:
        """Yield the packages that bring a second copy of ROCm's runtime library."""
        runtime = self.facts.named("ROCm").runtime
        contents = self.contents.items()
        holders = [
            entry for entry, files in contents if any(matches(path, runtime) for path in files.members)
        ]
        for entry in holders[1:]:
            problem = f"a second copy of ROCm beside that of {holders[0].name}"
            yield entry, problem, Substitute(advice="keep one of the two")

    def _missing(self) -> Iterator[tuple[Entry, ListFinding]]:
        """Yield what entries require, is not in the list, and would come for CUDA."""
        listed = {self._name(entry) for entry in self.entries} | self._brought.keys()
        for entry, contents in self.contents.items():
            finding = self._findings.get(entry)
            for name in self._required(contents) if finding is None or finding.stays else ():
                row = self.facts.fact(name)
                substitute = self.substitutes.find(row, name)
                if (
                    name not in listed
                    and row
                    and row.brings
                    and row.grade == "error"
                    and (substitute.write or substitute.build)
                ):
                    listed.add(name)
                    added = Entry(place=entry.place, text=name, requirement=Requirement(name))
                    problem = f"{entry.name} requires it: {row.brings}"
                    yield added, _finding(added, "error", problem, substitute, added=True)


def _worst_first(code: Sequence[Judged]) -> list[Judged]:
    """Return the verdicts on libraries, of those for several releases of ROCm the best: one is loaded."""
    order, best = list(RunsOn), dict[str, Judged]()
    for judged in code:
        name = re.sub(r"\d+", "", judged.path)
        best[name] = min(judged, best.get(name, judged), key=lambda entry: order.index(entry.verdict))
    return sorted(best.values(), key=lambda entry: -order.index(entry.verdict))


def _finding(
    entry: Entry, grade: Grade, problem: str, substitute: Substitute | None = None, **flags: bool
) -> ListFinding:
    substitute = substitute or Substitute()
    return ListFinding(
        line=entry.place,
        name=printable(entry.name or entry.option or entry.text)[:60],
        grade=grade,
        problem=printable(problem)[:200],
        write=substitute.write,
        index=substitute.index,
        advice=substitute.build or substitute.advice,
        **flags,
    )


def _without_version(entry: Entry) -> str:
    extras = ",".join(sorted(entry.requirement.extras)) if entry.requirement else ""
    return f"{entry.name}[{extras}]" if extras else entry.name
