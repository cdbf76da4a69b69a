"""The commit within a range that made the difference, by git's own bisection."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from rocbase.errors import FetchError, NetworkError
from rocbase.processes import run as process
from rocwright.follow.bisection.model import Suspect
from rocwright.follow.bisection.search import TrialAnswer
from rocwright.sources.bases.roots import remove_tree
from rocwright.sources.git import APART, check_address, environment
from rocwright.sources.patching.history import plain

CLONE_SECONDS = 3600
"""How long the history of a repository may take to come."""

_WORDS = {TrialAnswer.GOOD: "good", TrialAnswer.BAD: "bad", TrialAnswer.SKIP: "skip"}
_TESTING = "BISECT_HEAD"


class History:
    """The commits of a repository, without its files, in a folder of its own."""

    def __init__(self, url: str, folder: Path) -> None:
        """Fetch them. Raises NetworkError, InputError for what cannot be an address."""
        check_address(url)
        self.url, self.folder = url, folder
        remove_tree(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        words = [
            *APART,
            "clone",
            "--quiet",
            "--bare",
            "--template=",
            "--filter=tree:0",
            "--",
            url,
            str(folder.absolute()),
        ]
        completed = process.run(words, env=environment(), timeout=CLONE_SECONDS)
        if not completed.ok:
            raise NetworkError(
                f"the history of {url} cannot be fetched",
                cause="no answer in time" if completed.timed_out else _last(completed.stderr),
                next_step="check the network; the same command continues from there",
            )

    def remove(self) -> None:
        remove_tree(self.folder)

    def first_bad(self, good: str, bad: str, ask: Callable[[str], TrialAnswer]) -> tuple[Suspect, ...]:
        """The first bad commit after `good`, up to `bad`; several where those between could not be tried.

        Raises FetchError where the repository lacks one of the two.
        """
        for commit in (good, bad):
            if not self._git("cat-file", "-e", f"{commit}^{{commit}}").ok:
                raise FetchError(
                    f"{self.url} has no commit {commit[:12]}",
                    cause="its branch was rewritten, or it was never pushed there",
                    next_step="look for the commit in the project's other repositories, and correct the lock",
                )
        self._git("bisect", "reset")
        output = self._do("bisect", "start", "--no-checkout", bad, good)
        while not (suspects := _suspects(output)):
            commit = self._git("rev-parse", "--verify", "--quiet", _TESTING).stdout.strip()
            if not commit:
                break
            output = self._do("bisect", _WORDS[ask(commit)], commit)
        return tuple(map(self.suspect_of, suspects))

    def suspect_of(self, commit: str) -> Suspect:
        """A commit's title and date."""
        text = self._git("show", "--no-patch", "--format=%H%n%aI%n%s", commit).stdout
        name, date, title = [plain(line) for line in [*text.splitlines(), "", "", ""][:3]]
        return Suspect(commit=name or commit, title=title, date=date)

    def _do(self, *words: str) -> str:
        completed = self._git(*words)
        # git ends with 2 where only skipped commits are left, and says which
        if not completed.ok and not _suspects(completed.stdout):
            raise FetchError(
                f"git cannot bisect {self.url}",
                cause=_last(completed.stderr or completed.stdout),
                next_step="run it again; if it fails again, report it with the log of this run",
            )
        return completed.stdout

    def _git(self, *words: str) -> process.Finished:
        return process.run(["git", "-C", self.folder, *words], env=environment(), timeout=CLONE_SECONDS)


def _suspects(output: str) -> tuple[str, ...]:
    """The commits that git names at the end of a bisection; none while it goes on."""
    first = re.search(r"^([0-9a-f]{40,64}) is the first (?:bad|'bad') commit", output, re.MULTILINE)
    if first:
        return (first[1],)
    _, heading, commits = output.partition("The first bad commit could be any of:")
    return tuple(re.findall(r"^([0-9a-f]{40,64})$", commits, re.MULTILINE)) if heading else ()


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
