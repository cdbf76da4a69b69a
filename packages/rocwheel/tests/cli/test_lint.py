from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from rocwheel.cli.lint import PROFILES, command
from rocwheel.wheels.lint import rules
from rocwheel.wheels.lint.model import Grade, LintFinding
from rocwheel.wheels.lint.rules import Linted
from rocwheel.wheels.write import WheelFile, write_wheel
from rocwheel_samples.wheel_making import FILES, NAME


def sound_wheel(folder: Path) -> Path:
    files = [WheelFile(path=path, content=data) for path, data in FILES.items()]
    write_wheel(folder / NAME, files, epoch=315532800)
    return folder / NAME


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words])


def test_a_sound_wheel_passes_and_the_reports_are_written(tmp_path: Path) -> None:
    wheel, sarif, junit = sound_wheel(tmp_path), tmp_path / "s.sarif", tmp_path / "j.xml"
    done = run(wheel, "--sarif", sarif, "--junit", junit)
    assert done.exit_code == 0, done.output
    assert json.loads(sarif.read_text())["runs"][0]["results"] == []
    assert ElementTree.fromstring(junit.read_bytes()).get("failures") == "0"


def test_an_error_ends_with_12_and_is_in_all_reports(tmp_path: Path) -> None:
    sound = sound_wheel(tmp_path)
    bad = tmp_path / "small-1.0+x-py3-none-any.whl"
    bad.write_bytes(sound.read_bytes())
    sarif, junit = tmp_path / "s.sarif", tmp_path / "j.xml"
    done = run(sound, bad, "--json", "--sarif", sarif, "--junit", junit)
    assert done.exit_code == 12
    assert [one["passes"] for one in json.loads(done.output)["files"]] == [True, False]
    results = json.loads(sarif.read_text())["runs"][0]["results"]
    assert "local-version" in {one["ruleId"] for one in results}
    failed = ElementTree.fromstring(junit.read_bytes()).findall(".//testcase[failure]")
    assert "local-version" in {one.get("name") for one in failed}


def test_each_rule_is_printed_with_its_source() -> None:
    for profile in rules.PROFILES:
        told = run("--rules", "--profile", profile).output
        for one in rules.rules_of(profile):
            assert f"\n  {one.why}\n  source: {one.source[0]}" in told
    assert PROFILES == rules.PROFILES
    found = json.loads(run("--rules", "--json").output)
    assert "local-version" in {one["id"] for one in found}


def test_without_a_path_the_usage_is_told() -> None:
    done = run()
    assert done.exit_code == 2
    assert "PATHS" in done.output


def test_a_finding_takes_one_line_and_details_need_v(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    what = f"libraries are looked for in {', '.join(f'/opt/{number}' for number in range(5000))}, anywhere"
    long = LintFinding(grade=Grade.ERROR, kind="search path", path="a/b.so", what=what, next_step="relink it")
    note = LintFinding(grade=Grade.NOTE, kind="platform tag", path="", what="no policy is known")
    linted = Linted(path=tmp_path, findings=(long, note))
    monkeypatch.setattr(rules, "lint", lambda *_: linted)
    lines = run(tmp_path).output.splitlines()
    assert lines[0].startswith("error   search path: b.so: libraries are looked for in /opt/0, ")
    assert lines[0].endswith(" ...")
    assert len(lines[0]) == 160
    assert lines[1:] == [
        "note    platform tag: no policy is known",
        "1 error, 1 note; lint -v shows them whole, with what to do",
    ]
    whole = run(tmp_path, "-v").output
    assert what in whole
    assert whole.endswith("next  relink it\nnote    platform tag: no policy is known\n1 error, 1 note\n")
