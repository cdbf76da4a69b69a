"""One cycle: for every row a candidate, its build, its checks, and the channels that it has earned."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout

from rocwright.build.progress import Progress
from rocwright.build.scheduler import Options
from rocwright.culprit.model import MACHINE
from rocwright.cycle.channels import earned
from rocwright.cycle.model import Culprit, CycleTold, RowTold
from rocwright.cycle.row import Row
from rocwright.cycle.shown import shown
from rocwright.errors import FailureClass, InputError, RocwrightError
from rocwright.files import sha256_bytes, write_atomic
from rocwright.flow import Project, build, known_lock
from rocwright.home import Home
from rocwright.records.model import Promotion, Which, new_run_id, now
from rocwright.records.place import open_records
from rocwright.resolve.difference import difference
from rocwright.resolve.model import Lock, Request
from rocwright.resolve.settings import Channel
from rocwright.resolve.tell_difference import tell_difference
from rocwright.verify.run import verify

Follow = Callable[[Project, Lock], Lock]
"""The newest lock that upstream and the rules admit, from the one there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """What a cycle turns with: how candidates are found, how they are built, the channels in order.

    `bisect`: what made a candidate fail is looked for.
    """

    follow: Follow
    channels: Sequence[Channel]
    options: Options
    progress: Progress
    bisect: bool = False


def cycle(where: Path, rows: Sequence[Request], like: Project, wheel: Wheel) -> CycleTold:
    """Turn once over the rows of the project in the folder `where`; `like` gives the home and the catalog.

    A row that fails keeps what it had, and the others go on. Raises InputError where another cycle runs here.
    """
    ident, started, begun = new_run_id(), now(), time.monotonic()
    with _alone(where, like.home) as last:
        told = []
        for number, request in enumerate(rows, 1):
            wheel.progress.say(f"cycle: row {number} of {len(rows)}: {request.stack}, {request.base}")
            told.append(_Turn(Row.of(request, where, like), wheel, ident).told())
        found = CycleTold(
            id=ident, started=started, seconds=round(time.monotonic() - begun, 1), rows=tuple(told)
        )
        write_atomic(last, found.model_dump_json(indent=1) + "\n")
    return found


def last_cycle(where: Path, home: Home) -> CycleTold | None:
    """What the last cycle of the project in this folder did; None before the first."""
    try:
        return CycleTold.model_validate_json(_place(where, home).with_suffix(".json").read_bytes())
    except (OSError, ValueError):
        return None


def _place(where: Path, home: Home) -> Path:
    return home.path / "cycle" / sha256_bytes(str(where.resolve()).encode())[:16]


@contextmanager
def _alone(where: Path, home: Home) -> Iterator[Path]:
    """Only one cycle a project at a time; gives the file of what it did."""
    place = _place(where, home)
    place.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(place.with_suffix(".lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError(
            f"a cycle over {where} is running already",
            cause="two at once would try the same candidates",
            next_step="wait for its end; rocwright history shows what it does",
        ) from None
    try:
        yield place.with_suffix(".json")
    finally:
        lock.release()


class _Turn:
    """One row in one cycle."""

    def __init__(self, row: Row, wheel: Wheel, ident: str) -> None:
        self.row, self.wheel, self.origin = row, wheel, f"cycle {ident}"
        self.say = wheel.progress.say
        self.first = wheel.channels[0].name

    def told(self) -> RowTold:
        """Do it; whatever goes wrong is told."""
        try:
            return self._told()
        except RocwrightError as error:
            if error.failure is FailureClass.INTERRUPTED:
                raise
            return RowTold(request=self.row.request, state="not tried", why=f"{error.what}: {error.cause}")

    def _told(self) -> RowTold:
        kept = self.row.lock(self.first)
        candidate = self.row.trying
        if candidate is None:
            candidate = self._candidate(kept)
            if kept is not None and not difference(kept, candidate):
                return self._settled(kept, ())
            failed = self.row.lock("failed")
            if failed is not None and not difference(failed, candidate):
                return RowTold(
                    request=self.row.request, state="failed", why="the same candidate failed before"
                )
            self.row.keep("trying", candidate)
        changes = tuple(tell_difference(difference(kept, candidate))) if kept else ("the first lock",)
        for line in changes:
            self.say(f"  {line}")
        return self._tried(kept, candidate, changes)

    def _candidate(self, kept: Lock | None) -> Lock:
        if kept is not None:
            return self.wheel.follow(self.row.project, kept)
        return known_lock(self.row.project, self.say)

    def _tried(self, kept: Lock | None, candidate: Lock, changes: tuple[str, ...]) -> RowTold:
        project = replace(self.row.project, request=candidate.request)
        options, progress = self.wheel.options, self.wheel.progress
        built = build(project, candidate, options, progress, origin=self.origin)
        for _, error in built.failures:
            if error.failure in MACHINE:
                raise error
        if built.failures:
            name, error = built.failures[0]
            return self._failed(kept, candidate, changes, f"{name}: {error.what}: {error.cause}")
        findings = verify(project, candidate, options.engine, self.say, progress, origin=self.origin)
        wrong = [one for one in findings if not one.ok]
        if wrong:
            return self._failed(kept, candidate, changes, f"{wrong[0].name}: {wrong[0].detail}")
        return self._settled(candidate, changes)

    def _failed(self, kept: Lock | None, candidate: Lock, changes: tuple[str, ...], why: str) -> RowTold:
        culprit = self._culprit(kept, candidate) if kept is not None and self.wheel.bisect else None
        self.row.keep("failed", candidate)
        self.row.drop_trial()
        return RowTold(request=self.row.request, state="failed", changes=changes, why=why, culprit=culprit)

    def _culprit(self, good: Lock, bad: Lock) -> Culprit:
        from rocwright.culprit.report import tell, write_report
        from rocwright.culprit.run import bisect
        from rocwright.culprit.trial import Bench

        bench = Bench(
            project=self.row.project,
            options=self.wheel.options,
            progress=self.wheel.progress,
            say=self.say,
        )
        try:
            report = bisect(good, bad, bench)
        except RocwrightError as error:
            return Culprit(says=(f"not found: {error.what}", error.cause), report="")
        page = write_report(report, good, bad, self.row.folder / "failed")
        return Culprit(says=tuple(tell(report)), report=str(page))

    def _settled(self, lock: Lock, changes: tuple[str, ...]) -> RowTold:
        """Promote a lock that nothing speaks against to the channels that it has earned."""
        stack, gpu, base = lock.request.stack, lock.request.gpu[0], lock.request.base
        digest = sha256_bytes(lock.model_dump_json(by_alias=True).encode())
        promoted, waits = [], {}
        with open_records(self.row.project.home) as records:
            runs = records.runs(Which(stack=stack, gpu=gpu, base=base, lock=digest), limit=100, steps=False)
            best, evidence = shown(records, runs)
            held = records.promotions(stack=stack, gpu=gpu, base=base)
            for channel, why in earned(self.wheel.channels, evidence, held, digest):
                if why:
                    waits[channel.name] = why
                    continue
                # the lock first: a promotion on record has its lock, whenever this is killed
                self.row.keep(channel.name, lock)
                records.promote(
                    Promotion(
                        stack=stack,
                        gpu=gpu,
                        base=base,
                        channel=channel.name,
                        run=best,
                        lock=digest,
                        at=now(),
                        by=self.origin,
                        why=f"the evidence says {evidence.said!r}",
                    )
                )
                promoted.append(channel.name)
        self.row.drop_trial()
        return RowTold(
            request=self.row.request,
            state="promoted" if promoted else "unchanged",
            changes=changes,
            promoted=tuple(promoted),
            waits=waits,
            lock=digest,
            run=best,
        )
