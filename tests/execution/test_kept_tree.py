"""A step that was cut short goes on in its tree, where nothing says that it must not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.execution.conftest import Workshop

from rocbase.errors import CheckError, CompileError, InputError, OutOfMemoryError, StepTimeoutError
from rocwright.execution import kept_tree, opened
from rocwright.execution.cleanup.inside import what_can_go
from rocwright.execution.compiler_cache import add_others, drop
from rocwright.execution.inspect import open_shell
from rocwright.execution.workspace import Workspace
from rocwright.model.steps import FetchAction, Input, Resources, Step
from rocwright.sandbox import sweep
from rocwright.store.signing.keys import make_key, pem_of, signer_of
from rocwright.store.trust import Trust, TrustedKey, trust_file, write_trust

RAN = tuple(f"echo {word} >> /build/ran" for word in ("one", "two", "three"))
FAILS_ONCE = "echo here >> /build/ran; test -e /out/failed || { touch /out/failed; false; }"
TELLS = "cat /build/ran > $OUT/result"
WHOLE = "one\ntwo\nthree\nhere\n"


def cut(shop: Workshop, *commands: str, resume: int = 2, tree: Step | None = None) -> Step:
    """A step that failed once."""
    step = shop.step(*(commands or (*RAN, FAILS_ONCE, TELLS)), resume=resume, tree=tree)
    with pytest.raises(CompileError):
        shop.run(step)
    shop.lines.clear()
    return step


def with_source(shop: Workshop) -> Step:
    """A tree whose steps the store knows, as a shell wants it."""
    source = Step(name="source/hello", component="hello", action=FetchAction())
    tree = shop.tree()
    made = shop.store.record(tree.key)
    assert made is not None
    tree = tree.model_copy(update={"inputs": (Input(name="source", key=source.key, output="*"),)})
    for step in (source, tree):
        shop.store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
    shop.store.put_record(made.model_copy(update={"key": tree.key}))
    return tree


def note_of(shop: Workshop, step: Step) -> Path:
    return Workspace.of(shop.home, step.key).path / kept_tree.NOTE


def starts_clean(shop: Workshop, step: Step, **more: bool) -> str:
    """Why: the step is run, and fails as it did at first, for nothing of that is left."""
    with pytest.raises(CompileError):
        shop.run(step, **more)
    assert shop.lines.count(f"$ {RAN[0]}") == 1
    return next((line for line in shop.lines if line.startswith("starts clean: ")), "")


def noted(workspace: Workspace) -> int:
    """How many commands are noted to have ended."""
    return int(json.loads((workspace.path / kept_tree.NOTE).read_bytes())["ended"])


# where it goes on


@pytest.mark.parametrize("resume", [1, 2, 3, 4])
def test_it_goes_on_with_the_command_that_was_cut_short(workshop: Workshop, resume: int) -> None:
    step = cut(workshop, resume=resume)
    record = workshop.run(step)
    assert workshop.text(record) == f"{WHOLE}here\n"
    assert record.resumed == 1
    assert "goes on in its kept tree: 3 of its 5 commands had ended" in workshop.lines
    assert not any(line == f"$ {RAN[2]}" for line in workshop.lines)


def test_it_starts_clean_where_its_recipe_does_not_say_that_it_can_go_on(workshop: Workshop) -> None:
    step = cut(workshop, resume=0)
    assert not note_of(workshop, step).exists()
    assert starts_clean(workshop, step) == ""


def test_it_starts_clean_where_it_was_cut_short_before_that_command(workshop: Workshop) -> None:
    step = cut(workshop, resume=5)
    said = "starts clean: it was cut short before command 5, from which on it can go on"
    assert starts_clean(workshop, step) == said


def test_it_goes_on_again_and_again_and_the_record_says_how_often(workshop: Workshop) -> None:
    step = workshop.step(
        *RAN, "echo here >> /build/ran; sleep 60", TELLS, resume=4, resources=Resources(limit=1)
    )
    for _ in range(2):
        with pytest.raises(StepTimeoutError):
            workshop.run(step)
    (Workspace.of(workshop.home, step.key).build / "ran").write_text("as the commands left it\n")
    note = json.loads(note_of(workshop, step).read_text())
    assert (note["ended"], note["resumed"]) == (3, 1)


def test_a_step_that_ran_out_of_memory_goes_on(workshop: Workshop) -> None:
    eats = "head -c 600000000 /dev/zero | tail -n 1 > /dev/null"
    once = f"test -e /out/ate || {{ touch /out/ate; {eats}; }}"
    step = workshop.step(*RAN, once, TELLS, resume=2)
    with pytest.raises(OutOfMemoryError):
        workshop.run(step, memory=100 * 1024**2)
    record = workshop.run(step, memory=100 * 1024**2)
    assert (workshop.text(record), record.resumed) == ("one\ntwo\nthree\n", 1)


def test_variables_and_the_folder_of_the_shell_are_as_the_commands_before_left_them(
    workshop: Workshop,
) -> None:
    odd = 'it\'s "$HOME" `pwd`\n\\n  end '
    step = workshop.step(
        'export MINE="$ODD" LANG=de_DE; unset GONE; MAX_JOBS=1; mkdir -p sub; cd sub',
        "test -e /out/failed || { touch /out/failed; false; }",
        'pwd > $OUT/result; env | grep -E "^(LANG|GONE|MAX_JOBS|JOBS|ROCWRIGHT_AT)=" | sort >> $OUT/result',
        'printf %s "$MINE" >> $OUT/result',
        env={"ODD": odd, "GONE": "not yet"},
        resume=2,
    )
    with pytest.raises(CompileError):
        workshop.run(step, jobs=7)
    record = workshop.run(step, jobs=3)
    told = "/build/src/sub\nJOBS=3\nLANG=de_DE\nMAX_JOBS=1\n"
    assert workshop.text(record) == told + odd


def test_what_commands_put_into_the_output_folder_stays_there(workshop: Workshop) -> None:
    step = cut(workshop, "echo made > $OUT/result", FAILS_ONCE, "true")
    assert workshop.text(workshop.run(step)) == "made\n"


def test_wheels_are_not_installed_again_and_guards_have_passed(workshop: Workshop) -> None:
    step = cut(workshop)
    workshop.run(step)
    assert not any(line.startswith(("installing", "guard")) for line in workshop.lines)


@pytest.mark.parametrize("moment", [0, 1, 2])
def test_a_step_whose_process_was_killed_goes_on(workshop: Workshop, moment: int) -> None:
    waits = "echo here >> /build/ran; test -e /build/go || { touch /out/waits; sleep 60; }"
    commands = [*RAN, TELLS]
    commands.insert(1 + moment, waits)
    step = workshop.step(*commands, resume=2)
    words = (sys.executable, "-m", "rocwright", "exec-step", step.key, "--store", workshop.store.url)
    running = subprocess.Popen(
        (*words, "--engine", workshop.engine),
        env=os.environ | {"ROCWRIGHT_HOME": str(workshop.home.path)},
        stdout=subprocess.DEVNULL,
    )
    workspace = Workspace.of(workshop.home, step.key)
    end = time.monotonic() + 60
    while not ((workspace.out / "waits").exists() and noted(workspace) == 1 + moment):
        assert time.monotonic() < end
        assert running.poll() is None
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait()
    (workspace.build / "go").touch()
    record = workshop.run(step)
    told = workshop.text(record).splitlines()
    assert sorted(told) == sorted(["one", "two", "three", "here", "here"])
    assert (told[0], record.resumed) == ("one", 1)


# where it must not


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("key", "the kept tree is of another step"),
        ("content_key", "what the kept tree was made of is not the same any more"),
        ("rocwright", "the kept tree was made by rocwright other"),
        ("boot", "the machine was restarted since; files of the kept tree may be cut off"),
    ],
)
def test_it_starts_clean_where_something_else_is_behind_the_tree(
    workshop: Workshop, field: str, said: str
) -> None:
    step = cut(workshop)
    note = note_of(workshop, step)
    note.write_text(json.dumps(json.loads(note.read_text()) | {field: "other"}))
    assert starts_clean(workshop, step) == f"starts clean: {said}"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"key": 1}', "\xff"])
def test_it_starts_clean_where_the_note_is_damaged(workshop: Workshop, text: str) -> None:
    step = cut(workshop)
    note_of(workshop, step).write_bytes(text.encode("latin-1"))
    assert starts_clean(workshop, step) == "starts clean: the note about the kept tree is damaged"


def test_it_starts_clean_where_that_is_asked_for(workshop: Workshop) -> None:
    assert starts_clean(workshop, cut(workshop), resume=False) == ""


def shell(shop: Workshop, step: Step, script: str) -> str:
    """What is said at the end of a shell with that script."""
    said: list[str] = []
    open_shell(step, shop.store, shop.home, shop.engine, script, said.append)
    assert "the next build of hello goes on where it stood, if this shell changes nothing" in said
    return said[-1]


@pytest.mark.parametrize("script", ["true", "ls -R /build /out; cat /build/ran; git status; git log; exit 3"])
def test_it_goes_on_where_a_shell_only_looked_at_the_tree(workshop: Workshop, script: str) -> None:
    step = cut(workshop, tree=with_source(workshop))
    for _ in range(2):
        told = shell(workshop, step, script)
        assert told == "the next build of hello: nothing was changed: it goes on where it stood"
    record = workshop.run(step)
    assert record.resumed == 1
    assert workshop.lines.count(f"$ {RAN[0]}") == 0


@pytest.mark.parametrize(
    "script",
    [
        "touch new",
        "touch /out/new",
        "mkdir /build/new",
        "echo more >> /build/ran",
        # the same size, the same time
        "cp -p /build/ran /tmp/x; sed s/one/ONE/ /tmp/x > /build/ran; touch -r /tmp/x /build/ran",
        "chmod 700 /build/ran",
        "rm /out/failed",
        # what git notes of a commit
        "mkdir -p .git/logs; head=$(cat .git/refs/heads/*); "
        "printf '%s %040d me <me> 1735689600 +0000\\tcommit: Mend it\\n' $head 3 >> .git/logs/HEAD",
    ],
)
def test_it_starts_clean_where_a_shell_changed_the_tree(workshop: Workshop, script: str) -> None:
    step = cut(workshop, tree=with_source(workshop))
    assert shell(workshop, step, script) == "the next build of hello: changed: it starts clean"
    assert not note_of(workshop, step).exists()
    Workspace.of(workshop.home, step.key).remove()
    starts_clean(workshop, step)


def test_what_a_shell_puts_in_the_place_of_the_tree_leads_nowhere(workshop: Workshop, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    (precious / ".git").mkdir(parents=True)
    step = cut(workshop, tree=with_source(workshop))
    told = shell(workshop, step, f"cd /build; mv src away; ln -s {precious} src")
    assert told == "the next build of hello: changed: it starts clean"
    assert (precious / ".git").is_dir()


def test_it_starts_clean_where_a_shell_was_killed(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = cut(workshop, tree=with_source(workshop))

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.print", killed)
    with pytest.raises(KeyboardInterrupt):
        open_shell(step, workshop.store, workshop.home, workshop.engine, "echo x", lambda _: None)
    monkeypatch.undo()
    assert not note_of(workshop, step).exists()


def test_it_starts_clean_where_the_note_of_a_shell_lies_beside_the_tree(workshop: Workshop) -> None:
    step = cut(workshop)
    workspace = Workspace.of(workshop.home, step.key)
    files = opened.look(workspace.build, "hello")
    opened.write(workspace.path, opened.Opened(step="hello", base="", files=files, left=()))
    assert starts_clean(workshop, step) == "starts clean: a shell was opened in the kept tree"


def test_it_starts_clean_without_a_compiler_cache_where_one_had_a_part_in_the_tree(
    workshop: Workshop,
) -> None:
    (workshop.home.compiler_cache("d" * 64) / "filled").mkdir(parents=True)
    step = cut(workshop)
    said = "starts clean: a compiler cache had a part in the kept tree"
    assert starts_clean(workshop, step, compiler_cache=False) == said


def test_the_record_says_that_a_cache_was_filled_which_an_attempt_before_had(workshop: Workshop) -> None:
    step = cut(workshop)
    (workshop.home.compiler_cache("d" * 64) / "filled").mkdir()
    cache = workshop.run(step).cache
    assert cache is not None
    assert cache.state == "filled"


def test_whose_objects_came_into_a_kept_tree_is_in_the_record_though_the_cache_is_gone(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ROCWRIGHT_HOME", str(tmp_path / "own"))
    signer = signer_of(make_key(tmp_path / "one.key").private)
    key = TrustedKey(name="one", pem=pem_of(signer).decode(), added="2026-01-01T00:00:00Z")
    write_trust(trust_file(), Trust(key=(key,)))
    domain = workshop.home.compiler_cache("d" * 64)
    domain.mkdir(parents=True)
    add_others(workshop.home, domain, {key.keyid})
    step = cut(workshop)
    assert json.loads(note_of(workshop, step).read_text())["others"] == [key.keyid]
    drop(workshop.home, domain)
    record = workshop.run(step)
    assert (record.resumed, record.cache_signers) == (1, (key.keyid,))


def test_it_starts_clean_where_a_key_had_a_part_in_the_tree_that_is_not_trusted_any_more(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ROCWRIGHT_HOME", str(tmp_path / "own"))
    step = cut(workshop)
    note = note_of(workshop, step)
    note.write_text(json.dumps(json.loads(note.read_text()) | {"others": ["f" * 64]}))
    said = "starts clean: a key that is not trusted any more had signed some of the kept tree"
    assert starts_clean(workshop, step) == said


def test_a_step_that_goes_on_and_fails_by_itself_starts_clean_the_next_time(workshop: Workshop) -> None:
    step = cut(workshop, *RAN, "false")
    with pytest.raises(CompileError):
        workshop.run(step)
    assert "it had gone on in a kept tree; the next attempt starts clean" in workshop.lines
    assert f"$ {RAN[0]}" not in workshop.lines
    starts_clean(workshop, step)


def test_a_step_whose_outputs_are_not_there_starts_clean_the_next_time(workshop: Workshop) -> None:
    step = workshop.step(*RAN, resume=2)
    for _ in range(2):
        with pytest.raises(CheckError):
            workshop.run(step)
    assert workshop.lines.count(f"$ {RAN[0]}") == 2


# who takes it away


def test_only_a_clean_up_takes_it_away_and_only_after_some_days(workshop: Workshop) -> None:
    step = cut(workshop)
    folder = Workspace.of(workshop.home, step.key).path
    sweep()
    assert str(folder) not in what_can_go(workshop.home, workshop.store, set(), 30).folders
    then = time.time() - 31 * 86400
    os.utime(folder, (then, then))
    assert str(folder) in what_can_go(workshop.home, workshop.store, set(), 30).folders
    assert workshop.run(step).resumed == 1


def test_nothing_is_left_of_it_when_the_step_is_done(workshop: Workshop) -> None:
    workshop.run(cut(workshop))
    assert list(workshop.home.work.iterdir()) == []


def test_what_lies_in_the_tree_leads_nowhere(workshop: Workshop, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("untouched")
    before = [path.stat().st_ctime_ns for path in (outside, outside / "file")]
    step = cut(
        workshop,
        f"ln -s {outside} /build/link; mv /build/src /build/moved; ln -s {outside} /build/src",
        FAILS_ONCE,
        "true",
    )
    # in the sandbox there is no such folder
    with pytest.raises(InputError, match="no folder /build/src"):
        workshop.run(step)
    with pytest.raises(CompileError):
        workshop.run(step)
    assert workshop.lines.count(f"$ {FAILS_ONCE}") == 1
    assert (outside / "file").read_text() == "untouched"
    assert [path.stat().st_ctime_ns for path in (outside, outside / "file")] == before
