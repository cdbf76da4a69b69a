"""Findings as SARIF 2.1.0, which code scanning services show beside a change.

Source: OASIS, Static Analysis Results Interchange Format 2.1.0, sections 3.13 (sarifLog) to 3.49 (rule).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from rocwheel.version import __version__
from rocwheel.wheels.lint.model import LintFinding
from rocwheel.wheels.lint.rules import Linted, LintRule, Profile

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(linted: Sequence[Linted], rules: Sequence[LintRule], profile: Profile) -> dict[str, Any]:
    """One run, with every rule of the profile, and a result for each finding; paths as they were given."""
    number = {rule.name: index for index, rule in enumerate(rules)}
    results = [
        _result(finding, number[finding.kind], rules[number[finding.kind]], quote(file.path.as_posix()))
        for file in linted
        for finding in file.findings
    ]
    driver = {"name": "rocwheel", "version": __version__, "rules": [_rule(rule) for rule in rules]}
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"rocwheel-lint/{profile}/"},
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: LintRule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.name},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"{rule.why}. Source: {'; '.join(rule.source)}"},
    }


def _result(finding: LintFinding, index: int, rule: LintRule, uri: str) -> dict[str, Any]:
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": uri}}}
    if finding.path:
        location["logicalLocations"] = [{"fullyQualifiedName": _plain(finding.path)}]
    next_step = f". Next: {finding.next_step}" if finding.next_step else ""
    text = f"{f'{finding.path}: ' if finding.path else ''}{finding.what}{next_step}"
    # the same finding in the next build of a wheel is the same alert
    identity = "\0".join((finding.kind, finding.path, finding.what)).encode("utf-8", "replace")
    return {
        "ruleId": rule.id,
        "ruleIndex": index,
        "level": str(finding.grade),
        "message": {"text": _plain(text)},
        "locations": [location],
        "partialFingerprints": {"finding/v1": hashlib.sha256(identity).hexdigest()},
    }


def _plain(text: str) -> str:
    """Names in a wheel may be no Unicode text."""
    return text.encode("utf-8", "replace").decode()
