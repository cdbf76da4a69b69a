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
from rocwright.follow.watch.admit import Admission, admit, admit_brought
from rocwright.follow.watch.ask import Reply, ask_all
from rocwright.follow.watch.candidates import NewerVersion, newer
from rocwright.follow.watch.kept import keep
from rocwright.follow.watch.memory import Memory
from rocwright.follow.watch.model import Alarm, Caution, News, Silent, WatchReport
from rocwright.follow.watch.needless import needless
from rocwright.follow.watch.packages import changes, unseen
from rocwright.follow.watch.packages import newer as newer_packages
from rocwright.follow.watch.question import (
    Image,
    ImageDay,
    PackageLists,
    PackageSet,
    Question,
    Refs,
    SourcePackage,
)
from rocwright.follow.watch.questions import Watched, unasked, watched
from rocwright.follow.watch.standing import Has, standing
from rocwright.follow.watch.upstream import Answer, Upstream
from rocwright.home import Home
from rocwright.model.steps import FilePin
from rocwright.model.versions import step_between
from rocwright.plan.resolve.aliases import catalog_for
from rocwright.plan.resolve.choose import ROCM
from rocwright.plan.resolve.difference import SHORT
from rocwright.plan.resolve.model import Lock
from rocwright.plan.resolve.settings import WatchSettings
from rocwright.sources.debian_control import upstream_version
from rocwright.sources.web import Standing

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
    store, memory_path = store_of(home), home.watch_memory
    eyes = UpdateChecker(
        settings=settings,
        catalog=catalog,
        issues=the_issues()[0],
        has=lambda pin: store.has(pin.sha256, pin.size),
        now=datetime.now(UTC),
        memory=Memory.load(memory_path),
        free=frozenset(free),
    )
    report, memory = eyes.look(locks, ask or Upstream(home, settings.seconds).ask)
    memory.save(memory_path)
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
        start = time.monotonic()
        things = {
            label: watched(lock, self.catalog, self.settings, self.now) for label, lock in locks.items()
        }
        by_question: dict[Question, list[tuple[Lock, Watched]]] = {}
        for label, some in things.items():
            for subject in some:
                by_question.setdefault(subject.question, []).append((locks[label], subject))

        def follow(question: Question, answer: Answer) -> Iterator[Question]:
            for lock, subject in by_question.get(question, ()):
                yield from self._days_of(lock, subject, answer)

        answers = ask_all(by_question, ask, follow, self.memory.seconds)
        days = self.memory.days | _days(answers)
        judge = replace(self, memory=Memory(days=days))
        findings: list[Alarm | Caution | News] = []
        for label, some in things.items():
            catalog = catalog_for(locks[label].request, self.catalog)
            for subject in some:
                reply = answers[subject.question]
                findings += standing(subject, reply, locks[label], label, self.has)
                if reply.error is None:
                    findings += judge._news(subject, reply.answer, locks[label], label, catalog)
        report = WatchReport(
            asked=len(answers),
            seconds=time.monotonic() - start,
            alarms=tuple(dict.fromkeys(finding for finding in findings if isinstance(finding, Alarm))),
            cautions=tuple(dict.fromkeys(finding for finding in findings if isinstance(finding, Caution))),
            news=_once([finding for finding in findings if isinstance(finding, News)]),
            silent=tuple(_silent(answers, by_question)),
            unseen=tuple(dict.fromkeys(unseen(locks.values(), self.catalog))),
            unasked=tuple(
                dict.fromkeys(name for label, some in things.items() for name in unasked(locks[label], some))
            ),
        )
        seconds = {str(question): reply.seconds for question, reply in answers.items()}
        return report, self.memory.and_more(seconds, days)

    def _days_of(self, lock: Lock, subject: Watched, answer: Answer) -> Iterator[Question]:
        """What tells the day of what is new, where that is not known yet."""
        asks = [
            candidate.asks
            for group in self._newer(lock, subject, answer)
            for candidate in group
            if candidate.day is None
        ]
        if isinstance(subject.question, Image) and isinstance(answer, str) and answer != subject.commit:
            asks.append(ImageDay(subject.question.reference, answer, subject.question.architecture))
        yield from (
            question for question in asks if question is not None and str(question) not in self.memory.days
        )

    def _newer(self, lock: Lock, subject: Watched, answer: Answer) -> list[tuple[NewerVersion, ...]]:
        python = lock.python.version if lock.python else ""
        groups = newer(subject, answer, self.settings.take, python)
        if subject.name in self.catalog.components or subject.name == ROCM:
            return groups
        # of a package that nobody chose by name the newest is enough
        return [groups[-1]] if groups else []

    def _news(
        self, subject: Watched, answer: Answer, lock: Lock, label: str, catalog: Catalog
    ) -> Iterator[News | Caution]:
        for group in self._newer(lock, subject, answer):
            yield from self._of_group(subject, group, lock, label, catalog)
        match subject.question, answer:
            case Refs() as question, Mapping() as refs if subject.branch:
                head = str(refs.get(HEADS + subject.branch, ""))
                if not head:
                    summary = f"the branch {subject.branch} of {question.url} no longer exists"
                    yield Caution(lock=label, name=subject.name, what=summary, kept="unknown")
                elif head != subject.commit:
                    new = f"{head[:SHORT]} ({subject.branch})"
                    row = self._row(subject, label, (subject.commit or subject.version)[:SHORT], new)
                    yield row.model_copy(update={"step": "commit", "pin": f"@{head}"})
            case Image() as image, str() as digest if (
                subject.rolls and subject.commit and digest != subject.commit
            ):
                detail = self.memory.days.get(str(ImageDay(image.reference, digest)), "")
                yield self._row(subject, label, _digest(subject.commit), _digest(digest), detail)
            case PackageSet(), Sequence():
                pins = tuple(pin for pin in answer if isinstance(pin, FilePin))
                yield from self._packages(subject, pins, lock, label, catalog)
            case PackageLists() as lists, Mapping() if subject.root is not None:
                detail = changes(lock, subject.root, newer_packages(subject.root.packages, answer))
                day = f"{lists.day}T00:00:00Z" if lists.day else ""
                row = self._row(subject, label, f"{len(subject.pins)} packages", detail, day)
                hold_reason = (
                    f"the base uses the archive of {subject.version}; a later snapshot has them"
                    if day
                    else ""
                )
                if detail:
                    yield row.model_copy(
                        update={"step": "packages", "admitted": not hold_reason, "why": hold_reason}
                    )
            case SourcePackage(), str() as version if version != subject.version:
                row = self._row(subject, label, subject.version, version)
                same_upstream = upstream_version(version) == upstream_version(subject.version)
                reason = (
                    "" if same_upstream else "another upstream release; the recipe has other sources for it"
                )
                step = step_between(subject.version, version)
                yield row.model_copy(update={"step": step, "admitted": same_upstream, "why": reason})
            case _:
                pass

    def _row(self, subject: Watched, label: str, has: str, new: str, day: str = "") -> News:
        """News without a version to choose: what is taken when the lock is made anew."""
        age = self._age(day)
        young = age is not None and age < self.settings.cool_down
        return News(
            lock=label,
            name=subject.name,
            has=has,
            new=new,
            step="digest",
            released=day[:10],
            age=age,
            source=str(subject.question),
            admitted=not young,
            why=self._too_young(age) if young else "",
        )

    def _of_group(
        self, subject: Watched, group: Sequence[NewerVersion], lock: Lock, label: str, catalog: Catalog
    ) -> Iterator[News]:
        """The newest; where that is held back, the newest that is known, and the newest that is not held."""
        pinned = False
        for number, candidate in enumerate(group):
            news = self._news_of(subject, candidate, lock, label, catalog)
            if number == 0 or news.admitted or (news.pin and not pinned):
                yield news
            pinned = pinned or bool(news.pin)
            if news.admitted:
                return

    def _news_of(
        self, subject: Watched, candidate: NewerVersion, lock: Lock, label: str, catalog: Catalog
    ) -> News:
        verdict = admit(lock, catalog, subject.name, candidate.version, self.free)
        day = candidate.day.isoformat() if candidate.day else self.memory.days.get(str(candidate.asks), "")
        age = self._age(day)
        if verdict.admitted and age is not None and age < self.settings.cool_down:
            verdict = replace(verdict, admitted=False, why=self._too_young(age))
        return News(
            lock=label,
            name=subject.name,
            has=subject.version,
            new=candidate.version,
            step=step_between(subject.version, candidate.version),
            released=day[:10],
            age=age,
            notes=_notes(lock, catalog, subject.name, candidate.version),
            source=str(subject.question),
            pin=verdict.pin,
            admitted=verdict.admitted,
            why=verdict.why,
            moves=verdict.moves,
            needless=needless(lock, catalog, self.issues, subject.name, candidate.version),
        )

    def _packages(
        self, subject: Watched, packages: tuple[FilePin, ...], lock: Lock, label: str, catalog: Catalog
    ) -> Iterator[News]:
        assert subject.root is not None
        if summary := changes(lock, subject.root, packages):
            row = self._row(subject, label, f"{len(subject.pins)} packages", summary)
            yield row.model_copy(update={"step": "packages"})
        for name, version in _brought(lock, catalog, packages):
            verdict: Admission = admit_brought(lock, catalog, name, version)
            row = self._row(subject, label, lock.provided[name], version)
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


def _brought(lock: Lock, catalog: Catalog, packages: Sequence[FilePin]) -> Iterator[tuple[str, str]]:
    """What the base brings along in another version than the lock has."""
    base, release = catalog.base(lock.request.base)
    versions = {
        pin.origin.package: upstream_version(pin.origin.version)
        for pin in packages
        if pin.origin.kind == "debian"
    }
    for name, provided in base.provided(release).items():
        locked, version = lock.provided.get(name), versions.get(provided.package, "")
        if locked is not None and version and version != locked:
            yield name, version


def _notes(lock: Lock, catalog: Catalog, name: str, version: str) -> str:
    pattern = ""
    if name == ROCM and lock.rocm is not None:
        pattern = catalog.provider(lock.rocm.name).notes
    elif name in catalog.components:
        pattern = catalog.components[name].notes
    return pattern.replace("{version}", version)


def _days(answers: Mapping[Question, Reply]) -> dict[str, str]:
    days: dict[str, str] = {}
    for question, reply in answers.items():
        match reply.answer:
            case datetime() as day:
                days[str(question)] = day.astimezone(UTC).isoformat()
            case Standing(modified=datetime() as day):
                days[str(question)] = day.astimezone(UTC).isoformat()
            case _:
                pass
    return days


def _digest(text: str) -> str:
    return text[: len("sha256:") + SHORT]


def _once(news: Sequence[News]) -> tuple[News, ...]:
    """Each piece of news once: several places of one release, several roots of one image, tell the same."""
    unique: dict[tuple[str, str, str], News] = {}
    for update in news:
        key = update.lock, update.name, update.new
        previous = unique.get(key)
        if previous is None or (previous.age is None and update.age is not None):
            unique[key] = update
    return tuple(unique.values())


def _silent(
    answers: Mapping[Question, Reply], by_question: Mapping[Question, Sequence[tuple[Lock, Watched]]]
) -> Iterator[Silent]:
    """Sources that did not answer; a day that nobody tells is no loss."""
    for question, reply in answers.items():
        error = reply.error
        if error is None or isinstance(error, FetchError) or question not in by_question:
            continue
        yield Silent(
            source=str(question),
            names=tuple(dict.fromkeys(subject.name for _, subject in by_question[question])),
            failure=error.failure.value,
            what=error.message,
            cause=error.cause,
        )
