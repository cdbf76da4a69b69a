"""From a good lock and a bad one to what made the difference."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ValidationError

from rocbase.errors import ExplainedError, FetchError, InputError, NetworkError
from rocbase.files.atomic import sha256_bytes, write_atomic
from rocbase.folders.temporary import temporary_folder
from rocbase.model import Frozen, canonical_json
from rocbase.processes import run as process
from rocwright.follow.bisection.model import BisectionReport, Failure, Narrowed, Suspect, Try
from rocwright.follow.bisection.pins import Pin, mix, parts, pins
from rocwright.follow.bisection.search import TrialAnswer, smallest
from rocwright.follow.bisection.trial import VERIFY, LockTrials
from rocwright.model.steps import FilePin, GitOrigin
from rocwright.plan.resolve.model import Lock, LockedComponent
from rocwright.sources.bases.roots import remove_tree
from rocwright.sources.git import APART, check_address, environment, pack_commit
from rocwright.sources.patching.history import plain

# What the trail calls the two ends.
GOOD, BAD = ("the good lock",), ("the bad lock",)


def bisect(good: Lock, bad: Lock, trials: LockTrials, *, narrow: bool = True) -> BisectionReport:
    """Which of the changes from `good` to `bad` fail together; with `narrow`, which packages and commits.

    Raises InputError where the bad lock does not fail or the good one does, ConflictError, and whatever may
    be the machine's fault: the same search goes on where it was.
    """
    return _Search(good, bad, trials).run(narrow)


class _Search:
    def __init__(self, good: Lock, bad: Lock, trials: LockTrials) -> None:
        self.good, self.bad, self.trials = good, bad, trials
        name = sha256_bytes(canonical_json([good.model_dump(mode="json"), bad.model_dump(mode="json")]))
        self.folder = trials.project.home.bisects / name[:16]
        self.trail = Trail(self.folder / "trail.json")
        self.known: dict[str, Try] = {}
        self.tries: list[Try] = []

    def run(self, narrow: bool) -> BisectionReport:
        changes = pins(self.good, self.bad)
        if not changes:
            raise InputError(
                "the two locks are the same",
                cause="both pin the same versions, so there is no change to search",
                next_step="name the lock that failed, and an earlier one",
            )
        failure = self._failure()
        relevant = tuple(change for change in changes if self._matters(change, changes, failure))
        culprits = self._smallest(relevant, failure)
        report = BisectionReport(
            failure=failure,
            changes=changes,
            irrelevant=tuple(change for change in changes if change not in relevant),
            culprits=culprits,
            parts=self._parts(culprits, failure) if narrow else (),
            commits=self._commits(culprits, failure) if narrow else (),
        ).model_copy(update={"tries": tuple(self.tries)})
        self.trail.forget()
        return report

    def _failure(self) -> Failure:
        """What the bad lock fails with, and that the good one does not."""
        self.trials.say("bisect: the bad lock")
        failure = self.trials.run(self.bad).failure
        if failure is None:
            raise InputError(
                "the bad lock does not fail",
                cause="it was built and checked here without a failure",
                next_step="name another lock, or compare rocwright doctor here and on the machine "
                "where it failed",
            )
        self.trials.say(f"bisect: the bad lock fails at {failure.step}: {failure.what}")
        first = self._try(GOOD, self.good, failure)
        if first.answer is not TrialAnswer.GOOD:
            raise InputError(
                "the good lock fails too"
                if first.answer is TrialAnswer.BAD
                else "the good lock cannot be built",
                cause=first.says,
                next_step="name an earlier good lock, or check the machine (rocwright doctor) and "
                "the catalog",
            )
        return failure

    def _matters(self, change: Pin, changes: Sequence[Pin], failure: Failure) -> bool:
        """Whether a change reaches the failing step at all: its key tells without a build."""
        if failure.step.startswith(VERIFY):
            return True
        remaining = [pin for pin in changes if pin != change]
        alone = mix(self.good, self.bad, [change])
        without = mix(self.good, self.bad, remaining)
        for lock, end in ((alone, self.good), (without, self.bad)):
            key = self.trials.key(lock, failure.step)
            if not key or key != self.trials.key(end, failure.step):
                return True
        return False

    def _smallest(
        self, changes: Sequence[Pin], failure: Failure, also: Sequence[Pin] = ()
    ) -> tuple[tuple[Pin, ...], ...]:
        """The smallest set of changes that fails, where those of `also` are made too."""

        def ask(chosen: frozenset[int]) -> TrialAnswer:
            chosen_pins = [*also, *(changes[number] for number in sorted(chosen))]
            labels = tuple(pin.label for pin in chosen_pins)
            return self._try(labels, mix(self.good, self.bad, chosen_pins), failure).answer

        search = smallest(len(changes), ask)
        return tuple(tuple(changes[number] for number in sorted(block)) for block in search.blocks)

    def _try(self, changes: tuple[str, ...], lock: Lock, failure: Failure) -> Try:
        """The answer for a lock: from an earlier try of the same key, the trail, or by building."""
        key = "" if failure.step.startswith(VERIFY) else self.trials.key(lock, failure.step)
        if key in self.known and key:
            return self.known[key]
        answer = self.trail.answer(changes, lambda: self._build(changes, lock, failure))
        if key:
            self.known[key] = answer
        self.tries.append(answer)
        return answer

    def _build(self, changes: tuple[str, ...], lock: Lock, failure: Failure) -> Try:
        self.trials.say(f"bisect: try {len(self.tries) + 1}: {'; '.join(changes) or 'no change'}")
        trial = self.trials.judge(lock, failure, changes)
        self.trials.say(f"bisect: {trial.answer.value}" + (f" ({trial.says})" if trial.says else ""))
        return trial

    def _parts(self, culprits: Sequence[Sequence[Pin]], failure: Failure) -> tuple[tuple[Pin, ...], ...]:
        """Which packages, where a culprit is a group of them."""
        culprit_pins = [pin for block in culprits for pin in block]
        smaller: list[tuple[Pin, ...]] = []
        for group in culprit_pins:
            pieces = parts(group)
            if group.part in ("package", "python") and len(pieces) > 1:
                remaining = [pin for pin in culprit_pins if pin != group]
                smaller += self._smallest(pieces, failure, remaining)
        return tuple(smaller)

    def _commits(self, culprits: Sequence[Sequence[Pin]], failure: Failure) -> tuple[Narrowed, ...]:
        culprit_pins = [pin for block in culprits for pin in block]
        # with what is asked for of the component too: the catalog may know its version by that alone
        around = mix(self.good, self.bad, culprit_pins)
        return tuple(
            self._commit(pin.name, around, failure) for pin in culprit_pins if pin.part == "component"
        )

    def _commit(self, name: str, around: Lock, failure: Failure) -> Narrowed:
        """The first commit of a component that fails, with everything else as `around` has it."""
        old, new = (_component(lock, name) for lock in (self.good, self.bad))
        ends = [_git_source(component) for component in (old, new)]
        if new is None or any(end is None for end in ends):
            return Narrowed(
                component=name, why_not="in one of the two locks it does not come from a git repository"
            )
        old_source, new_source = ends
        assert old_source is not None and new_source is not None
        if old_source.url != new_source.url:
            return Narrowed(component=name, why_not="the two locks name different repositories")
        narrowed = Narrowed(component=name, url=new_source.url, good=old_source.commit, bad=new_source.commit)
        try:
            history = History(new_source.url, self.folder / f"{name}.git")
        except NetworkError as error:
            return narrowed.model_copy(update={"why_not": f"{error.message}: {error.cause}"})
        try:

            def ask(commit: str) -> TrialAnswer:
                self.trials.say(f"bisect: {name} at {commit[:12]} {history.suspect_of(commit).title}")
                try:
                    component = self._component_at(new, new_source, commit)
                except ExplainedError:
                    return TrialAnswer.SKIP
                return self._try((*GOOD, f"{name}@{commit}"), _with(around, component), failure).answer

            suspects = history.first_bad(old_source.commit, new_source.commit, ask)
            return narrowed.model_copy(update={"suspects": suspects})
        except ExplainedError as error:
            if isinstance(error, InputError):
                raise
            return narrowed.model_copy(update={"why_not": f"{error.message}: {error.cause}"})
        finally:
            history.remove()

    def _component_at(self, locked: LockedComponent, origin: GitOrigin, commit: str) -> LockedComponent:
        """A component at another commit; its tree is fetched and kept in the store."""
        with temporary_folder("bisect") as folder:
            pin = pack_commit(origin.model_copy(update={"commit": commit}), Path(folder))
            self.trials.project.store.put_file(Path(folder) / pin.filename)
        place = f"git {origin.url} {commit[:12]}"
        return locked.model_copy(update={"commit": commit, "files": (pin,), "place": place})


def _with(lock: Lock, component: LockedComponent) -> Lock:
    """The lock with this component in the place of the one of its name, or beside the others."""
    names = [component.name for component in lock.components]
    components = tuple(component if entry.name == component.name else entry for entry in lock.components)
    added = () if component.name in names else (component,)
    return lock.model_copy(update={"components": (*components, *added)})


def _component(lock: Lock, name: str) -> LockedComponent | None:
    return next((component for component in lock.components if component.name == name), None)


def _git_source(locked: LockedComponent | None) -> GitOrigin | None:
    files: Sequence[FilePin] = locked.files if locked is not None else ()
    return next((pin.origin for pin in files if isinstance(pin.origin, GitOrigin)), None)


class _SavedTries(Frozen):
    tries: tuple[Try, ...] = ()


class Trail:
    """Answers by the changes that were tried; each is on disk before the next is looked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[tuple[str, ...], Try] = {}
        with contextlib.suppress(OSError, ValidationError):
            saved = _SavedTries.model_validate_json(path.read_bytes())
            self._known = {trial.changes: trial for trial in saved.tries}

    @property
    def tries(self) -> tuple[Try, ...]:
        return tuple(self._known.values())

    def answer(self, changes: tuple[str, ...], make: Callable[[], Try]) -> Try:
        """The answer for these changes, kept from before or made now."""
        if changes not in self._known:
            self._known[changes] = make()
            write_atomic(self.path, _SavedTries(tries=self.tries).model_dump_json(indent=1) + "\n")
        return self._known[changes]

    def forget(self) -> None:
        """Remove it: the search has ended."""
        self.path.unlink(missing_ok=True)


# How long the history of a repository may take to come.
CLONE_SECONDS = 3600

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
