"""What the tools of a root are told: tokens where they know how to take them, a number where they do not."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from packaging.version import Version

from rocwheel_samples.tables import each
from rocwright.execution.jobs.forms import (
    JobsRequest,
    ask_script,
    choose_form,
    job_tools,
    numbers,
    read_answers,
)

NUMBERS = {"JOBS", "MAX_JOBS", "CMAKE_BUILD_PARALLEL_LEVEL", "NINJAFLAGS", "LLVM_PARALLEL_LINK_JOBS"}
WANTED = JobsRequest(jobs=6)
GIB = 2**30


def form(component: str = "", **tools: str) -> tuple[dict[str, str], bool, str]:
    found = {name.replace("_", "-"): Version(version) for name, version in tools.items()}
    made = choose_form(found, "/tokens", JobsRequest(jobs=6, component=component))
    return dict(made.env), made.shares, made.opens


def test_new_make_and_ninja_take_tokens_from_the_fifo_and_get_no_number_that_would_stop_that() -> None:
    env, shares, opens = form(make="4.4.1", ninja="1.13.1")
    assert env == {
        "JOBS": "6",
        "LLVM_PARALLEL_LINK_JOBS": "6",
        "MAKEFLAGS": "-j6 --jobserver-auth=fifo:/tokens",
        "NINJAFLAGS": "",
    }
    assert shares
    assert opens == ""


def test_an_older_ninja_beside_a_new_make_gets_its_number() -> None:
    env, shares, _ = form(make="4.4.1", ninja="1.12.1")
    assert env["MAKEFLAGS"] == "-j6 --jobserver-auth=fifo:/tokens"
    assert {name: env[name] for name in ("NINJAFLAGS", "MAX_JOBS", "CMAKE_BUILD_PARALLEL_LEVEL")} == {
        "NINJAFLAGS": "-j6", "MAX_JOBS": "6", "CMAKE_BUILD_PARALLEL_LEVEL": "6",
    }  # fmt: skip
    assert not shares


def test_an_older_make_is_never_shown_a_fifo_at_which_it_would_stop() -> None:
    for ninja in ({}, {"ninja": "1.11.1"}, {"ninja": "1.13.0"}):
        env, shares, opens = form(make="4.3", **ninja)
        assert env["MAKEFLAGS"] == "-j6 --jobserver-auth=8,9"
        assert opens == "exec 8<>/tokens 9<>/tokens"
        # Python closes descriptors, and make would go on with one job
        assert env["CMAKE_BUILD_PARALLEL_LEVEL"] == "6"
        assert env["MAX_JOBS"] == "6"
        assert not shares
    assert form(make="3.82")[0]["MAKEFLAGS"] == "-j --jobserver-fds=8,9"


def test_the_ninja_of_the_python_index_takes_descriptors_and_later_the_fifo_too() -> None:
    assert form(kitware_ninja="1.11.1")[0]["NINJAFLAGS"] == ""
    assert form(kitware_ninja="1.11.1")[0]["MAKEFLAGS"] == "-j6 --jobserver-auth=8,9"
    assert form(kitware_ninja="1.13.2")[0]["MAKEFLAGS"] == "-j6 --jobserver-auth=fifo:/tokens"


@pytest.mark.parametrize("tools", [{}, {"ninja": "1.12.1"}])
def test_where_nobody_knows_a_job_server_all_get_numbers(tools: dict[str, str]) -> None:
    env, shares, opens = form(**tools)
    assert set(env) == NUMBERS | {"MAKEFLAGS"}
    assert env["MAKEFLAGS"] == "-j6"
    assert (shares, opens) == (False, "")
    assert env == numbers(WANTED).env


def test_a_build_that_takes_all_processors_without_a_number_gets_one_whatever_its_tools_know() -> None:
    assert form("vllm", make="4.4.1", ninja="1.13.1")[0]["MAX_JOBS"] == "6"
    assert "MAX_JOBS" not in form("torchvision", make="4.4.1", ninja="1.13.1")[0]


def test_links_of_llvm_are_as_many_as_memory_has_room_for() -> None:
    def links(memory: int | None) -> str:
        return numbers(JobsRequest(jobs=16, memory=memory)).env["LLVM_PARALLEL_LINK_JOBS"]

    assert (links(None), links(64 * GIB), links(20 * GIB), links(GIB)) == ("16", "8", "2", "1")


@each(
    ("said", "tool", "version"),
    [
        ("1.11.1", "ninja", "1.11.1"),
        ("1.13.0.git.kitware.jobserver-pipe-1", "kitware-ninja", "1.13.0"),
        ("1.11.1.g95dee.kitware.jobserver-1", "kitware-ninja", "1.11.1"),
        ("1.10.0.git", None, None),
    ],
)
def test_versions_are_read_as_the_tools_tell_them(said: str, tool: str | None, version: str | None) -> None:
    found = read_answers(["== make --version", "GNU Make 4.4.1", "Built for x", "== ninja --version", said])
    assert found.pop("make") == Version("4.4.1")
    assert found == ({tool: Version(str(version))} if tool else {})


def test_the_tools_of_this_machine_answer() -> None:
    done = subprocess.run(["sh", "-c", ask_script()], capture_output=True, text=True, check=True)
    found = read_answers(done.stdout.splitlines())
    for tool in ("make", "ninja"):
        assert (tool in found or f"kitware-{tool}" in found) == (shutil.which(tool) is not None)


def test_every_form_has_its_source() -> None:
    known = job_tools()
    assert all(one.source for one in known.form)
    assert all(one.source for one in known.number)
