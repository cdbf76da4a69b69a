"""Who lends a card: what trusted keys want of it is run here, one after the other, and told.

Nothing is built: what runs is the catalog's checks, in a sandbox without a network, on artifacts and root
file systems that trusted keys signed.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from rocbase.errors import ExplainedError, InputError, NetworkError
from rocbase.folders.temporary import temporary_folder
from rocwheel.version import __version__
from rocwright.catalog.load import Catalog
from rocwright.diagnosis.machine.model import Machine
from rocwright.home import Home
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.aliases import catalog_for
from rocwright.plan.resolve.files import read_lock
from rocwright.plan.resolve.folder import LOCK
from rocwright.plan.resolve.model import Lock
from rocwright.project import Project, built_outputs
from rocwright.records.model import Finding, is_gpu, new_run_id
from rocwright.store.leases import leased
from rocwright.store.model import finished
from rocwright.store.sharing import WorkingStore
from rocwright.store.signed import now
from rocwright.verify.lending.ask import evidence_of, needed
from rocwright.verify.lending.model import Card, Evidence, VerifyWish
from rocwright.verify.lines import outcome_word
from rocwright.verify.run import verify

# Seconds between two looks, and the most, to which they grow while nothing is wanted.
LOOK, LONGEST_PAUSE = 30.0, 600.0

# The part of the machine's memory that what runs may take.
PART_OF_MEMORY = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedWish:
    """What is wanted, by whom, and why it is not run here; "" where it is."""

    wanted: VerifyWish
    by: str
    why_not: str
    lock: Lock | None = None

    @property
    def what(self) -> str:
        """In words."""
        if self.lock is None:
            return self.wanted.id[:12]
        request = self.lock.request
        return f"{request.stack} for {', '.join(request.gpu)} on {request.base}"


class _BusyError(Exception):
    """Another machine runs it."""


class Lender:
    """This machine, and a store in which others say what they want of it."""

    def __init__(
        self, store: WorkingStore, home: Home, catalog: Catalog, machine: Machine, say: Callable[[str], None]
    ) -> None:
        self.store, self.home, self.catalog, self.say = store, home, catalog, say
        self.machine = machine
        self.devices = {"", *(gpu.target for gpu in machine.gpus if gpu.target)}
        self._shared = store.shared[0]
        self._failed: set[str] = set()
        """What could not be tried here: it is not tried again."""

    def look(self) -> list[OfferedWish]:
        """All that trusted keys want, and whether this machine is for it. Raises NetworkError, InputError."""
        return [offer for name in self._shared.names("wanted") for offer in self._offered(name)]

    def _offered(self, name: str) -> Iterator[OfferedWish]:
        for key, word in self._shared.words("wanted", name):
            try:
                wish = VerifyWish.model_validate_json(word.content)
            except ValidationError as error:
                reason = error.errors()[0]["msg"]
                self._shared.say(f"{self._shared.name}: what {key.name} wants cannot be read: {reason}")
                continue
            if wish.id != name:
                self._shared.say(f"{self._shared.name}: what {key.name} wants lies under another name")
                continue
            yield self._judged(wish, key.name)
            return

    def _judged(self, wish: VerifyWish, asker: str) -> OfferedWish:
        if wish.rocwright != __version__:
            reason = f"it is for rocwright {wish.rocwright}, and this is {__version__}"
            return OfferedWish(wanted=wish, by=asker, why_not=reason)
        if wish.device not in self.devices:
            return OfferedWish(wanted=wish, by=asker, why_not=f"this machine has no {wish.device}")
        if wish.id in self._failed:
            return OfferedWish(wanted=wish, by=asker, why_not="it could not be tried here")
        try:
            with self._project(wish) as (_, lock):
                pass
        except ExplainedError as error:
            return OfferedWish(wanted=wish, by=asker, why_not=f"{error.message}: {error.cause}")
        signers = [key for key, _ in evidence_of(self._shared, wish)]
        if signers:
            return OfferedWish(wanted=wish, by=asker, why_not=f"{signers[0].name} has verified it", lock=lock)
        return OfferedWish(wanted=wish, by=asker, why_not="", lock=lock)

    def run(self, offer: OfferedWish) -> Evidence | None:
        """Verify it, and put what was found into the store; None where another machine does.

        Raises what verifying raises, and NetworkError where the lease was lost.
        """

        def busy() -> None:
            raise _BusyError

        try:
            with leased(self._shared.bucket, offer.wanted.id, busy):
                evidence = self._verified(offer)
        except _BusyError:
            return None
        self.store.say_word("evidence", offer.wanted.id, evidence.model_dump_json())
        return evidence

    def _verified(self, offer: OfferedWish) -> Evidence:
        started, begin, run = now(), time.monotonic(), new_run_id()
        memory = self.machine.memory
        with self._project(offer.wanted) as (project, lock):
            self._fetch(project, lock, offer.wanted)
            findings = verify(
                project,
                lock,
                None,
                lambda line: self.say(f"  {line}"),
                run_id=run,
                origin=f"lent to {offer.by}",
                memory=int(memory.total * PART_OF_MEMORY) if memory else None,
            )
        return Evidence(
            wanted=offer.wanted.id,
            run=run,
            started=started,
            seconds=round(time.monotonic() - begin, 1),
            card=Card.of(self.machine, offer.wanted.device),
            findings=tuple(findings),
        )

    def _fetch(self, project: Project, lock: Lock, wish: VerifyWish) -> None:
        """Have what is verified and what it needs here. Raises InputError where the store lacks some."""
        plan = make_plan(lock, project.catalog)
        for step in needed(plan, project.catalog):
            if finished(project.store, step.key) is None or not project.store.bring(step.key):
                raise InputError(
                    f"{step.name} is not in the store",
                    cause="who lends a card builds nothing",
                    next_step="whoever wants it runs rocwright farm verify again",
                )
        outputs = {name: output.sha256 for name, output in built_outputs(project, plan).items()}
        if outputs != wish.artifacts:
            raise InputError(
                "what is in the store is not what is wanted",
                cause="other bytes were built since, or a trusted key disagrees",
                next_step="whoever wants it runs rocwright farm verify again",
            )

    @contextlib.contextmanager
    def _project(self, wish: VerifyWish) -> Iterator[tuple[Project, Lock]]:
        """A project in a folder of its own that goes again, and its lock. Raises InputError where that does
        not fit the recipes here."""
        with temporary_folder("lent") as folder:
            path = folder / LOCK
            path.write_text(wish.lock)
            lock = read_lock(path)
            project = Project(
                request=lock.request,
                lock_path=path,
                output=folder / "out",
                home=self.home,
                catalog=catalog_for(lock.request, self.catalog),
                at=self.store,
            )
            make_plan(lock, project.catalog)
            yield project, lock

    def serve(self, stop: threading.Event, *, once: bool = False) -> None:
        """Look and run until it is told to stop, or, `once`, until nothing is left to do."""
        pause = LOOK
        while not stop.is_set():
            try:
                ran = self._round()
            except NetworkError as error:
                if once:
                    raise
                self.say(f"{error.message} ({error.cause}); looking again")
                ran = False
            if once and not ran:
                return
            pause = LOOK if ran else min(pause * 2, LONGEST_PAUSE)
            if not ran:
                stop.wait(pause)

    def _round(self) -> bool:
        """Run the first that can be run; whether there was one."""
        for offer in self.look():
            if offer.why_not:
                continue
            self.say(f"{offer.what}, wanted by {offer.by}")
            try:
                evidence = self.run(offer)
            except NetworkError:
                raise
            except ExplainedError as error:
                self._failed.add(offer.wanted.id)
                self.say(f"  could not be tried: {error.message} ({error.cause})")
                continue
            if evidence is None:
                self.say("  another machine verifies it")
                continue
            self.say(f"  {evidence_line(evidence)}")
            return True
        return False


def evidence_line(evidence: Evidence) -> str:
    """What was found, in a line."""
    wrong = [finding for finding in evidence.findings if not finding.ok]
    counts = ", ".join(
        f"{len(matching)} {word}"
        for word in ("ok", "absent", "FAILED")
        if (matching := [finding for finding in evidence.findings if outcome_word(finding) == word])
    )
    named = f": {', '.join(finding.name for finding in wrong[:3])}" if wrong else ""
    return f"{counts or 'nothing'}{named}, on {_devices(evidence.findings)}"


def _devices(findings: tuple[Finding, ...]) -> str:
    devices = sorted(
        {finding.device for finding in findings if finding.device},
        key=lambda device: (not is_gpu(device), device),
    )
    return ", ".join(devices) or "no device"
