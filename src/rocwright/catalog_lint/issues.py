"""Whether signatures of failures hold: examples match, look-alikes do not, what they name is there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from string import Formatter

import re2

from rocbase.toml.read import Reader, TableFault
from rocwright.catalog.issue import (
    ErrorLines,
    Issue,
    Signature,
    bare,
    groups_of,
    options,
    plain,
    read_error_lines,
    read_issues,
    stamps,
)
from rocwright.catalog.load import Catalog
from rocwright.catalog.refuse import refused
from rocwright.catalog.remedy import (
    AddPackages,
    PickVersion,
    RemedyAction,
    SetVariables,
    TakeEdit,
    UnsetVariables,
    texts_of,
)
from rocwright.diagnosis.diagnose import FailurePlace, LogSearch
from rocwright.model.edits import check_inside
from rocwright.model.versions import version_in
from rocwright.plan.resolve.aliases import ROCM

Findings = Iterator[tuple[str, str]]


def check_issues(reader: Reader, catalog: Catalog) -> list[TableFault]:
    """Everything wrong in the known failures and the lines by which tools tell failures."""
    issues, lines = read_issues(reader), read_error_lines(reader)
    faults = []
    for issue in issues.values():
        path, place = reader.where[Issue, issue.name]
        stamp = stamps(lines.before)
        findings = (
            *_signature(issue, stamp),
            *_quotes(issue, stamp),
            *_filled(issue),
            *_issue(issue, catalog),
        )
        faults += [
            TableFault(path, f"{place} ({issue.name}).{field}", message) for field, message in findings
        ]
    faults += _not_diagnosed(reader, issues, lines)
    path = reader.layers("error_lines.toml")[0]
    for line in lines.error_line:
        faults += [
            TableFault(path, f"error_line ({line.name}).{field}", message)
            for field, message in _signature(line, stamps(lines.before))
        ]
    return faults


def _not_diagnosed(reader: Reader, issues: Mapping[str, Issue], lines: ErrorLines) -> list[TableFault]:
    """Return the examples for which a diagnosis names another issue first, or none."""
    faults = []
    for issue in issues.values():
        path, place = reader.where[Issue, issue.name]
        for text in issue.examples:
            search = LogSearch(FailurePlace(targets=issue.targets), (issues, lines))
            search.feed(b"\n".join((" ".join(issue.named).encode(), plain(text), b"")))
            names = [match.issue.name for match in search.told().known]
            if names[:1] != [issue.name]:
                message = f"{text!r} is diagnosed as {' or '.join(names) or 'nothing known'}"
                faults.append(TableFault(path, f"{place} ({issue.name}).examples", message))
    return faults


def _fits(pattern: re2.Pattern, text: str, stamp: re2.Pattern | None) -> bool:
    line = plain(text)
    return bool(pattern.search(line) or pattern.search(bare(line, stamp)))


def _quotes(issue: Issue, stamp: re2.Pattern | None) -> Findings:
    """A line that a program printed, and that the issue's own patterns miss."""
    patterns = [re2.compile(text.encode(), options()) for text in issue.patterns]
    for quote in issue.quotes:
        if "\n" in quote.line:
            yield "quotes", f"{quote.line!r} is more than a line"
        elif not any(_fits(pattern, quote.line, stamp) for pattern in patterns):
            yield "quotes", f"no pattern matches {quote.line!r}, which a program printed ({quote.source})"


def _filled(issue: Issue) -> Findings:
    """Words that name what no pattern matches, and names that no words use."""
    groups = [groups_of(text) for text in issue.patterns]
    if issue.filled is None:
        yield from (
            ("patterns", f"{', '.join(sorted(group_names))}: no filled words")
            for group_names in groups
            if group_names
        )
        return
    try:
        names = _names(issue.filled.means + issue.filled.remedy)
        names |= _names(issue.filled.indexed) - {"packages", "base"}
    except ValueError as error:
        yield "filled", str(error)
        return
    for text, has in zip(issue.patterns, groups, strict=True):
        if names - has:
            yield "filled", f"{text!r} has no group {', '.join(sorted(names - has))}"


def _names(words: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(words) if name is not None}


def _signature(signature: Signature, stamp: re2.Pattern | None) -> Findings:
    patterns = [(text, re2.compile(text.encode(), options())) for text in signature.patterns]
    for text in signature.examples:
        if not any(_fits(pattern, text, stamp) for _, pattern in patterns):
            yield "examples", f"no pattern matches {text!r}"
    for text in signature.no_match:
        yield from (
            ("no_match", f"{pattern_text!r} matches {text!r}")
            for pattern_text, pattern in patterns
            if _fits(pattern, text, stamp)
        )
    for text, pattern in patterns:
        if not any(_fits(pattern, example, stamp) for example in signature.examples):
            yield "patterns", f"{text!r} has no example"


def _issue(issue: Issue, catalog: Catalog) -> Findings:
    yield from (("targets", f"{name} is not known") for name in issue.targets if name not in catalog.targets)
    known_bases = {name for base in catalog.bases.values() for name in (base.name, *base.names)}
    yield from (("bases", f"{name} is not known") for name in issue.bases if name not in known_bases)
    if not all(text.strip() for text in issue.source):
        yield "source", "a fact needs its source"
    fixed = (fix.component for fix in issue.fixed_in)
    yield from (("fixed_in", f"{name} is not known") for name in fixed if name not in catalog.components)
    for name in issue.versions:
        if name not in issue.components:
            yield "versions", f"{name} is not among the components"
    patterns = issue.patterns if issue.filled else ()
    named = {name for pattern in patterns for name in groups_of(pattern)}
    for number, action in enumerate(issue.remedies):
        places = set(re.findall(r"{(\w+)}", " ".join(texts_of(action))))
        yield from ((f"remedies.{number}", f"no pattern names {name}") for name in sorted(places - named))
        yield from (
            (f"remedies.{number}.{field}", message) for field, message in _action(action, issue, catalog)
        )


def _action(action: RemedyAction, issue: Issue, catalog: Catalog) -> Findings:
    """What is wrong in an action: names that nobody knows, versions that nobody has, edits of no file.

    A component in whose logs the issue was seen is known, also where no recipe is: it may come with others.
    """
    match action:
        case AddPackages():
            for name in action.names:
                if name not in catalog.system.packages:
                    yield "names", f"{name} is not known"
        case SetVariables() | UnsetVariables() if action.scope == "build":
            if reason := refused(action, catalog):
                yield "variables", reason
        case PickVersion():
            versions = list(_versions(action.component, catalog))
            if not versions:
                yield "component", f"{action.component} is not known"
            elif not any(version_in(version, action.versions) for version in versions):
                yield "versions", f"the catalog has no {action.component} {action.versions}"
        case TakeEdit():
            if action.component not in {*catalog.components, *issue.components}:
                yield "component", f"{action.component} is not known"
            try:
                check_inside(action.edit.file)
            except ValueError as error:
                yield "edit.file", str(error)


def _versions(name: str, catalog: Catalog) -> Iterator[str]:
    """Every version of a component that recipes, providers and bases name."""
    if name in catalog.components:
        yield from (release.version for release in catalog.component(name).release)
    if name == ROCM:
        yield from (version for provider in catalog.providers.values() for version in provider.versions)
    for base in catalog.bases.values():
        for release in base.release:
            provided = base.provided(release).get(name)
            if provided is not None and provided.version:
                yield provided.version
