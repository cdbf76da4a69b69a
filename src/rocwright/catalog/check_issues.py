"""Whether signatures of failures hold: examples match, look-alikes do not, what they name is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import re2

from rocwright.catalog.issue import (
    Issue,
    Signature,
    anchored,
    options,
    plain,
    read_error_lines,
    read_issues,
)
from rocwright.catalog.load import Catalog, kept_from_builds
from rocwright.catalog.mend import AddPackages, SetVariables
from rocwright.catalog.read import Fault, Reader

Found = Iterator[tuple[str, str]]


def check_issues(reader: Reader, catalog: Catalog) -> list[Fault]:
    """Everything wrong in the known failures and the lines by which tools tell failures."""
    issues, lines = read_issues(reader), read_error_lines(reader)
    faults = []
    for issue in issues.values():
        path, place = reader.where[Issue, issue.name]
        found = (*_signature(issue, lines.before), *_issue(issue, catalog))
        faults += [Fault(path, f"{place} ({issue.name}).{where}", what) for where, what in found]
    path = reader.layers("error_lines.toml")[0]
    for line in lines.error_line:
        faults += [
            Fault(path, f"error_line ({line.name}).{where}", what)
            for where, what in _signature(line, lines.before)
        ]
    return faults


def _signature(one: Signature, before: Iterable[str]) -> Found:
    patterns = [(text, re2.compile(anchored(text, before).encode(), options())) for text in one.patterns]
    for text in one.examples:
        if not any(pattern.search(plain(text)) for _, pattern in patterns):
            yield "examples", f"no pattern matches {text!r}"
    for text in one.no_match:
        yield from (
            ("no_match", f"{pattern_text!r} matches {text!r}")
            for pattern_text, pattern in patterns
            if pattern.search(plain(text))
        )
    for text, pattern in patterns:
        if not any(pattern.search(plain(example)) for example in one.examples):
            yield "patterns", f"{text!r} has no example"


def _issue(issue: Issue, catalog: Catalog) -> Found:
    yield from (("targets", f"{name} is not known") for name in issue.targets if name not in catalog.targets)
    if not all(text.strip() for text in issue.source):
        yield "source", "a fact needs its source"
    for name in issue.versions:
        if name not in issue.components:
            yield "versions", f"{name} is not among the components"
    for number, mend in enumerate(issue.mend):
        match mend:
            case AddPackages():
                for name in mend.names:
                    if name not in catalog.system.packages:
                        yield f"mend.{number}.names", f"{name} is not known"
            case SetVariables() if mend.scope == "build":
                for name in mend.variables:
                    rule = kept_from_builds(catalog, name)
                    if rule is not None:
                        yield f"mend.{number}.variables", f"{name} in a build: {rule.reason}"
