"""`rocwright diagnose`: what it prints, and where it reads from."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from pytest import CaptureFixture, MonkeyPatch

from rocbase.errors import CheckError, CompileError, InputError
from rocwright.cli import cli
from rocwright.cli.tell import tell
from rocwright.diagnosis.diagnose import FailurePlace
from rocwright.diagnosis.explain import explain
from rocwright.execution.runs import UnderWay
from rocwright.home import Home
from rocwright.plan.resolve.model import Request
from rocwright.records.model import StepRun
from rocwright.sources.bases.tools import Tools
from rocwright.sources.debian import DebianArchive

LOG = (
    "[1/2] c++ -c a.cpp\n"
    "third_party/gloo/gloo/types.h:66:8: error: 'uint8_t' does not name a type\n"
    "FAILED: a.o\n"
)


def test_the_first_error_the_issue_its_cause_and_remedy_are_printed(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG)
    told = CliRunner().invoke(cli, ["diagnose", str(tmp_path / "log")])
    assert told.exit_code == 0, told.output
    assert "first error, line 2 of 3 lines" in told.output
    assert "gloo-cstdint, line 2" in told.output
    assert "Add #include <cstdint> to gloo/types.h" in told.output
    assert "pytorch/gloo" in told.output


def test_the_record_of_a_step_says_whether_its_log_is_of_a_success(home: Home) -> None:
    request = Request(stack="gfx-smoke", gpu=("gfx1151",), base="debian:sid")
    for outcome, sure in (("failed", True), ("built", False)):
        with UnderWay("build", request, home, pytest.fail, run_id=f"run-{outcome}") as under_way:
            log = under_way.folder / "x.log"
            log.parent.mkdir(parents=True)
            log.write_text(LOG)
            under_way.note(StepRun(name="x", key="k", outcome=outcome, state="ended", log=log.name))
            under_way.ended("built")
        report = json.loads(CliRunner().invoke(cli, ["diagnose", str(log), "--json"]).output)
        assert (report["success"], report["known"][0]["sure"]) == (not sure, sure)
        shown = CliRunner().invoke(cli, ["diagnose", str(log)]).output
        assert ("nothing below is a sure cause" in shown) == (not sure)


def test_a_hostile_log_is_told_and_none_of_its_codes_reach_the_terminal(tmp_path: Path) -> None:
    odd = LOG.replace("error:", "\x1b[31;1merror:\x1b]0;title\x07\x1b[0m").replace("gloo/t", "gl\0oo/t")
    whole = gzip.compress(
        b"\x9b2J\xff\r" + odd.encode() + b"".join(b"%d\n" % (n * 7919) for n in range(9999))
    )
    (tmp_path / "log.gz").write_bytes(whole[: len(whole) - 5000])
    told = CliRunner().invoke(cli, ["diagnose", str(tmp_path / "log.gz")])
    assert told.exit_code == 0, told.output
    assert "gloo-cstdint" in told.output
    assert not set(told.output) & set("\x1b\x9b\x07\0\r")


def test_standard_input_is_read_and_told_as_json() -> None:
    told = CliRunner().invoke(cli, ["diagnose", "-", "--json"], input=LOG)
    assert told.exit_code == 0, told.output
    data = json.loads(told.stdout)
    assert data["failure"] == "compile"
    assert data["first"]["line"] == 2
    assert [one["issue"]["name"] for one in data["known"]] == ["gloo-cstdint", "missing-cstdint"]
    assert data["known"][0]["issue"]["remedies"][0]["kind"] == "edit"


def test_a_log_without_an_error_is_told_with_its_end(tmp_path: Path) -> None:
    whole = gzip.compress(b"fine\n" * 9999 + LOG.encode(), mtime=0)
    (tmp_path / "log.gz").write_bytes(whole[:60])
    told = CliRunner().invoke(cli, ["diagnose", str(tmp_path / "log.gz"), "--phase", "build"])
    assert told.exit_code == 0, told.output
    assert "no error found" in told.output
    assert "ends    (the compressed log ends here" in told.output


def test_what_nobody_knows_is_said_to_be_unknown() -> None:
    told = CliRunner().invoke(cli, ["diagnose", "-"], input="a.c:1:1: error: nobody saw this before\n")
    assert "no known issue explains this" in told.output
    assert "nobody saw this before" in told.output
    assert "no error found in 1 line," in CliRunner().invoke(cli, ["diagnose", "-"], input="fine\n").output


def test_other_lines_that_may_be_the_failure_are_told() -> None:
    log = "step 4: hipModuleLoad failed\nfine\nAborted (core dumped)\n"
    said = CliRunner().invoke(cli, ["diagnose", "-"], input=log).output
    assert "or one of these lines tells it:\n       1  step 4: hipModuleLoad failed\n" in said
    data = json.loads(CliRunner().invoke(cli, ["diagnose", "-", "--json"], input=log).stdout)
    assert [(one["line"], one["text"]) for one in data["others"]] == [(1, "step 4: hipModuleLoad failed")]


def test_where_no_error_is_found_the_last_lines_are_told_once() -> None:
    said = CliRunner().invoke(cli, ["diagnose", "-"], input="one\nDEBUG it failed\nlast\n").output
    assert said.startswith("no error found in 3 lines")
    assert "if it failed, look at these lines too:\n       2  DEBUG it failed\n       1  one\n" in said
    assert said.count("last") == 1


def test_what_goes_on_in_another_way_is_no_error_and_not_said_to_be_one() -> None:
    """rocBLAS calls it an error, and takes Tensile's kernel."""
    log = "loading\nrocBLAS error: No hipBLASLt solution found\nstep 1/20\n"
    calm = CliRunner().invoke(cli, ["diagnose", "-"], input=f"{log}done\n").output
    assert calm.startswith("no error found in 4 lines")
    assert "known   hipblaslt-no-solution, line 2" in calm
    assert "above is the first error" not in calm
    log += "a.c:1:1: error: nobody saw this before\n"
    failed = CliRunner().invoke(cli, ["diagnose", "-"], input=log)
    assert failed.output.startswith("first error, line 4 of 4 lines")


def test_an_issue_of_some_cards_is_said_to_be_unsure_where_no_card_is_named(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("hsa_init Failed, HSA_STATUS_ERROR (4096)\n")
    text = CliRunner().invoke(cli, ["diagnose", str(log)]).output
    assert "unsure  it is of gfx803, and the log names no card: say it with --gpu" in text
    assert "no known issue explains this" in text
    text = CliRunner().invoke(cli, ["diagnose", str(log), "--gpu", "gfx803"]).output
    assert "unsure" not in text
    assert "no known issue explains this" not in text


def test_a_log_must_be_named_and_be_there() -> None:
    assert CliRunner().invoke(cli, ["diagnose"]).exit_code == 2
    assert isinstance(CliRunner().invoke(cli, ["diagnose", "/not/there"]).exception, InputError)


def test_the_known_issues_are_listed() -> None:
    assert "cmake-minimum" in CliRunner().invoke(cli, ["issues"]).output
    data = json.loads(CliRunner().invoke(cli, ["issues", "--json"]).stdout)
    assert len(data) >= 80
    few = CliRunner().invoke(cli, ["issues", "cmake", "minimum"]).output
    assert few.startswith("cmake-minimum")
    assert "remedy: Set CMAKE_POLICY_VERSION_MINIMUM=3.5" in few
    assert "hipblaslt" not in few
    found = json.loads(CliRunner().invoke(cli, ["issues", "cmake", "minimum", "--json"]).stdout)
    assert found[0]["name"] == "cmake-minimum" and found[0]["score"] > 0 and found[0]["lines"]


def test_a_good_log_tells_what_is_new(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.log", tmp_path / "bad.log"
    good.write_text("[1/2] c++ -c /a/b/one.cpp\n-- error: not found (optional)\n[2/2] link 0x7f\n")
    bad.write_text(
        "[1/2] c++ -c /tmp/x/one.cpp\n-- error: not found (optional)\n/tmp/x/one.cpp:3:1: error: no\n"
    )
    done = CliRunner().invoke(cli, ["diagnose", str(bad), "--good", str(good)])
    assert done.output.startswith(
        "1 line that the good log does not have\n  3  /tmp/x/one.cpp:3:1: error: no\n"
    )
    data = json.loads(CliRunner().invoke(cli, ["diagnose", str(bad), "--good", str(good), "--json"]).stdout)
    assert data["new"]["count"] == 1 and data["new"]["lines"][0]["line"] == 3
    same = CliRunner().invoke(cli, ["diagnose", str(good), "--good", str(good)]).output
    assert "nothing in it is new: the good log has all its lines" in same
    stream = CliRunner().invoke(cli, ["diagnose", "-", "--good", str(good)], input="x\n").exception
    assert isinstance(stream, InputError)


def test_one_issue_is_told_whole() -> None:
    told = CliRunner().invoke(cli, ["issues", "cmake-minimum"]).output
    assert "rocwright build --heal sets CMAKE_POLICY_VERSION_MINIMUM=3.5" in told
    assert "source" in told
    wrong = CliRunner().invoke(cli, ["issues", "cmake-minimun"]).exception
    assert isinstance(wrong, InputError)
    assert "cmake-minimum" in wrong.cause


def test_a_failure_of_any_step_is_told_with_the_known_issue(capsys: CaptureFixture[str]) -> None:
    error = CompileError("pip failed", detail="ERROR: Could not install: [Errno 28] No space left on device")
    explain(error, FailurePlace(component="torch"))
    tell(error)
    said = capsys.readouterr().err
    assert "known  disk-full: the disk is full" in said
    assert "fix    Look with `df -h`" in said


def test_a_missing_header_is_looked_up_in_the_bases_index_when_asked(
    tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCWRIGHT_HOME", str(tmp_path / "home"))
    (tmp_path / "log").write_text("a.c:1:10: fatal error: numa.h: No such file or directory\n")
    lists = DebianArchive(Tools(Home(tmp_path / "home")), "sid", "amd64").folder / "contents"
    lists.mkdir(parents=True)
    with gzip.open(lists / "x_Contents-amd64.gz", "wb") as index:
        index.write(b"usr/include/numa.h libdevel/libnuma-dev\n")
    (lists / "fetched").touch()
    asked = ["diagnose", str(tmp_path / "log"), "--find-packages"]
    told = CliRunner().invoke(cli, [*asked, "--base", "debian:sid", "--json"])
    assert told.exit_code == 0, told.output
    known = json.loads(told.stdout)["known"][0]
    assert known["packages"] == ["libnuma-dev"]
    assert "On debian:sid it is in libnuma-dev" in known["issue"]["remedy"]
    refused = CliRunner().invoke(cli, asked)
    assert isinstance(refused.exception, InputError)
    assert "--base debian:sid" in refused.exception.next_step


def test_what_mends_it_is_told_once(capsys: CaptureFixture[str]) -> None:
    error = CheckError("it ended", cause="x", next_step="use less")
    error.remedy = "use less"
    tell(error)
    assert capsys.readouterr().err.count("use less") == 1
