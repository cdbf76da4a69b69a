"""What a step hands back from a real sandbox: each reader survives it, and the store stays as it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.execution.conftest import Workshop

from rocbase.errors import ExplainedError, FailureClass
from rocwright.cli import cli
from rocwright.execution.workspace import Workspace
from rocwright.model.steps import Step
from rocwright.sandbox import ENGINES
from rocwright.store.gc import check_whole

SECRET = "what only the host may read\n"

SOCKET = "python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])'"
DEEP = """python3 -c '
import os
for _ in range(1500):
    os.mkdir("d")
    os.chdir("d")
'"""

OUTPUTS = {
    "a link to the host's file": "ln -s SECRET $OUT/result",
    "a link to a device": "ln -s /dev/zero $OUT/result",
    "a FIFO": "mkfifo $OUT/result",
    "a socket": f"cd $OUT && {SOCKET} result",
    "a folder": "mkdir $OUT/result",
    "a huge sparse file": "truncate -s 3T $OUT/result",
    "a setuid file": "echo x > $OUT/result && chmod 4755 $OUT/result",
    "a setgid file": "echo x > $OUT/result && chmod 2755 $OUT/result",
}
NAMES = {
    "an escape sequence": r"""echo x > "$OUT/$(printf 'a\033[2Jb.whl')" """,
    "a new line": r"""echo x > "$OUT/$(printf 'a\nerror: b.whl')" """,
    "no text": r"""echo x > "$OUT/$(printf '\377\376.whl')" """,
}
LEFT = {
    "a log of the compiler cache that is a FIFO": "mkfifo /build/ccache.log",
    "a log of the compiler cache that is a link to a device": "ln -s /dev/zero /build/ccache.log",
    "a log of the compiler cache that is a link to the host's file": "ln -s SECRET /build/ccache.log",
    "a log of the compiler cache that is a folder": "mkdir /build/ccache.log",
    "a log of the compiler cache that is huge": "truncate -s 3T /build/ccache.log",
    "a compiler cache of links": (
        "ln -s SECRET-FOLDER /ccache/0; ln -s / /ccache/a; ln -s SECRET /ccache/ccache.conf"
    ),
    "a compiler cache with a FIFO as its settings": "mkfifo /ccache/ccache.conf /ccache/stats",
    "a compiler cache that is huge and empty": "truncate -s 3T /ccache/0",
    "folders that may not be entered": (
        "mkdir -p /build/tmp/a/b /ccache/c/d && chmod 0 /build/tmp/a /ccache/c"
    ),
    "folders deeper than a path": f"cd /build/tmp && {DEEP}; cd /ccache && {DEEP}",
    "a repository with commands": (
        "mkdir -p .git/info sub && printf '[core]\\n\\tfsmonitor = touch SECRET-FOLDER/run\\n' > .git/config"
        " && echo {} > .git/rocwright-opened.json && echo 'ref: refs/heads/main' > .git/HEAD"
        " && mkdir -p .git/objects .git/refs && cp -r .git sub/.git"
    ),
    "a tree that is a link": "cd /build && mv src away && ln -s SECRET-FOLDER src",
    "an output folder of links": "ln -s SECRET-FOLDER $OUT/folder; ln -s . $OUT/loop",
}
OTHERS = [name for name, engine in ENGINES.items() if engine.isolates and name != "bubblewrap"]
READERS = (
    ("clean", "--dry-run", "--keep", "0d"),
    ("store", "usage"),
    ("store", "verify"),
    ("store", "gc", "--keep", "0"),
    ("logs",),
    ("clean", "work", "compiler-cache", "--keep", "0d", "--yes"),
)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the host's that its root alone may read, in a folder of its own."""
    folder = tmp_path / "host"
    folder.mkdir()
    file = folder / "secret"
    file.write_text(SECRET)
    file.chmod(0o600)
    return file


def hostile(shop: Workshop, secret: Path, *commands: str, output: str = "result") -> Step:
    said = [
        one.replace("SECRET-FOLDER", str(secret.parent)).replace("SECRET", str(secret)) for one in commands
    ]
    return shop.step(*said, name="hostile", output=output)


def untouched(shop: Workshop, secret: Path, before: list[tuple[str, int]]) -> None:
    """The host's file is as it was, and alone in its folder; nothing came into the store."""
    assert [path.name for path in secret.parent.iterdir()] == ["secret"]
    assert (secret.read_text(), secret.stat().st_mode & 0o777) == (SECRET, 0o600)
    assert secret.stat().st_uid == os.geteuid()
    assert sorted(file[:2] for file in shop.store.local.files()) == before
    found = check_whole(shop.store)
    assert (found.damaged, found.incomplete) == ((), ())


def refused(shop: Workshop, secret: Path, command: str) -> None:
    """A step that ran this fails, by the name of its output, and nothing of the host was read or changed."""
    step = hostile(shop, secret, command)
    before = sorted(file[:2] for file in shop.store.local.files())
    with pytest.raises(ExplainedError) as caught:
        shop.run(step)
    error = caught.value
    assert error.failure in (FailureClass.SANDBOX, FailureClass.INPUT), error
    assert "hostile" in f"{error.message} {error.cause}"
    assert "result" in f"{error.message} {error.cause}"
    assert error.next_step
    assert SECRET not in str(error.as_dict())
    assert shop.store.record(step.key) is None
    untouched(shop, secret, before)


@pytest.mark.parametrize("command", OUTPUTS.values(), ids=OUTPUTS)
def test_an_output_that_is_no_file_is_refused_by_name(shop: Workshop, secret: Path, command: str) -> None:
    refused(shop, secret, command)


@pytest.mark.real
@pytest.mark.parametrize("engine", OTHERS, indirect=True)
def test_links_and_fifos_are_refused_whatever_the_engine(shop: Workshop, secret: Path) -> None:
    for name in ("a link to the host's file", "a FIFO"):
        refused(shop, secret, OUTPUTS[name])


@pytest.mark.parametrize("what", NAMES)
def test_a_name_that_writes_on_the_terminal_is_refused_and_shown_plainly(
    shop: Workshop, secret: Path, what: str
) -> None:
    step = hostile(shop, secret, NAMES[what], output="*.whl")
    before = sorted(file[:2] for file in shop.store.local.files())
    with pytest.raises(ExplainedError) as caught:
        shop.run(step)
    error = caught.value
    assert error.failure in (FailureClass.SANDBOX, FailureClass.INPUT), error
    assert f"{error.message} {error.cause}".isprintable(), error
    assert shop.store.record(step.key) is None
    untouched(shop, secret, before)


@pytest.mark.parametrize("command", LEFT.values(), ids=LEFT)
def test_what_lies_beside_the_outputs_does_no_harm_to_any_reader(
    shop: Workshop, secret: Path, command: str
) -> None:
    # of a step that ended well, its log of the compiler cache is read; of one that failed, its folder is kept
    fails = "/build/ccache.log" not in command
    step = hostile(shop, secret, command, "echo x > $OUT/result", *(["exit 3"] if fails else []))
    before = sorted(file[:2] for file in shop.store.local.files())
    with pytest.raises(ExplainedError) as caught:
        shop.run(step)
    error = caught.value
    if not fails:
        assert error.failure is FailureClass.SANDBOX, error
        assert "hostile left" in error.message
        assert "ccache.log" in error.message
    assert error.failure in (FailureClass.SANDBOX, FailureClass.COMPILE), error
    assert shop.store.record(step.key) is None
    untouched(shop, secret, before)
    for words in READERS:
        done = CliRunner().invoke(cli, words)
        told = done.exception is None or isinstance(done.exception, ExplainedError | SystemExit)
        assert told, (words, done)
        assert SECRET not in done.output
    assert [path.name for path in secret.parent.iterdir()] == ["secret"], "a command of the step's ran"
    # a step that runs again finds an empty folder, whatever lay there
    Workspace.of(shop.home, step.key).create()
    assert not any(Workspace.of(shop.home, step.key).source.iterdir())


def test_a_device_cannot_be_made_in_a_sandbox(shop: Workshop) -> None:
    record = shop.run(shop.step("mknod $OUT/x c 1 5 2>/dev/null && exit 3; echo none > $OUT/result"))
    assert shop.text(record) == "none\n"


def test_a_step_finds_nothing_of_what_another_left_in_its_compiler_cache(shop: Workshop) -> None:
    shop.run(shop.step("echo mine > /ccache/left", "echo x > $OUT/result", name="first"))
    record = shop.run(shop.step("ls -A /ccache > $OUT/result", name="second", domain="e" * 64))
    assert shop.text(record) == ""
