"""Catalogs of users with the keys of before: they read, and a line says what a key is called today."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import Command

ISSUE = """[[issue]]
name       = "mine"
class      = "compile"
means      = "x"
cause      = "y"
remedy     = "by hand"
{key}      = [{{ kind = "jobs", share = 0.5 }}]
patterns   = ["the end of mine"]
examples   = ["the end of mine"]
no_match   = ["mine"]
source     = ["me"]
confidence = "high"
"""


@pytest.mark.parametrize("key", ["mend", "remedies"])
def test_an_issue_of_before_has_its_remedies_and_the_command_says_the_new_key(
    rocwright: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    path = tmp_path / "mine/issues/mine.toml"
    path.parent.mkdir(parents=True)
    path.write_text(ISSUE.format(key=key))
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(tmp_path / "mine"))
    (tmp_path / "log").write_text("the end of mine\n")
    done = rocwright("diagnose", str(tmp_path / "log"), "--json")
    [known] = json.loads(done.stdout)["known"]
    assert known["issue"]["remedies"] == [{"kind": "jobs", "share": 0.5}]
    said = f"warning: {path}: the key `mend` is called `remedies` now; the old name still works: rename it\n"
    assert done.stderr == (said if key == "mend" else "")


def test_what_helps_against_a_fault_of_the_machine_may_have_its_old_key(
    rocwright: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '[[advice]]\nname = "no-gpu"\nwhy = "x"\nmend = "buy one"\nsource = "me"\n'
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/host.toml").write_text(text)
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(tmp_path / "mine"))
    (tmp_path / "other").mkdir()
    done = rocwright("doctor", "--root", str(tmp_path / "other"), "--json")
    [found] = [one for one in json.loads(done.stdout)["findings"] if one["name"] == "no-gpu"]
    assert found["remedy"] == "buy one"
    assert done.stderr.count("the key `mend` is called `remedy` now") == 1
