"""Logs that nobody meant to be read so: two builds in one, a good log of another step, one made to match."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from rocwright.catalog.issue import the_issues
from rocwright.cli.diagnose import command
from rocwright.diagnosis.diagnose import diagnose
from rocwright.diagnosis.read_log import PIECE


def test_of_two_builds_in_one_log_the_failing_ones_error_is_found() -> None:
    """As compose and make -O interleave them; the other one ends well."""
    lines = []
    for at in range(200):
        lines.append(f"good-1   | [{at + 1}/200] c++ -c error_{at}.cpp")
        lines.append(f"bad-1    | [{at + 1}/200] cc -c part_{at}.c")
    lines[301:301] = ["bad-1    | part.c:1:10: fatal error: numa.h: No such file or directory"]
    lines += ["good-1   | built", "bad-1    | ninja: build stopped: subcommand failed."]
    found = diagnose(["\n".join(lines).encode() + b"\n"])
    assert found.first is not None
    assert found.first.line == 302
    assert found.cause is not None
    assert found.cause.issue.name == "missing-header"


def test_a_line_made_to_match_everything_is_bounded() -> None:
    issues = the_issues()[0]
    one = " ".join(example for issue in issues.values() for example in issue.examples)
    found = diagnose([(one + "\n").encode(errors="replace") * 40, b"x" * PIECE + b"\n"])
    assert 0 < len(found.known) + len(found.ruled_out) <= len(issues)
    shown = [text for known in found.known for text in (known.place.text, *known.place.lines)]
    assert max(map(len, shown)) <= 4096
    assert all(len(text) <= 120 for known in found.known for text in known.slots.values())


def test_a_good_log_of_another_step_is_told_as_that(tmp_path: Path) -> None:
    words = ["alpha", "beta", "gamma", "delta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi"]
    log, good, same = (tmp_path / name for name in ("log", "good", "same"))
    log.write_text("".join(f"compiles {one}\n" for one in words) + "a.c:1:1: error: no such thing\n")
    good.write_text("".join(f"links {one}\n" for one in words))
    same.write_text("".join(f"compiles {one}\n" for one in words[2:]))
    told = CliRunner().invoke(command, [str(log), "--good", str(good)])
    assert "it has hardly a line of this one: is it of the same step?" in told.output
    assert "same step?" not in CliRunner().invoke(command, [str(log), "--good", str(same)]).output
