"""The rules of `lint` by profile, and its reports as programs read them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from rocbase.errors import InputError
from rocwheel.wheels.lint import judge
from rocwheel.wheels.lint.junit import junit
from rocwheel.wheels.lint.leftovers import the_leftovers
from rocwheel.wheels.lint.model import Grade, LintFinding
from rocwheel.wheels.lint.rules import PROFILES, Linted, Profile, graded, lint, rules_of, slug, the_rules
from rocwheel.wheels.lint.sarif import sarif
from rocwheel_samples.tables import each
from rocwheel_samples.wheel_making import small_wheel

FOUND = (
    LintFinding(
        grade=Grade.WARNING, kind="search path", path="x/a b.so", what="it looks in /opt", next_step="link"
    ),
    LintFinding(grade=Grade.ERROR, kind="RECORD", path="", what="a hash <differs> & more"),
    LintFinding(grade=Grade.NOTE, kind="platform tag", path="", what="no policy is known"),
)
HOSTILE = replace(FOUND[1], path="x/\x00\x1b]0;\udcff\ufffe.so", what="]]><failure/>\x01")


def linted(*found: LintFinding, profile: Profile = "index") -> Linted:
    return Linted(path=Path("dist/x y-1-py3-none-any.whl"), findings=graded(found, profile))


def test_every_kind_of_finding_in_the_code_has_a_rule() -> None:
    text = "".join(path.read_text() for path in Path(str(judge.__file__)).parent.glob("*.py"))
    kinds = set(re.findall(r'kind="([^"]+)"|_error\(\s*"([^"]+)"', text))
    assert {one or two for one, two in kinds} <= {one.name for one in the_rules()}
    assert len(kinds) >= 7


def test_every_rule_says_why_and_who_says_so_and_has_an_id_of_its_own() -> None:
    rules = the_rules()
    assert all(one.why and all(one.source) for one in rules)
    assert len({one.id for one in rules}) == len(rules)
    assert {one.name for one in the_leftovers().leftovers} < {one.name for one in rules}


@each(
    ("profile", "grades"),
    [
        ("index", ["error", "error", "note"]),
        ("distribution", ["error", "warning"]),
        ("vendor", ["error", "error", "note"]),
    ],
)
def test_a_profile_gives_its_own_grades(profile: Profile, grades: list[str]) -> None:
    assert [str(one.grade) for one in graded(FOUND, profile)] == grades


def test_a_trace_of_the_building_machine_is_graver_where_builds_must_be_alike() -> None:
    traces = [one.name for one in the_leftovers().leftovers if one.grade == "trace"]
    assert traces
    for kind in traces:
        one = LintFinding(grade=Grade.NOTE, kind=kind, path="x", what="/home/me")
        told = [graded([one], profile)[0].grade for profile in PROFILES]
        assert told == [Grade.NOTE, Grade.WARNING, Grade.WARNING]


def test_a_secret_is_an_error_in_every_profile() -> None:
    secrets = [one.name for one in the_leftovers().leftovers if one.grade == "secret"]
    found = [LintFinding(grade=Grade.ERROR, kind=kind, path="x", what="a key") for kind in secrets]
    assert all(one.grade is Grade.ERROR for profile in PROFILES for one in graded(found, profile))


def test_a_kind_without_a_rule_is_an_error_and_not_passed_over() -> None:
    with pytest.raises(InputError, match="no rule"):
        graded([replace(FOUND[0], kind="strange")], "index")


def test_a_public_index_takes_no_local_tag_and_no_local_version(tmp_path: Path) -> None:
    wheel = small_wheel(tmp_path)
    local = wheel.rename(tmp_path / "small-1.0+rocm7-py3-none-linux_x86_64.whl")
    kinds = {one.kind for one in lint(local, "index").findings}
    assert {"local platform tag", "local version"} <= kinds
    assert not {"local platform tag", "local version"} & {one.kind for one in lint(local, "vendor").findings}


def test_a_damaged_wheel_is_a_finding_so_that_the_reports_are_written(tmp_path: Path) -> None:
    wheel = tmp_path / "small-1.0-py3-none-any.whl"
    wheel.write_bytes(b"PK\x03\x04 cut short")
    (one,) = lint(wheel, "index").findings
    assert (one.grade, one.kind) == (Grade.ERROR, "damaged")


def test_warnings_fail_only_where_that_is_asked_for() -> None:
    one = linted(FOUND[0], profile="distribution")
    assert [str(two.grade) for two in one.findings] == ["warning"]
    assert not one.failing(strict=False)
    assert one.failing(strict=True)


# of the schema of SARIF 2.1.0: what each object must have, and of which type
REQUIRED: dict[str, dict[str, type]] = {
    "log": {"version": str, "runs": list},
    "run": {"tool": dict, "results": list},
    "driver": {"name": str},
    "rule": {"id": str},
    "result": {"message": dict, "level": str, "ruleId": str, "ruleIndex": int, "locations": list},
}


def check(kind: str, said: dict[str, Any]) -> None:
    for name, type_ in REQUIRED[kind].items():
        assert isinstance(said[name], type_), (kind, name)


@each("profile", PROFILES)
def test_sarif_has_what_its_schema_requires(profile: Profile) -> None:
    rules = rules_of(profile)
    log = sarif([linted(*FOUND, HOSTILE, profile=profile)], rules, profile)
    check("log", log)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    check("run", run)
    check("driver", run["tool"]["driver"])
    told = run["tool"]["driver"]["rules"]
    assert [one["id"] for one in told] == [one.id for one in rules]
    for one in told:
        check("rule", one)
        assert one["fullDescription"]["text"]
        assert "Source: " in one["help"]["text"]
    assert run["results"]
    for one in run["results"]:
        check("result", one)
        assert one["level"] in ("none", "note", "warning", "error")
        assert told[one["ruleIndex"]]["id"] == one["ruleId"]
        assert one["message"]["text"].encode()
        # a URI reference holds no space and no backslash
        uri = one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert uri == "dist/x%20y-1-py3-none-any.whl"


def test_the_fingerprint_of_a_finding_does_not_depend_on_others() -> None:
    alone = sarif([linted(FOUND[0])], rules_of("index"), "index")["runs"][0]["results"]
    among = sarif([linted(*FOUND)], rules_of("index"), "index")["runs"][0]["results"]
    prints = [one["partialFingerprints"]["finding/v1"] for one in among]
    assert alone[0]["partialFingerprints"]["finding/v1"] in prints
    assert len(set(prints)) == len(FOUND)


@pytest.mark.parametrize("strict", [False, True])
def test_junit_is_read_back_with_a_case_for_each_rule(strict: bool) -> None:
    rules = rules_of("distribution")
    files = [linted(*FOUND, profile="distribution"), linted(HOSTILE, profile="distribution")]
    root = ElementTree.fromstring(junit(files, rules, strict=strict))
    suites = root.findall("testsuite")
    assert [len(one.findall("testcase")) for one in suites] == [len(rules)] * 2
    failed = [[case.get("name") for case in one.findall("testcase[failure]")] for one in suites]
    assert failed == [["record", "search-path"] if strict else ["record"], ["record"]]
    assert root.get("failures") == str(sum(map(len, failed)))
    assert root.get("tests") == str(2 * len(rules))
    shown = [case.get("name") for case in suites[0].findall("testcase[system-out]")]
    assert shown == ([] if strict else ["search-path"])
    assert "]]><failure/>" in (suites[1].findtext("testcase/failure") or "")


def test_names_become_words() -> None:
    assert slug("AWS access key") == "aws-access-key"
    assert slug(" A--b (c) ") == "a-b-c"
