"""The command itself: help, completion, JSON, and what it prints."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest
from click.shell_completion import ShellComplete
from tests.conftest import Command
from tests.making import lock_of, put_output, small_plan

from rocwheel_samples.tables import each
from rocwright.cli import VERBS, cli
from rocwright.home import Home
from rocwright.plan.resolve.files import read_request, write_lock, write_request
from rocwright.sources.bases.roots import unpacked_root
from rocwright.store.local import LocalStore
from rocwright.store.model import verified

HELP = [(name,) for name in VERBS] + [
    ("store", name) for name in ("ls", "usage", "verify", "gc", "push", "pull", "sync", "policy")
]
HELP += [("patch", "check"), ("catalog", "check"), ("catalog", "schema")]


@pytest.fixture
def locked(tmp_path: Path, rocwright: Command) -> Path:
    """A project folder with its lock."""
    folder = tmp_path / "project"
    lock = lock_of("gfx-smoke")
    write_request(folder / "rocwright.toml", lock.request)
    write_lock(folder / "rocwright.lock", lock)
    return folder


def test_help_names_every_verb(rocwright: Command) -> None:
    done = rocwright("--help")
    assert done.returncode == 0
    for name, told in VERBS.items():
        assert f"  {name} " in done.stdout
        assert told.split()[0] in done.stdout


def test_help_imports_neither_models_nor_tables() -> None:
    code = (
        "import sys\nsys.argv = ['rocwright', '--help']\nfrom rocwright.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('loaded', sorted({name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1]
    for heavy in ("pydantic", "rich", "zstandard", "psutil", "requests", "packaging", "tomlkit"):
        assert f"'{heavy}'" not in loaded


@each("words", HELP, ids=" ".join)
def test_every_verb_explains_itself(words: tuple[str, ...]) -> None:
    command: click.Command = cli
    with click.Context(cli, info_name="rocwright") as context:
        for word in words:
            assert isinstance(command, click.Group)
            found = command.get_command(context, word)
            assert found is not None
            command = found
        text = command.get_help(context)
    assert "Usage:" in text
    assert command.help
    undescribed = [one for one in command.params if isinstance(one, click.Option) and not one.help]
    assert undescribed == []


def test_a_verb_explains_itself_on_the_command_line(rocwright: Command) -> None:
    done = rocwright("build", "-h")
    assert done.returncode == 0
    assert "--engine" in done.stdout


@pytest.mark.parametrize(("word", "near"), [("builds", "build"), ("plna", "plan"), ("historry", "history")])
def test_an_unknown_verb_is_answered_with_the_nearest(rocwright: Command, word: str, near: str) -> None:
    done = rocwright(word)
    assert done.returncode == 2
    assert f"error[input] there is no command '{word}'\n" in done.stderr
    assert f"  next   {near}" in done.stderr


@pytest.mark.parametrize(
    ("words", "next_step"),
    [
        (("list",), "stacks? rocwright --help lists all"),
        (("build", "--dry-run"), "rocwright plan STACK"),
        (("serve", "llama-vulkan"), "rocwright run llama-vulkan"),
        (("serve", "a b.gguf"), "rocwright run --model 'a b.gguf'"),
    ],
)
def test_a_word_of_another_program_is_answered_with_the_verb_for_it(
    rocwright: Command, words: tuple[str, ...], next_step: str
) -> None:
    done = rocwright(*words)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].replace("python -m ", "") == f"  next   {next_step}"


@pytest.mark.parametrize("words", [("help", "run"), ("help",), ("wheel", "help", "slim")])
def test_help_explains_a_verb(rocwright: Command, words: tuple[str, ...]) -> None:
    plain = [word for word in words if word != "help"]
    assert rocwright(*words).stdout == rocwright(*plain, "--help").stdout != ""


@pytest.mark.parametrize(
    "words",
    [
        ("build", "--nope"),
        ("why",),
        ("build", "-j", "0"),
        ("build", "--memory", "1MiB"),
        ("completion", "tcsh"),
    ],
)
def test_a_wrong_use_is_told_as_every_other_failure(rocwright: Command, words: tuple[str, ...]) -> None:
    done = rocwright(*words)
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert lines[0].startswith("error[input] ")
    assert not lines[0].endswith(".")
    told = [line for line in lines if line.startswith(("  cause", "  next"))]
    assert told[0].endswith(f"rocwright {words[0]} {told[0].rpartition(f' {words[0]} ')[2]}")
    assert "[OPTIONS]" in told[0]
    assert told[1].endswith(f"rocwright {words[0]} --help explains it")
    assert "Traceback" not in done.stderr


def test_the_version_is_told(rocwright: Command) -> None:
    assert rocwright("--version").stdout.startswith("rocwright, version ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_completion_for_each_shell(rocwright: Command, shell: str) -> None:
    done = rocwright("completion", shell)
    assert done.returncode == 0
    assert "_ROCWRIGHT_COMPLETE" in done.stdout


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rocwright bu", "build"),  # codespell:ignore bu
        ("rocwright build llama", "llama-vulkan"),
        ("rocwright build --gpu gfx115", "gfx1151"),
        ("rocwright build --gpu RX-58", "RX-580"),
        ("rocwright build --gpu strix", "strix-halo"),
        ("rocwright wheel check-gpu Radeon-7", "Radeon-780M"),
        ("rocwright build --base debian:s", "debian:sid"),
    ],
)
def test_names_of_verbs_and_of_the_catalog_are_completed(
    rocwright: Command, line: str, expected: str
) -> None:
    env = {
        "_ROCWRIGHT_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split()) - 1),
    }
    code = "from rocwright.cli import cli; cli.main(prog_name='rocwright')"
    done = rocwright(env=env, before=(sys.executable, "-c", code, "--"))
    assert f"plain,{expected}" in done.stdout.splitlines()


@each(
    ("words", "expected"),
    [
        (("doctor", "llama-h"), "llama-hip"),
        (("issues", "cmake-m"), "cmake-minimum"),
        (("issues", "--component", "torchv"), "torchvision"),
        (("diagnose", "--phase", "bu"), "build"),  # codespell:ignore bu
        (("clean", "package"), "package-lists"),
        (("heal", "--forget", "gloo"), "gloo-cstdint"),
        (("build", "--engine", "bubble"), "bubblewrap"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value,
)
def test_what_the_verbs_for_trouble_take_is_completed(words: tuple[str, ...], expected: str) -> None:
    *before, begun = words
    found = ShellComplete(cli, {}, "rocwright", "_ROCWRIGHT_COMPLETE").get_completions(before, begun)
    assert expected in [one.value for one in found]


# reports


def test_init_writes_a_project_file_that_reads_back(rocwright: Command, tmp_path: Path) -> None:
    done = rocwright("init", "--stack", "gfx-smoke", "--gpu", "gfx803,gfx1151")
    assert done.returncode == 0
    request = read_request(tmp_path / "project" / "rocwright.toml")
    assert (request.stack, request.gpu, request.base) == ("gfx-smoke", ("gfx803", "gfx1151"), "debian:sid")


def test_the_origin_of_a_stack_is_chosen_and_told_with_the_others(rocwright: Command) -> None:
    chosen = rocwright("plan", "vllm", "--gpu", "gfx1151")
    assert chosen.returncode == 0, chosen.stderr
    expected = "vllm: using the stack vllm-wheels (choose with --from published, --from built, --from image)"
    assert expected in chosen.stderr.splitlines()
    named = rocwright("plan", "vllm", "--from", "image", "--gpu", "gfx1151")
    assert "image/vllm-image" in named.stdout
    assert "rocwright lock vllm --from image --gpu gfx1151 fills in" in named.stderr
    assert rocwright("plan", "--from", "image").returncode == 2
    assert "from  published: vllm-wheels" in rocwright("stacks", "vllm").stdout


def test_the_plan_is_told_with_reasons_and_drawn(rocwright: Command, locked: Path) -> None:
    done = rocwright("plan", "--graph", "plan.svg")
    assert done.returncode == 0
    assert "never built" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("steps, 5 to run")
    assert done.stderr.splitlines()[-1].startswith("needs  about ")
    assert "this machine: " in done.stderr.splitlines()[-1]
    assert ElementTree.fromstring((locked / "plan.svg").read_text()).tag.endswith("svg")


def test_the_plan_as_json_has_every_step_with_key_state_and_reasons(rocwright: Command, locked: Path) -> None:
    rows = json.loads(rocwright("plan", "--json").stdout)
    assert [row["name"] for row in rows][-1] == "gfx-smoke"
    for row in rows:
        assert set(row) == {"name", "kind", "key", "state", "reasons", "resources", "expected", "inputs"}
    assert rows[-1]["expected"]["source"] == "recipe"


def test_why_tells_what_a_key_is_made_from(rocwright: Command, locked: Path) -> None:
    told = rocwright("why", "gfx-smoke").stdout
    assert "env GFX_TARGETS = gfx1151" in told
    assert "it has not been built before" in told
    data = json.loads(rocwright("why", "gfx-smoke", "--json").stdout)
    assert data["action"]["env"]["GFX_TARGETS"] == "gfx1151"
    assert data["last_key"] is None


@pytest.mark.parametrize(
    "words",
    [
        ("history", "--json"),
        ("store", "ls", "--json"),
        ("store", "usage", "--json"),
        ("store", "verify", "--json"),
        ("store", "gc", "--dry-run", "--json"),
        ("targets", "--json"),
        ("targets", "gfx1151", "--json"),
    ],
    ids=" ".join,
)
def test_every_report_is_there_as_json(rocwright: Command, store: LocalStore, words: tuple[str, ...]) -> None:
    done = rocwright(*words)
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)


def test_sandboxes_are_reported_as_json_with_reasons(rocwright: Command, engine: str) -> None:
    rows = {row["engine"]: row for row in json.loads(rocwright("sandbox", "--json").stdout)}
    assert rows["bubblewrap"]["ok"]
    assert all(row["reason"] for row in rows.values() if not row["ok"])


@pytest.mark.parametrize("name", ["RX 580", "1002:67df", "gfx803"])
def test_a_gpu_is_found_by_any_of_its_names(rocwright: Command, name: str) -> None:
    data = json.loads(rocwright("targets", name, "--json").stdout)
    assert [one["name"] for one in data["targets"]] == ["gfx803"]


def test_an_empty_history_says_how_to_begin(rocwright: Command) -> None:
    assert "rocwright build" in rocwright("history").stdout


def test_a_damaged_store_is_told_by_its_exit_code(
    rocwright: Command, store: LocalStore, tmp_path: Path
) -> None:
    output = put_output(store, small_plan().steps[0], "x", b"data", tmp_path)
    assert rocwright("store", "verify").returncode == 0
    path = verified(store, output.sha256)
    path.chmod(0o644)
    path.write_bytes(b"dat4")
    done = rocwright("store", "verify")
    assert done.returncode == 12
    assert "1 damaged" in done.stdout
    assert rocwright("store", "verify").returncode == 0


def test_a_damaged_record_is_named_and_told_by_the_exit_code(
    rocwright: Command, store: LocalStore, tmp_path: Path
) -> None:
    step = small_plan().steps[0]
    put_output(store, step, "x", b"data", tmp_path)
    path = store.path / "records" / step.key[:2] / f"{step.key}.json"
    path.write_text(path.read_text().replace('"size": 4', '"size": 5'))
    done = rocwright("store", "verify")
    assert done.returncode == 12
    assert f"record {step.key} is damaged" in done.stdout
    assert rocwright("store", "verify").returncode == 0


def test_an_unpacked_root_that_was_changed_is_named_and_told_by_the_exit_code(
    rocwright: Command, store: LocalStore, home: Home, tiny_root: Path
) -> None:
    sha256, _ = store.put_file(tiny_root)
    root = unpacked_root(store, sha256, home.roots, print)
    assert rocwright("store", "verify").returncode == 0
    (root / "etc/passwd").write_text("root::0:0")
    done = rocwright("store", "verify")
    assert done.returncode == 12
    assert f"unpacked root {sha256} is changed (etc/passwd)" in done.stdout
    assert rocwright("store", "verify").returncode == 0


def test_a_clean_up_that_only_looks_removes_nothing(
    rocwright: Command, store: LocalStore, tmp_path: Path
) -> None:
    output = put_output(store, small_plan().steps[0], "x", b"data", tmp_path)
    done = rocwright("store", "gc", "--keep", "0", "--dry-run")
    assert done.stdout.startswith("4 B would be freed")
    assert store.has(output.sha256)
    rocwright("store", "gc", "--keep", "0")
    assert not store.has(output.sha256)


def test_a_reader_that_leaves_early_is_no_failure(rocwright: Command, home: Home) -> None:
    done = subprocess.run(
        f"{sys.executable} -m rocwright targets | head -n 1",
        shell=True,
        env={"ROCWRIGHT_HOME": str(home.path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("target")
    assert done.stderr == ""


def test_debug_shows_where_a_failure_comes_from(rocwright: Command) -> None:
    done = rocwright("--debug", "plan")
    assert "Traceback" in done.stderr
    assert "InputError" in done.stderr
