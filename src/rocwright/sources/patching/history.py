"""What a user made in a step's tree: commits on top of the build's, as git in a sandbox tells them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rocbase.errors import InputError, PatchError
from rocbase.units import printable
from rocwright.model.step_environment import EPOCH
from rocwright.sandbox.untrusted import Untrusted
from rocwright.sources.patching.commits import AUTHOR, EMAIL
from rocwright.sources.patching.repository import BASE

# Nothing of the machine or its user is in a commit: no name, no time, no setting.
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

MOST_COMMITS = 1000
# Bytes of a commit's diff that are read.
MOST_DIFF = 16 * 1024**2
LONGEST_SUBJECT = 200

_DIFF = "git diff --no-renames --no-color --no-ext-diff --no-textconv --src-prefix=a/ --dst-prefix=b/"
# Writes what the user made to a folder; its words are that folder, the commit below the user's, and the
# message for what is not committed ("": it stays so).
SCRIPT = f"""set -u
out=$1 base=$2 message=$3
# 64 MiB a file
ulimit -f 131072
git diff --name-only -z HEAD > "$out/uncommitted" || exit
if [ -n "$message" ] && [ -s "$out/uncommitted" ]; then
    git add --update && git commit --quiet --no-verify --message "$message" || exit
    git diff --name-only -z HEAD > "$out/uncommitted" || exit
fi
git rev-parse --verify HEAD > "$out/head" || exit
git merge-base --is-ancestor "$base" HEAD || exit 0
: > "$out/stands"
git rev-list --merges "$base..HEAD" > "$out/merges" || exit
git rev-list --reverse "$base..HEAD" > "$out/commits" || exit
[ -s "$out/merges" ] && exit 0
number=0
while read -r commit; do
    git log -1 --format=%s "$commit" > "$out/$number.subject" || exit
    {_DIFF} "$commit~1" "$commit" > "$out/$number.diff" || exit
    number=$((number + 1))
    [ "$number" -lt {MOST_COMMITS} ] || exit 0
done < "$out/commits"
"""

_SUBJECT = re.compile(
    r"\t(?:commit|cherry-pick|revert|am|rebase \((?:pick|reword|edit|squash|fixup)\))[^:]*: (.*)$"
)


@dataclass(frozen=True, slots=True)
class UserCommit:
    """A commit of the user's: its subject and what it changes, as a unified diff."""

    subject: str
    diff: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The user's commits, the oldest first, the last one's id, and files changed without a commit."""

    head: str
    commits: tuple[UserCommit, ...]
    uncommitted: tuple[str, ...]


def read_changes(output: Untrusted) -> Changes:
    """What SCRIPT wrote, read as anything that a sandbox leaves.

    Raises PatchError where the commits do not stand on the build's, are too many, or are no text.
    """
    head = output.read_text("head", 100).strip()
    names = {entry.name for entry in output.walk(10 * MOST_COMMITS)}
    if not re.fullmatch(r"[0-9a-f]{40}", head):
        raise InputError(
            "the repository in the tree has no commit",
            cause="its HEAD does not point to a commit",
            next_step="run git status in rocwright shell STEP and repair the repository",
        )
    if "stands" not in names:
        raise PatchError(
            "the commits in the tree are not based on the commits of the build",
            cause="the history was rewritten below the commits that the build made",
            next_step=f"rebase your commits onto it: git rebase --onto {BASE}",
        )
    if output.read_bytes("merges"):
        raise PatchError(
            "the commits in the tree include a merge",
            cause="merges cannot be saved as a series of patches",
            next_step=f"make the history linear: git rebase {BASE}",
        )
    commits = output.read_text("commits").split()
    if len(commits) > MOST_COMMITS:
        raise PatchError(
            f"the tree has {len(commits)} commits on top of the build's",
            cause=f"at most {MOST_COMMITS} can be saved at once",
            next_step=f"squash some of them: git rebase --interactive {BASE}",
        )
    changes = [_change(output, number) for number in range(len(commits))]
    uncommitted = output.read_bytes("uncommitted").decode(errors="surrogateescape").split("\0")
    return Changes(head=head, commits=tuple(changes), uncommitted=tuple(filter(None, uncommitted)))


def _change(output: Untrusted, number: int) -> UserCommit:
    subject = plain(output.read_text(f"{number}.subject").strip())
    try:
        return UserCommit(subject, output.read_bytes(f"{number}.diff", MOST_DIFF).decode())
    except UnicodeDecodeError as error:
        raise PatchError(
            f"{subject} is not a unified diff that can be applied",
            cause=f"byte {error.start} of it is not UTF-8 text",
            next_step="give the change as a command of the recipe's `prepare`, which sees bytes",
            subject=subject,
        ) from error


def subjects_since(reflog: str, base: str) -> Iterator[str]:
    """The subjects of commits that came on top of `base`, by git's own log of where HEAD was."""
    subjects: list[str] = []
    for line in reflog.splitlines():
        words = line.split(" ", 2)
        if len(words) > 1 and words[1] == base:
            subjects = []
        elif match := _SUBJECT.search(line):
            subjects.append(plain(match[1]))
    yield from dict.fromkeys(subjects)


def plain(text: str) -> str:
    """A line of the user's or of a hostile step's, with nothing in it that a terminal would obey."""
    return printable(text[:LONGEST_SUBJECT])
