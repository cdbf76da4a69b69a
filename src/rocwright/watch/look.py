"""Locks -> what upstream has that they have not: everything is asked at once, then judged lock by lock."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from rocbase.errors import FetchError
from rocwright.catalog.issue import Issue, the_issues
from rocwright.catalog.load import Catalog
from rocwright.config import store_of
from rocwright.home import Home
from rocwright.model.steps import FilePin
from rocwright.model.versions import step_between
from rocwright.resolve.aliases import catalog_for
from rocwright.resolve.choose import ROCM
from rocwright.resolve.difference import SHORT
from rocwright.resolve.model import Lock
from rocwright.resolve.settings import WatchSettings
from rocwright.sources.debian_control import upstream_version
from rocwright.sources.web import Standing
from rocwright.watch.admit import Admission, admit, admit_brought
from rocwright.watch.ask import Reply, ask_all
from rocwright.watch.candidates import NewerVersion, newer
from rocwright.watch.kept import keep
from rocwright.watch.memory import Memory
from rocwright.watch.model import Alarm, Caution, News, Silent, WatchReport
from rocwright.watch.needless import needless
from rocwright.watch.packages import changes, unseen
from rocwright.watch.packages import newer as newer_packages
from rocwright.watch.question import Image, ImageDay, PackageLists, PackageSet, Question, Refs, SourcePackage
from rocwright.watch.questions import Watched, watched
from rocwright.watch.standing import Has, standing
from rocwright.watch.upstream import Answer, Upstream

HEADS = "refs/heads/"


def watch(
    locks: Mapping[str, Lock],
    settings: WatchSettings,
    catalog: Catalog,
    home: Home,
    ask: Callable[[Question], Answer] | None = None,
    free: Collection[str] = (),
) -> WatchReport:
    """What upstream has now that these locks, by their label, have not.

    `ask` asks in Upstream's place, `free` are names that their requests pin although nobody asked for it.

    What does not answer is in the report, never raised. The report is kept (`watch.kept`).
    """
    store, kept = store_of(home), home.watch_memory
    eyes = UpdateChecker(
        settings=settings,
        catalog=catalog,
        issues=the_issues()[0],
        has=lambda pin: store.has(pin.sha256, pin.size),
        now=datetime.now(UTC),
        memory=Memory.load(kept),
        free=frozenset(free),
    )
    report, memory = eyes.look(locks, ask or Upstream(home, settings.seconds).ask)
    memory.save(kept)
    keep(report, locks, home, eyes.now.isoformat(timespec="seconds"))
    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateChecker:
    """What judging needs beside the locks and the answers; `free` are pins that nobody asked for."""

    settings: WatchSettings
    catalog: Catalog
    issues: Mapping[str, Issue]
    has: Has
    now: datetime
    memory: Memory
    free: frozenset[str] = frozenset()

    def look(
        self, locks: Mapping[str, Lock], ask: Callable[[Question], Answer]
    ) -> tuple[WatchReport, Memory]:
        """The report, and what to remember of this look."""
        begun = time.monotonic()
        things = {
            label: watched(lock, self.catalog, self.settings, self.now) for label, lock in locks.items()
        }
        by_question: dict[Question, list[tuple[Lock, Watched]]] = {}
        for label, some in things.items():
            for one in some:
                by_question.setdefault(one.question, []).append((locks[label], one))

        def follow(question: Question, answer: Answer) -> Iterator[Question]:
            for lock, one in by_question.get(question, ()):
                yield from self._days_of(lock, one, answer)

        answers = ask_all(by_question, ask, follow, self.memory.seconds)
        days = self.memory.days | _days(answers)
        judge = replace(self, memory=Memory(days=days))
        found: list[Alarm | Caution | News] = []
        for label, some in things.items():
            catalog = catalog_for(locks[label].request, self.catalog)
            for one in some:
                told = answers[one.question]
                found += standing(one, told, locks[label], label, self.has)
                if told.error is None:
                    found += judge._news(one, told.answer, locks[label], label, catalog)
        report = WatchReport(
            asked=len(answers),
            seconds=time.monotonic() - begun,
            alarms=tuple(dict.fromkeys(one for one in found if isinstance(one, Alarm))),
            cautions=tuple(dict.fromkeys(one for one in found if isinstance(one, Caution))),
            news=_once([one for one in found if isinstance(one, News)]),
            silent=tuple(_silent(answers, by_question)),
            unseen=tuple(dict.fromkeys(unseen(locks.values(), self.catalog))),
        )
        seconds = {str(question): told.seconds for question, told in answers.items()}
        return report, self.memory.and_more(seconds, days)

    def _days_of(self, lock: Lock, one: Watched, answer: Answer) -> Iterator[Question]:
        """What tells the day of what is new, where that is not known yet."""
        asks = [each.asks for group in self._newer(lock, one, answer) for each in group if each.day is None]
        if isinstance(one.question, Image) and isinstance(answer, str) and answer != one.commit:
            asks.append(ImageDay(one.question.reference, answer, one.question.architecture))
        yield from (each for each in asks if each is not None and str(each) not in self.memory.days)

    def _newer(self, lock: Lock, one: Watched, answer: Answer) -> list[tuple[NewerVersion, ...]]:
        python = lock.python.version if lock.python else ""
        groups = newer(one, answer, self.settings.take, python)
        if one.name in self.catalog.components or one.name == ROCM:
            return groups
        # of a package that nobody chose by name the newest is enough
        return [groups[-1]] if groups else []

    def _news(
        self, one: Watched, answer: Answer, lock: Lock, label: str, catalog: Catalog
    ) -> Iterator[News | Caution]:
        for group in self._newer(lock, one, answer):
            yield from self._of_group(one, group, lock, label, catalog)
        match one.question, answer:
            case Refs() as question, Mapping() as refs if one.branch:
                now = str(refs.get(HEADS + one.branch, ""))
                if not now:
                    what = f"the branch {one.branch} of {question.url} no longer exists"
                    yield Caution(lock=label, name=one.name, what=what, kept="unknown")
                elif now != one.commit:
                    new = f"{now[:SHORT]} ({one.branch})"
                    row = self._row(one, label, (one.commit or one.version)[:SHORT], new)
                    yield row.model_copy(update={"step": "commit", "pin": f"@{now}"})
            case Image() as image, str() as digest if one.rolls and one.commit and digest != one.commit:
                told = self.memory.days.get(str(ImageDay(image.reference, digest)), "")
                yield self._row(one, label, _digest(one.commit), _digest(digest), told)
            case PackageSet(), Sequence():
                pins = tuple(pin for pin in answer if isinstance(pin, FilePin))
                yield from self._packages(one, pins, lock, label, catalog)
            case PackageLists() as lists, Mapping() if one.root is not None:
                told = changes(lock, one.root, newer_packages(one.root.packages, answer))
                day = f"{lists.day}T00:00:00Z" if lists.day else ""
                row = self._row(one, label, f"{len(one.pins)} packages", told, day)
                held = f"the base uses the archive of {one.version}; a later snapshot has them" if day else ""
                if told:
                    yield row.model_copy(update={"step": "packages", "admitted": not held, "why": held})
            case SourcePackage(), str() as version if version != one.version:
                row = self._row(one, label, one.version, version)
                same = upstream_version(version) == upstream_version(one.version)
                why = "" if same else "another upstream release; the recipe has other sources for it"
                step = step_between(one.version, version)
                yield row.model_copy(update={"step": step, "admitted": same, "why": why})
            case _:
                pass

    def _row(self, one: Watched, label: str, has: str, new: str, day: str = "") -> News:
        """News without a version to choose: what is taken when the lock is made anew."""
        age = self._age(day)
        young = age is not None and age < self.settings.cool_down
        return News(
            lock=label,
            name=one.name,
            has=has,
            new=new,
            step="digest",
            released=day[:10],
            age=age,
            source=str(one.question),
            admitted=not young,
            why=self._too_young(age) if young else "",
        )

    def _of_group(
        self, one: Watched, group: Sequence[NewerVersion], lock: Lock, label: str, catalog: Catalog
    ) -> Iterator[News]:
        """The newest; where that is held back, the newest that is known, and the newest that is not held."""
        known = False
        for number, candidate in enumerate(group):
            news = self._one(one, candidate, lock, label, catalog)
            if number == 0 or news.admitted or (news.pin and not known):
                yield news
            known = known or bool(news.pin)
            if news.admitted:
                return

    def _one(self, one: Watched, candidate: NewerVersion, lock: Lock, label: str, catalog: Catalog) -> News:
        verdict = admit(lock, catalog, one.name, candidate.version, self.free)
        day = candidate.day.isoformat() if candidate.day else self.memory.days.get(str(candidate.asks), "")
        age = self._age(day)
        if verdict.admitted and age is not None and age < self.settings.cool_down:
            verdict = replace(verdict, admitted=False, why=self._too_young(age))
        return News(
            lock=label,
            name=one.name,
            has=one.version,
            new=candidate.version,
            step=step_between(one.version, candidate.version),
            released=day[:10],
            age=age,
            notes=_notes(lock, catalog, one.name, candidate.version),
            source=str(one.question),
            pin=verdict.pin,
            admitted=verdict.admitted,
            why=verdict.why,
            moves=verdict.moves,
            needless=needless(lock, catalog, self.issues, one.name, candidate.version),
        )

    def _packages(
        self, one: Watched, now: tuple[FilePin, ...], lock: Lock, label: str, catalog: Catalog
    ) -> Iterator[News]:
        assert one.root is not None
        if told := changes(lock, one.root, now):
            row = self._row(one, label, f"{len(one.pins)} packages", told)
            yield row.model_copy(update={"step": "packages"})
        for name, version in _brought(lock, catalog, now):
            verdict: Admission = admit_brought(lock, catalog, name, version)
            row = self._row(one, label, lock.provided[name], version)
            yield row.model_copy(
                update={
                    "name": name,
                    "step": step_between(lock.provided[name], version),
                    "admitted": verdict.admitted,
                    "why": verdict.why,
                    "moves": verdict.moves,
                }
            )

    def _age(self, day: str) -> int | None:
        return max((self.now - datetime.fromisoformat(day)).days, 0) if day else None

    def _too_young(self, age: int | None) -> str:
        return f"cool-down: {age} of {self.settings.cool_down} days"


def _brought(lock: Lock, catalog: Catalog, now: Sequence[FilePin]) -> Iterator[tuple[str, str]]:
    """What the base brings along in another version than the lock has."""
    base, release = catalog.base(lock.request.base)
    versions = {
        pin.origin.package: upstream_version(pin.origin.version) for pin in now if pin.origin.kind == "debian"
    }
    for name, one in base.provided(release).items():
        had, version = lock.provided.get(name), versions.get(one.package, "")
        if had is not None and version and version != had:
            yield name, version


def _notes(lock: Lock, catalog: Catalog, name: str, version: str) -> str:
    pattern = ""
    if name == ROCM and lock.rocm is not None:
        pattern = catalog.provider(lock.rocm.name).notes
    elif name in catalog.components:
        pattern = catalog.components[name].notes
    return pattern.replace("{version}", version)


def _days(answers: Mapping[Question, Reply]) -> dict[str, str]:
    found: dict[str, str] = {}
    for question, told in answers.items():
        match told.answer:
            case datetime() as day:
                found[str(question)] = day.astimezone(UTC).isoformat()
            case Standing(modified=datetime() as day):
                found[str(question)] = day.astimezone(UTC).isoformat()
            case _:
                pass
    return found


def _digest(text: str) -> str:
    return text[: len("sha256:") + SHORT]


def _once(news: Sequence[News]) -> tuple[News, ...]:
    """Each piece of news once: several places of one release, several roots of one image, tell the same."""
    found: dict[tuple[str, str, str], News] = {}
    for one in news:
        key = one.lock, one.name, one.new
        before = found.get(key)
        if before is None or (before.age is None and one.age is not None):
            found[key] = one
    return tuple(found.values())


def _silent(
    answers: Mapping[Question, Reply], asked: Mapping[Question, Sequence[tuple[Lock, Watched]]]
) -> Iterator[Silent]:
    """Sources that did not answer; a day that nobody tells is no loss."""
    for question, told in answers.items():
        error = told.error
        if error is None or isinstance(error, FetchError) or question not in asked:
            continue
        yield Silent(
            source=str(question),
            names=tuple(dict.fromkeys(one.name for _, one in asked[question])),
            failure=error.failure.value,
            what=error.message,
            cause=error.cause,
        )
