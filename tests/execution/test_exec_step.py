"""One step, given nothing but the store: what it sees, what it gives, and how it fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.execution.conftest import Workshop, put_root
from tests.making import digest, small_plan
from tests.sources.conftest import make_repository

from rocbase.errors import (
    CheckError,
    CompileError,
    InputError,
    InternalError,
    InterruptedByUser,
    OutOfDiskError,
    OutOfMemoryError,
    PatchError,
    SandboxError,
    StepTimeoutError,
    from_dict,
)
from rocwright.config import config_file
from rocwright.execution.exec_step import execute
from rocwright.execution.jobs.forms import JobsRequest, numbers
from rocwright.execution.run import cut_short, environment
from rocwright.home import Home
from rocwright.model.architecture import Architecture, host_architecture
from rocwright.model.step_environment import FIXED
from rocwright.model.steps import About, FetchAction, GitOrigin, Input, Resources, RunAction, Step, TreeAction
from rocwright.sandbox.model import Ended, SandboxJob, SandboxOutcome
from rocwright.sources.git import pack_commit
from rocwright.store.local import LocalStore
from rocwright.store.model import DamagedBlobError, verified

# what a step gives


def test_a_step_runs_its_commands_in_its_tree_and_its_output_is_in_the_store(workshop: Workshop) -> None:
    step = workshop.step("cat file > $OUT/result", "echo done >> $OUT/result")
    record = workshop.run(step)
    assert workshop.text(record) == "text\ndone\n"
    assert workshop.store.record(step.key) == record
    assert (record.step, record.kind, record.engine) == ("hello", "run", "bubblewrap")
    assert [(one.name, one.filename) for one in record.outputs] == [("out", "result")]


def test_every_line_that_the_commands_print_is_told_as_they_are(workshop: Workshop) -> None:
    workshop.run(workshop.step("echo to out", "cd /\necho to err >&2", "touch $OUT/result"))
    at = workshop.lines.index("to out")
    told = ["$ echo to out", "to out", "$ cd /\necho to err >&2", "to err", "$ touch $OUT/result"]
    assert workshop.lines[at - 1 : at + 4] == told


def test_a_step_that_is_in_the_store_is_not_run_again(workshop: Workshop) -> None:
    step = workshop.step("date +%s%N > $OUT/result")
    assert workshop.run(step) == workshop.run(step)
    assert "hello: already in the store" in workshop.lines


def test_a_step_for_another_architecture_is_refused_and_leaves_everything_as_it_was(
    workshop: Workshop,
) -> None:
    other = next(one for one in Architecture if one is not host_architecture())
    step = workshop.step("touch $OUT/result")
    action = RunAction.model_validate(step.action.model_dump() | {"env": {"FOREIGN": "1"}})
    foreign = step.model_copy(update={"action": action, "about": About(architecture=other.value)})
    workshop.store.put_step(foreign.key, foreign.model_dump_json().encode())
    with pytest.raises(InputError) as caught:
        workshop.run(foreign)
    told = f"hello: this machine cannot build for {other} (it is {host_architecture()})"
    assert caught.value.message == told
    assert f"on a machine that is {other}" in caught.value.next_step
    assert workshop.store.record(foreign.key) is None
    assert not list(workshop.home.work.glob("*"))
    done = workshop.run(step).model_copy(update={"key": foreign.key})
    workshop.store.put_record(done)
    assert workshop.run(foreign) == done, "what is done elsewhere is done"


def test_only_what_runs_programs_needs_a_machine_of_its_architecture(workshop: Workshop) -> None:
    about = {"about": About(architecture="aarch64")}
    assert workshop.step("true").model_copy(update=about).runs_on == "aarch64"
    assert workshop.tree("other", file="x\n").model_copy(update=about).runs_on == ""


def test_a_finished_step_leaves_no_folder_and_a_failed_one_its_own(workshop: Workshop) -> None:
    workshop.run(workshop.step("touch $OUT/result"))
    assert list(workshop.home.work.iterdir()) == []
    failing = workshop.step("echo half > half-done", "false", name="failing")
    with pytest.raises(CompileError):
        workshop.run(failing)
    assert len(list(workshop.home.work.glob("*/build/src/half-done"))) == 1


def test_a_failed_step_begins_anew_the_next_time(workshop: Workshop, tmp_path: Path) -> None:
    step = workshop.step("test ! -e left-over", "touch left-over", "test -e /in/x/out", name="again")
    for _ in range(2):
        with pytest.raises(CompileError) as caught:
            workshop.run(step)
        assert "status 1" in caught.value.message
        assert len(list(workshop.home.work.glob("*/build/src/left-over"))) == 1


def test_a_step_is_run_by_the_command_given_nothing_but_the_store(workshop: Workshop) -> None:
    step = workshop.step("cat file > $OUT/result")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "rocwright",
            "exec-step",
            step.key,
            "--store",
            workshop.store.url,
            "--engine",
            "bubblewrap",
        ],
        env=os.environ | {"ROCWRIGHT_HOME": str(workshop.home.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    record = workshop.store.record(step.key)
    assert record is not None
    [output] = record.outputs
    assert done.stdout.splitlines()[-1] == f"{output.sha256}  {output.size}  result"


def test_the_command_leaves_a_report_for_who_started_it(workshop: Workshop, tmp_path: Path) -> None:
    step = workshop.step("echo 'x.c:1: error: no' >&2", "exit 3")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "rocwright", "exec-step", step.key, "--store", workshop.store.url),
            *("--engine", "bubblewrap", "--report", str(tmp_path / "report.json")),
        ],
        env=os.environ | {"ROCWRIGHT_HOME": str(workshop.home.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 6
    error = json.loads((tmp_path / "report.json").read_text())["error"]
    assert (error["class"], error["cause"]) == ("compile", "x.c:1: error: no")


# what a step sees


def test_the_environment_is_exactly_what_is_said(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "of the caller")
    step = workshop.step("env > $OUT/result", env={"MINE": "1 2", "LANG": "de_DE.UTF-8"})
    seen = dict(line.split("=", 1) for line in workshop.text(workshop.run(step, jobs=3)).splitlines())
    assert isinstance(step.action, RunAction)
    expected = environment(step.action, numbers(JobsRequest(jobs=3)).env)
    assert expected["LANG"] == "de_DE.UTF-8"
    # the shell adds these by itself
    assert {"PWD", "_", "SHLVL", "OLDPWD", "CCACHE_NAMESPACE"} >= set(seen) - set(expected)
    assert {name: seen[name] for name in expected} == expected
    assert FIXED.items() - seen.items() == {("LANG", "C.UTF-8")}


def test_the_compiler_cache_may_be_as_large_as_the_settings_say(workshop: Workshop) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text('compiler_cache_size = "1.5 GiB"\n')
    step = workshop.step("echo $CCACHE_MAXSIZE > $OUT/result")
    key = step.key
    record = workshop.run(step)
    assert workshop.text(record) == "1536MiB\n"
    assert record.key == key


def test_the_number_of_jobs_is_told_to_every_tool_and_is_in_no_key(workshop: Workshop) -> None:
    step = workshop.step("echo $JOBS $MAX_JOBS $CMAKE_BUILD_PARALLEL_LEVEL $MAKEFLAGS > $OUT/result")
    key = step.key
    record = workshop.run(step, jobs=7)
    assert workshop.text(record) == "7 7 7 -j7\n"
    assert (record.key, record.jobs) == (key, 7)


def test_there_is_no_network(workshop: Workshop) -> None:
    step = workshop.step("cat /proc/net/dev | grep : | grep -v ' lo:' > $OUT/result || true")
    assert workshop.text(workshop.run(step)) == ""


def test_nothing_of_the_machine_is_visible_but_what_is_named(workshop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    step = workshop.step(f"ls -d {tmp_path}/secret {Path.home()} /work 2>/dev/null > $OUT/result || true")
    assert workshop.text(workshop.run(step)) == ""


def test_the_root_cannot_be_written_and_is_the_same_for_the_next_step(workshop: Workshop) -> None:
    step = workshop.step("touch /usr/x 2>/dev/null || echo no > $OUT/result")
    assert workshop.text(workshop.run(step)) == "no\n"
    [root] = [path for path in workshop.home.roots.iterdir() if path.is_dir()]
    assert not (root / "usr/x").exists()


def test_a_step_does_not_run_in_a_root_that_was_changed(workshop: Workshop) -> None:
    workshop.run(workshop.step("touch $OUT/result"))
    [root] = [path for path in workshop.home.roots.iterdir() if path.is_dir()]
    (root / "usr/evil").write_text("from elsewhere")
    step = workshop.step("cat /usr/evil > $OUT/result 2>/dev/null || echo none > $OUT/result", name="next")
    assert workshop.text(workshop.run(step)) == "none\n"
    said = "base: the unpacked root file system was changed (usr"
    assert any(line.startswith(said) for line in workshop.lines), workshop.lines


def test_the_folders_the_user_and_the_time_zone_are_always_the_same(workshop: Workshop) -> None:
    step = workshop.step("echo $(id -u) $PWD $HOME $OUT $(date +%Z) > $OUT/result")
    assert workshop.text(workshop.run(step)) == "1000 /build/src /build/home /out UTC\n"


def test_an_input_of_another_step_is_seen_under_its_name(workshop: Workshop) -> None:
    first = workshop.step("echo from the first > $OUT/result", name="first")
    workshop.run(first)
    second = workshop.step("cat $IN/torch/result > $OUT/result", name="second", inputs={"torch": first})
    assert workshop.text(workshop.run(second)) == "from the first\n"


def test_an_input_cannot_be_changed(workshop: Workshop) -> None:
    first = workshop.step("echo good > $OUT/result", name="first")
    [output] = workshop.run(first).outputs
    step = workshop.step(
        "echo bad > $IN/x/result || echo refused > $OUT/result", name="second", inputs={"x": first}
    )
    assert workshop.text(workshop.run(step)) == "refused\n"
    assert verified(workshop.store, output.sha256).read_text() == "good\n"


# how a step fails


def test_a_failing_command_is_told_with_its_first_error_and_status(workshop: Workshop) -> None:
    step = workshop.step(
        "echo compiling", "echo 'main.c:3:1: error: expected ;' >&2", "echo 'make: *** failed' >&2", "exit 2"
    )
    with pytest.raises(CompileError, match="the build commands ended with status 2") as caught:
        workshop.run(step)
    assert caught.value.cause == "main.c:3:1: error: expected ;"
    assert caught.value.detail == "main.c:3:1: error: expected ;\nmake: *** failed"
    assert workshop.store.record(step.key) is None


def test_a_known_issue_in_the_output_is_told_with_its_cause_and_remedy(workshop: Workshop) -> None:
    step = workshop.step(
        "echo 'CMake Error at third_party/psimd/CMakeLists.txt:1 (cmake_minimum_required):'",
        "echo '  Compatibility with CMake < 3.5 has been removed from CMake.'",
        "exit 1",
    )
    with pytest.raises(CompileError) as caught:
        workshop.run(step)
    assert caught.value.issue == "cmake-minimum"
    assert "CMAKE_POLICY_VERSION_MINIMUM" in caught.value.remedy
    assert caught.value.detail.startswith("CMake Error at third_party/psimd")
    assert from_dict(caught.value.as_dict()).remedy == caught.value.remedy


def test_the_first_command_that_fails_is_the_last_that_runs(workshop: Workshop) -> None:
    with pytest.raises(CompileError):
        workshop.run(workshop.step("false", "echo went on", "touch $OUT/result"))
    assert "went on" not in workshop.lines


def test_a_variable_that_is_not_set_is_an_error(workshop: Workshop) -> None:
    with pytest.raises(CompileError):
        workshop.run(workshop.step("echo $NOWHERE/x", "touch $OUT/result"))


def test_a_command_ended_by_a_signal_is_told_with_it(workshop: Workshop) -> None:
    with pytest.raises(CompileError, match="ended with signal 11"):
        workshop.run(workshop.step("kill -SEGV $$"))


def test_a_missing_output_is_told_with_what_was_there(workshop: Workshop) -> None:
    step = workshop.step("touch $OUT/other $OUT/another", output="*.whl")
    with pytest.raises(CheckError, match=r"made 0 files that match \*\.whl, one expected") as caught:
        workshop.run(step)
    assert caught.value.cause == "in the output folder: another, other"


def test_an_output_that_could_be_two_files_is_refused(workshop: Workshop) -> None:
    with pytest.raises(CheckError, match=r"made 2 files that match \*\.whl"):
        workshop.run(workshop.step("touch $OUT/a.whl $OUT/b.whl", output="*.whl"))


def test_a_link_is_no_output(workshop: Workshop) -> None:
    with pytest.raises(SandboxError, match="hello left a symbolic link as its output result"):
        workshop.run(workshop.step("ln -s /etc/passwd $OUT/result"))


def test_a_step_past_its_time_is_ended(workshop: Workshop) -> None:
    step = workshop.step("echo begun", "sleep 60", resources=Resources(limit=1))
    with pytest.raises(StepTimeoutError) as caught:
        workshop.run(step)
    assert caught.value.detail.splitlines()[-1] == "begun"


def test_a_step_that_wants_too_much_memory_is_ended(workshop: Workshop) -> None:
    step = workshop.step("head -c 600000000 /dev/zero | tail -n 1 > $OUT/result")
    with pytest.raises(OutOfMemoryError, match="exceeded its memory limit") as caught:
        workshop.run(step, memory=100 * 1024**2, jobs=4)
    assert "--jobs 2" in caught.value.next_step


def test_a_disk_that_fills_up_in_a_step_is_told_as_such(workshop: Workshop) -> None:
    step = workshop.step("echo 'ld: final link failed: No space left on device' >&2", "exit 1")
    with pytest.raises(OutOfDiskError) as caught:
        workshop.run(step)
    assert "No space left on device" in caught.value.cause


# guards


@pytest.fixture
def with_python(workshop: Workshop, python_root: Path) -> Workshop:
    """The workshop with a Python in its root."""
    workshop.store.local.remove("record", workshop.root.key)
    put_root(workshop.store, python_root)
    return workshop


def test_a_guard_that_fails_stops_a_step_before_its_commands(with_python: Workshop) -> None:
    step = with_python.step("echo compiling", "touch $OUT/result", guard=("torch",))
    with pytest.raises(CheckError) as caught:
        with_python.run(step)
    assert caught.value.message == "torch cannot be found"
    assert caught.value.next_step
    assert "compiling" not in with_python.lines


def test_a_guard_that_finds_two_copies_names_both(with_python: Workshop) -> None:
    tree = with_python.tree("two", **{"json/__init__.py": "", "x.py": ""})
    step = with_python.step("echo compiling", "touch $OUT/result", tree=tree, guard=("json",))
    with pytest.raises(CheckError) as caught:
        with_python.run(step)
    assert "/build/src/json" in caught.value.detail
    assert "/usr/lib/python3" in caught.value.detail
    assert "compiling" not in with_python.lines


def test_a_guard_that_finds_one_copy_lets_the_step_go_on(with_python: Workshop) -> None:
    with_python.run(with_python.step("touch $OUT/result", guard=("json",)))
    assert "guard: one json, and it imports" in with_python.lines


def test_python3_is_the_interpreter_that_the_base_names(with_python: Workshop) -> None:
    look = "python3 -c 'import sys; print(sys.prefix, sys.base_prefix)' > $OUT/result"
    record = with_python.run(with_python.step(look, python="/usr/bin/python3"))
    assert with_python.text(record) == "/build/env /usr\n"
    plain = with_python.run(with_python.step(look))
    assert with_python.text(plain) == "/usr /usr\n"
    missing = with_python.step(look, python="python9.9")
    with pytest.raises(CheckError, match=r"python9\.9 cannot be installed"):
        with_python.run(missing)


def test_a_root_without_python_cannot_pass_a_guard(workshop: Workshop) -> None:
    step = workshop.step("echo compiling", "touch $OUT/result", guard=("json",))
    with pytest.raises(CheckError):
        workshop.run(step)
    assert "compiling" not in workshop.lines


# early cut-off


def changed(workshop: Workshop, text: str) -> tuple[Step, Step]:
    """Two steps, the second after the first; `text` is what differs in the definition of the first."""
    first = workshop.step(f"true {text}", "echo the same > $OUT/result", name="first")
    second = workshop.step(
        "cat $IN/x/result > $OUT/result", "date +%s%N >> $OUT/result", name="second", inputs={"x": first}
    )
    return first, second


def test_a_step_whose_inputs_came_out_the_same_is_not_run_again(workshop: Workshop) -> None:
    first, second = changed(workshop, "one")
    workshop.run(first)
    before = workshop.run(second)
    other_first, other_second = changed(workshop, "two")
    assert other_second.key != second.key
    workshop.run(other_first)
    again = workshop.run(other_second)
    assert again.outputs == before.outputs
    assert again.reused == before.content_key == again.content_key
    assert "second: its inputs are bit for bit those of an earlier run, nothing to do" in workshop.lines


def test_a_step_whose_inputs_came_out_different_is_run_again(workshop: Workshop) -> None:
    first = workshop.step("echo one > $OUT/result", name="first")
    second = workshop.step("cat $IN/x/result > $OUT/result", name="second", inputs={"x": first})
    workshop.run(first)
    workshop.run(second)
    first = workshop.step("echo two > $OUT/result", name="first")
    second = workshop.step("cat $IN/x/result > $OUT/result", name="second", inputs={"x": first})
    workshop.run(first)
    record = workshop.run(second)
    assert (record.reused, workshop.text(record)) == ("", "two\n")


def test_an_output_that_was_reused_and_is_lost_is_made_again(workshop: Workshop) -> None:
    first, second = changed(workshop, "one")
    workshop.run(first)
    [output] = workshop.run(second).outputs
    workshop.store.local.remove("file", output.sha256)
    other_first, other_second = changed(workshop, "two")
    workshop.run(other_first)
    assert workshop.run(other_second).reused == ""


# fetching and patching as steps


def test_a_commit_is_fetched_and_edited_into_a_tree(
    store: LocalStore, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    repository = make_repository(tmp_path / "upstream")
    pin = pack_commit(GitOrigin(url=repository.url, commit=repository.git("rev-parse", "HEAD")), tmp_path)
    source = Step(name="source/x", component="x", action=FetchAction(files=(pin,)))
    edit = {"file": "file", "regex": "one", "with": "two", "why": "two is better"}
    tree = Step(
        name="tree/x",
        component="x",
        action=TreeAction.model_validate({"edits": [edit]}),
        inputs=(Input(name="source", key=source.key, output="*"),),
    )
    lines: list[str] = []
    for step in (source, tree):
        store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
        record = execute(step.key, store, home, lines.append)
    assert record.notes == ("edit file: 1 changed (two is better)",)
    wrong = tree.model_copy(
        update={"action": TreeAction.model_validate({"edits": [edit | {"regex": "three"}]})}
    )
    store.put_step(wrong.key, wrong.model_dump_json(by_alias=True).encode())
    with pytest.raises(PatchError):
        execute(wrong.key, store, home, lines.append)


# the store's part


def test_a_step_that_was_never_planned_is_told_by_key(store: LocalStore, home: Home) -> None:
    with pytest.raises(InputError, match="has no step 0123"):
        execute("0123" * 16, store, home, print)


def test_a_step_whose_input_is_not_there_says_which_to_run_first(store: LocalStore, home: Home) -> None:
    step = small_plan().steps[-1]
    store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
    with pytest.raises(InputError, match="hello needs the step") as caught:
        execute(step.key, store, home, print)
    assert step.inputs[0].key in caught.value.next_step


@pytest.mark.parametrize("text", ["", "{}", "not json", '{"name": "x"}'])
def test_a_definition_that_cannot_be_read_is_not_run(store: LocalStore, home: Home, text: str) -> None:
    key = digest("key")
    store.put_step(key, text.encode())
    with pytest.raises(InternalError, match="cannot be read"):
        execute(key, store, home, print)


def test_a_definition_changed_on_disk_is_not_run(workshop: Workshop) -> None:
    step = workshop.step("touch $OUT/result")
    path = next((workshop.home.store / "steps").glob(f"*/{step.key}.json"))
    path.write_text(path.read_text().replace("touch $OUT", "touch /OUT"))
    with pytest.raises(InternalError, match="has another key"):
        workshop.run(step)


def test_a_damaged_input_is_never_used(workshop: Workshop) -> None:
    tree = workshop.tree("damaged")
    record = workshop.store.record(tree.key)
    assert record is not None
    path = verified(workshop.store, record.outputs[0].sha256)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(DamagedBlobError):
        workshop.run(workshop.step("touch $OUT/result", tree=tree))
    assert "sandbox bubblewrap, 1 job" not in workshop.lines


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0], ids=["first byte", "middle", "last byte"])
def test_a_damaged_root_is_never_unpacked(workshop: Workshop, share: float) -> None:
    record = workshop.store.record(workshop.root.key)
    assert record is not None
    path = verified(workshop.store, record.outputs[0].sha256)
    data = bytearray(path.read_bytes())
    data[int((len(data) - 1) * share)] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    with pytest.raises(DamagedBlobError):
        workshop.run(workshop.step("touch $OUT/result"))
    assert [one for one in workshop.home.roots.iterdir() if one.suffix != ".lock"] == []


def test_two_that_want_the_same_step_wait_for_each_other(workshop: Workshop) -> None:
    step = workshop.step("sleep 0.5", "date +%s%N > $OUT/result")
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(workshop.run(step))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1]
    assert workshop.lines.count("hello: already in the store") == 1


def test_a_step_that_is_asked_to_end_is_told_as_stopped(workshop: Workshop, tmp_path: Path) -> None:
    step = workshop.step("echo waiting; sleep 76.5", "touch $OUT/result")
    workshop.store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
    words = [sys.executable, "-m", "rocwright", "exec-step", step.key, "--store", workshop.store.url]
    words += ["--engine", "bubblewrap", "--report", str(tmp_path / "report")]
    env = os.environ | {"ROCWRIGHT_HOME": str(workshop.home.path), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert any("waiting" in line for line in running.stdout)
        running.terminate()
        assert running.wait(30) == InterruptedByUser("").failure.exit_code
    error = json.loads((tmp_path / "report").read_text())["error"]
    assert (error["class"], error["message"]) == ("interrupted", "stopped")


def test_a_step_that_wanted_too_many_processes_is_told_so() -> None:
    job = SandboxJob(root=Path("/"), argv=("true",), env={}, processes=300)
    outcome = SandboxOutcome(ended=Ended.TOO_MANY_PROCESSES, code=9, seconds=1)
    error = cut_short(outcome, job, ["sh: Cannot fork"])
    assert isinstance(error, SandboxError)
    assert (
        "more than 300 processes" in error.message and error.detail == "sh: Cannot fork" and error.next_step
    )
