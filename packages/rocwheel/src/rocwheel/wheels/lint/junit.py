"""Findings as the XML that JUnit writes and CI systems read: a suite for each file, a case for each rule.

Source: the schema of Apache Ant's JUnitReport, and what Jenkins and GitLab say that they read of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, tostring

from rocwheel.wheels.lint.model import LintFinding
from rocwheel.wheels.lint.rules import Linted, LintRule

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(linted: Sequence[Linted], rules: Sequence[LintRule], *, strict: bool) -> bytes:
    """The document. A case fails where `Linted.failing` has a finding of its rule; others are its output."""
    root = Element("testsuites", name="rocwheel lint")
    failures = 0
    for file in linted:
        suite = SubElement(root, "testsuite", name=_text(file.path.as_posix()), errors="0")
        failing = {finding.kind for finding in file.failing(strict)}
        for rule in rules:
            findings = [finding for finding in file.findings if finding.kind == rule.name]
            _case(suite, rule, findings, fails=rule.name in failing)
        suite.set("tests", str(len(rules)))
        suite.set("failures", str(len(failing)))
        failures += len(failing)
    root.set("tests", str(len(rules) * len(linted)))
    root.set("failures", str(failures))
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True))


def _case(suite: Element, rule: LintRule, findings: Sequence[LintFinding], *, fails: bool) -> None:
    case = SubElement(suite, "testcase", name=rule.id, classname="rocwheel.lint")
    if not findings:
        return
    text = "\n".join(_line(finding) for finding in findings)
    if fails:
        failure = SubElement(case, "failure", type=rule.id, message=_text(findings[0].what))
        failure.text = _text(f"{text}\nwhy: {rule.why}\nsource: {'; '.join(rule.source)}")
    else:
        SubElement(case, "system-out").text = _text(text)


def _line(finding: LintFinding) -> str:
    next_step = f" (next: {finding.next_step})" if finding.next_step else ""
    return f"{finding.grade}: {f'{finding.path}: ' if finding.path else ''}{finding.what}{next_step}"


def _text(text: str) -> str:
    """Without the characters that XML cannot hold: names in a wheel are anybody's."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
