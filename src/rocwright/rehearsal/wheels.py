"""What is tried of wheels that a row takes as they were published: they are fetched, and read for its GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from rocbase.errors import ExplainedError
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Check, Component
from rocwright.model.steps import FilePin
from rocwright.plan.resolve.model import LockedComponent
from rocwright.provenance.checks.static import named, published
from rocwright.rehearsal.result import TrialFault, TrialTally
from rocwright.store.model import Store

# The kind of a component that is wheels as others published them.
PUBLISHED = "wheels"

NOT_LOCKED, FETCHED = "not locked", "as the lock has them"


def unlocked(locked: LockedComponent) -> TrialTally | None:
    """What is told of wheels whose hashes the row's lock does not know; None where it does."""
    if locked.files and not locked.pending:
        return None
    reason = f"the lock lacks {locked.pending}" if locked.pending else "it names no wheel"
    return TrialTally(part="wheels", name=NOT_LOCKED, tried=0, all=1, reasons=(reason,))


def parts_of_wheels(
    component: Component, locked: LockedComponent, gpu: str, catalog: Catalog, store: Store, missing: str
) -> Iterator[TrialTally]:
    """The parts of locked wheels: how many are there, with the hash of the lock, and what the recipe's checks
    read in them all. `missing` is why the others are not there. Nothing of them is run."""
    present = sum(store.has(pin.sha256, pin.size) for pin in locked.files)
    reasons = (missing,) if present < len(locked.files) else ()
    yield TrialTally(part="wheels", name=FETCHED, tried=present, all=len(locked.files), reasons=reasons)
    for check in component.check:
        if check.kind == "check-gpu" and reasons:
            yield TrialTally(part="wheels", name=check.name, tried=0, all=1, reasons=reasons)
        elif check.kind == "check-gpu":
            yield _read(check, locked.files, gpu, catalog, store)


def _read(check: Check, files: tuple[FilePin, ...], gpu: str, catalog: Catalog, store: Store) -> TrialTally:
    """What a check finds in the wheels."""
    try:
        with ExitStack() as stack:
            paths = [stack.enter_context(named(store, pin)) for pin in files]
            findings = published(check, paths, [gpu], catalog)
        bad = [TrialFault(name=finding.name, detail=finding.detail) for finding in findings if not finding.ok]
    except ExplainedError as error:
        bad = [TrialFault(name=check.name, detail=f"{error.message}: {error.cause}")]
    return TrialTally(part="wheels", name=check.name, tried=1, all=1, failed=tuple(bad))
