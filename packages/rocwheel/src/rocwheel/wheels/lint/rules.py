"""The rules of `lint`: why each is one, who says so, and how grave a breach is for whom. They are data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field

from rocbase.errors import InputError
from rocbase.model import Frozen
from rocbase.toml.read import Reader
from rocwheel.tables import data_folders
from rocwheel.wheels.lint.leftovers import the_leftovers
from rocwheel.wheels.lint.model import Grade, LintFinding
from rocwheel.wheels.metadata import parse_name

Profile = Literal["index", "distribution", "vendor"]
"""For whom a wheel is judged: a public index, the packages of a Linux distribution, a vendor's downloads."""

PROFILES: tuple[Profile, ...] = get_args(Profile)
TRACE = "trace"
"""The rule whose grades all leftovers have that are no secrets."""

Text = Annotated[str, Field(min_length=1)]
Grades = dict[Grade, Literal["error", "warning", "note", "off"]]


class LintRule(Frozen):
    """A rule: `name` is the kind of its findings, `index` and the like are other grades in that profile."""

    name: Text
    why: Text
    source: Annotated[tuple[Text, ...], Field(min_length=1)]
    profiles: Annotated[tuple[Profile, ...], Field(min_length=1)] = PROFILES
    index: Grades = {}
    distribution: Grades = {}
    vendor: Grades = {}

    @property
    def id(self) -> str:
        """Its name as a word: `search-path`."""
        return slug(self.name)

    def grades(self, profile: Profile) -> Grades:
        """What a profile makes of a grade."""
        by_profile: dict[Profile, Grades] = {
            "index": self.index,
            "distribution": self.distribution,
            "vendor": self.vendor,
        }
        return by_profile[profile]


class LintRulesFile(Frozen):
    """lint_rules.toml."""

    lint_rule: tuple[LintRule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Linted:
    """What `lint` found in one file."""

    path: Path
    findings: tuple[LintFinding, ...]

    def failing(self, strict: bool) -> tuple[LintFinding, ...]:
        """The errors; `strict` adds the warnings."""
        grades = (Grade.ERROR, Grade.WARNING) if strict else (Grade.ERROR,)
        return tuple(finding for finding in self.findings if finding.grade in grades)


def slug(name: str) -> str:
    """A name as a word: lower case, joined by dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


@cache
def the_rules() -> tuple[LintRule, ...]:
    """The rules that the catalog knows, those of leftovers behind the others.

    Raises InputError where a table is wrong.
    """
    reader = Reader(data_folders())
    rules: dict[str, LintRule] = {}
    for path in reader.layers("lint_rules.toml"):
        table = reader.model(LintRulesFile, reader.data(path), path)
        rules |= {rule.name: rule for rule in table.lint_rule} if table else {}
    trace = rules.pop(TRACE, None)
    for leftover in the_leftovers().leftovers:
        grades = (
            (trace.index, trace.distribution, trace.vendor) if trace and leftover.grade == "trace" else ()
        )
        by_profile: dict[str, Grades] = dict(zip(PROFILES, grades, strict=False))
        rules.setdefault(
            leftover.name,
            LintRule(name=leftover.name, why=leftover.why, source=leftover.source).model_copy(
                update=by_profile
            ),
        )
    return tuple(rules.values())


def rules_of(profile: Profile) -> tuple[LintRule, ...]:
    """Those that hold in a profile."""
    return tuple(rule for rule in the_rules() if profile in rule.profiles)


def lint(path: Path, profile: Profile) -> Linted:
    """Judge a wheel, or a folder of libraries, as a profile does. One that is damaged has that for a finding.

    Raises InputError where it cannot be read at all.
    """
    from rocbase.errors import CheckError
    from rocwheel.wheels.lint.judge import judge

    try:
        findings = [*judge(path), *_name_findings(path)]
    except CheckError as error:
        findings = [
            LintFinding(
                grade=Grade.ERROR, kind="damaged", path="", what=error.message, next_step=error.next_step
            )
        ]
    return Linted(path=path, findings=graded(findings, profile))


def graded(findings: Iterable[LintFinding], profile: Profile) -> tuple[LintFinding, ...]:
    """The findings that a profile has a rule for, with its grades, the gravest first.

    Raises InputError for a kind without a rule: a table was changed and not the other.
    """
    rules = {rule.name: rule for rule in the_rules()}
    selected = []
    for finding in findings:
        rule = rules.get(finding.kind)
        if rule is None:
            raise InputError(
                f"there is no rule for findings of the kind {finding.kind!r}",
                cause="a catalog's lint_rules.toml and leftovers.toml do not belong together",
                next_step="add a [[lint_rule]] of that name",
            )
        grade = rule.grades(profile).get(finding.grade, finding.grade)
        if profile in rule.profiles and grade != "off":
            selected.append(replace(finding, grade=Grade(grade)))
    order = list(Grade)
    return tuple(sorted(selected, key=lambda finding: order.index(finding.grade)))


def _name_findings(path: Path) -> Iterator[LintFinding]:
    """What the name of a wheel says that a public index refuses."""
    if path.suffix != ".whl":
        return
    name = parse_name(path.name)
    local = sorted({tag.platform for tag in name.tags if tag.platform.startswith("linux_")})
    if local:
        yield LintFinding(
            grade=Grade.ERROR,
            kind="local platform tag",
            path="",
            what=f"its platform is {', '.join(local)}",
            next_step="run `rocwheel repair`, which bundles what it needs and gives it the tag that fits",
        )
    if "+" in str(name.version):
        yield LintFinding(
            grade=Grade.ERROR,
            kind="local version",
            path="",
            what=f"its version is {name.version}",
            next_step="build it with a public version; a build tag can tell builds apart",
        )
