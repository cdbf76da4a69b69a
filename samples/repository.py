"""Git repositories made by hand."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

# no lock or recipe may name a folder of this machine by itself
os.environ.setdefault("GIT_ALLOW_PROTOCOL", "file")


@dataclass
class Repository:
    """A git repository with one file; `commit` adds to its history."""

    path: Path

    @property
    def url(self) -> str:
        return str(self.path)

    def git(self, *words: str) -> str:
        who = [f"GIT_{role}_{what}=test" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")]
        done = subprocess.run(
            ["git", "-C", self.path, *words],
            env=os.environ | dict(one.split("=") for one in who),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, name: str, text: str) -> str:
        (self.path / name).write_text(text)
        self.git("add", name)
        self.git("commit", "--quiet", "-m", name)
        return self.git("rev-parse", "HEAD")


def make_repository(path: Path) -> Repository:
    """A repository with one commit."""
    path.mkdir()
    made = Repository(path)
    made.git("init", "--quiet", "--initial-branch=main")
    made.commit("file", "one\n")
    return made
