"""A step's tree as a git work tree: what the build did to the source as commits, and the user's on top."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rocwright import process
from rocwright.errors import InputError, PatchError
from rocwright.files import write_atomic
from rocwright.patching.commits import AUTHOR, EMAIL
from rocwright.plan.environment import EPOCH

BASE = "refs/rocwright/base"
"""The last commit that the build made, or that was saved: what is on top of it is the user's."""

OPENED = "rocwright-opened.json"
"""In the repository's folder: what a failed build left in the tree before the user came."""

ENVIRONMENT = {
    "GIT_AUTHOR_NAME": AUTHOR,
    "GIT_AUTHOR_EMAIL": EMAIL,
    "GIT_COMMITTER_NAME": AUTHOR,
    "GIT_COMMITTER_EMAIL": EMAIL,
    "GIT_AUTHOR_DATE": f"{EPOCH} +0000",
    "GIT_COMMITTER_DATE": f"{EPOCH} +0000",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    # the files belong to the user of the sandbox
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C.UTF-8",
}
"""Nothing of the machine or its user is in a commit: no name, no time, no setting."""

ATTRIBUTES = "* -text -eol -ident -filter -working-tree-encoding -export-subst\n"
"""Stands over a tree's own .gitattributes: bytes are kept as they are."""


@dataclass(frozen=True, slots=True)
class Change:
    """A commit of the user's: its subject and what it changes, as a unified diff."""

    subject: str
    diff: str


class History:
    """The repository in `tree`/.git."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self.folder = tree / ".git"

    @property
    def exists(self) -> bool:
        return self.folder.is_dir()

    def create(self) -> None:
        """An empty repository, with no settings of this machine."""
        self._git("init", "--quiet", "--initial-branch=main", "--object-format=sha1", "--template=")
        (self.folder / "info").mkdir(exist_ok=True)
        write_atomic(self.folder / "info" / "attributes", ATTRIBUTES)
        for setting in ("core.autocrlf false", "core.fileMode true", "core.symlinks true", "gc.auto 0"):
            self._git("config", *setting.split())

    def commit(self, message: str, content: Path | None = None) -> str:
        """Commit everything in the folder `content` (else in the tree); gives the commit's id."""
        where = content or self.tree
        # trees are unpacked with one time for all files: what git remembers of the last one says nothing
        (self.folder / "index").unlink(missing_ok=True)
        self._git("--work-tree", str(where), "add", "--all", "--force", ".", cwd=where)
        self._git("commit", "--quiet", "--no-verify", "--allow-empty", "--message", message)
        return self._git("rev-parse", "HEAD").strip()

    def mark(self) -> None:
        """What is committed is the build's, or saved."""
        self._git("update-ref", BASE, "HEAD")

    def forget_times(self) -> None:
        """Let git look at every file anew, as another folder than the tree was committed."""
        self._git("read-tree", "HEAD")

    def log(self) -> list[tuple[str, str]]:
        """Commit ids and subjects, the oldest first."""
        rows = self._git("log", "--reverse", "--format=%H %s").splitlines()
        return [(row.partition(" ")[0], row.partition(" ")[2]) for row in rows]

    def uncommitted(self) -> list[str]:
        """Files that are changed but not committed, new ones that were not added left out."""
        return self._git("diff", "--name-only", "HEAD").splitlines()

    def remember(self) -> None:
        """Note what the tree holds beyond its commits: what comes on top of that is the user's."""
        write_atomic(self.folder / OPENED, json.dumps(self._beyond()))

    def unsaved(self) -> list[str]:
        """What the user made since `remember` and nobody saved: commits by subject, files by name."""
        try:
            before = json.loads((self.folder / OPENED).read_bytes())
        except (OSError, ValueError):
            return []
        commits = self._git("log", "--reverse", "--format=%s", f"{BASE}..HEAD").splitlines()
        return [*commits, *(name for name, state in self._beyond().items() if before.get(name) != state)]

    def _beyond(self) -> dict[str, list[int]]:
        """Files that are not as the last commit has them, or that it has not: their size and time."""
        listed = self._git("diff", "--name-only", "-z", "HEAD") + self._git("ls-files", "--others", "-z")
        return {name: self._state(name) for name in sorted(filter(None, listed.split("\0")))}

    def _state(self, name: str) -> list[int]:
        try:
            found = (self.tree / name).lstat()
        except OSError:
            return []
        return [found.st_size, found.st_mtime_ns]

    def commit_changes(self, message: str) -> None:
        """Commit what is changed in files that git knows, and new files that were added."""
        self._git("add", "--update")
        self._git("commit", "--quiet", "--no-verify", "--message", message)

    def changes(self) -> list[Change]:
        """The user's commits, the oldest first. Raises PatchError where they do not stand on the build's."""
        if not self._ok("merge-base", "--is-ancestor", BASE, "HEAD"):
            raise PatchError(
                "the commits in the tree do not stand on those of the build",
                cause="the history was rewritten below what the build made",
                next_step="put your commits on top of it: git rebase --onto refs/rocwright/base",
            )
        if self._git("rev-list", "--merges", f"{BASE}..HEAD"):
            raise PatchError(
                "the commits in the tree hold a merge",
                cause="a series of patches has no branches",
                next_step="make it one line: git rebase refs/rocwright/base",
            )
        commits = self._git("rev-list", "--reverse", f"{BASE}..HEAD").split()
        return [
            Change(
                self._git("log", "-1", "--format=%s", commit).strip(),
                self._git("diff", "--no-renames", "--no-color", "--no-ext-diff", f"{commit}~1", commit),
            )
            for commit in commits
        ]

    def _git(self, *words: str, cwd: Path | None = None) -> str:
        done = self._run(words, cwd)
        if not done.ok:
            raise InputError(
                f"git {words[0]} failed in {self.tree}",
                cause=(done.stderr.strip().splitlines() or ["no message"])[-1],
                next_step="look at the tree with git status",
            )
        return done.stdout

    def _ok(self, *words: str) -> bool:
        return self._run(words, None).ok

    def _run(self, words: Sequence[str], cwd: Path | None) -> process.Finished:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        place = {"GIT_DIR": str(self.folder)} | ({} if cwd else {"GIT_WORK_TREE": str(self.tree)})
        return process.run(["git", *words], cwd=cwd or self.tree, env=kept | ENVIRONMENT | place)
