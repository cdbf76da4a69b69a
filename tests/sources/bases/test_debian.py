"""A root file system made of packages: what is done in it when they are all there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rocwright.model.steps import BaseAction
from rocwright.sources.bases.debian import mmdebstrap_words
from rocwright.sources.bases.roots import as_root, unpack_root
from rocwright.store.local import LocalStore

HOOK = "--customize-hook="
TOLD = """cat > /told <<'END'
it's "$1" & $HOME
END
ls / | grep -c told >> /told"""


def hooks(customize: tuple[str, ...]) -> list[str]:
    action = BaseAction(suite="sid", architecture="amd64", customize=customize)
    words = mmdebstrap_words(action, "/packages", "one,two")
    return [word.removeprefix(HOOK) for word in words if word.startswith(HOOK)]


def in_root(hook: str, root: Path) -> subprocess.CompletedProcess[str]:
    """Run a hook as mmdebstrap does: by a shell, with the root's folder as its one argument."""
    command = ["sh", "-c", hook, "exec", str(root)]
    if os.geteuid() != 0:
        command = ["unshare", *as_root(), "--", *command]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def root(store: LocalStore, tiny_root: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    unpack_root(store, store.put_file(tiny_root)[0], folder)
    return folder


def test_commands_run_in_the_root_itself_after_all_else_word_by_word(root: Path) -> None:
    found = hooks((TOLD,))
    assert len(found) == len(hooks(())) + 1
    assert in_root(found[-1], root).returncode == 0
    assert (root / "told").read_text().splitlines() == ['it\'s "$1" & $HOME', "1"]


def test_a_command_that_fails_ends_it(root: Path) -> None:
    assert in_root(hooks(("false\ntouch /told",))[-1], root).returncode != 0
    assert not (root / "told").exists()
