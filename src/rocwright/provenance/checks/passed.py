"""Which checks of its recipe an artifact has passed: what a signature waits for.

Each is a small file of its own with its sha256, named by all that the check depends on. A statement is signed
by these alone; the database of what was seen has no part in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rocbase.errors import ExplainedError
from rocbase.files.atomic import sha256_bytes, sha256_file, write_atomic
from rocbase.model import canonical_json, opened, sealed
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Check
from rocwright.home import Home
from rocwright.plan.resolve.model import Lock
from rocwright.provenance.checks.static import CheckNote, is_static, look_at, named
from rocwright.store.model import Output, Store

# Raised when checks mean something else than before; all are run again then.
SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """The outcomes of checks on this machine; `outputs` are the artifacts of a lock, by component."""

    home: Home
    store: Store
    catalog: Catalog
    lock: Lock
    outputs: Mapping[str, Output]

    def note(self, component: str, check: Check, outcomes: Iterable[CheckNote]) -> None:
        """Keep how a check went. One that fails takes back that it passed before."""
        notes = list(outcomes)
        record = {
            "component": component,
            "check": check.name,
            "artifact": self.outputs[component].sha256,
            "passed": bool(notes) and all(note.ok for note in notes),
            "found": [[note.name, note.ok, note.detail[:500]] for note in notes],
        }
        write_atomic(self.home.check(self._key(component, check)), canonical_json(sealed(record)))

    def lacking(self, component: str, say: Callable[[str], None]) -> tuple[str, ...]:
        """The checks of a component's recipe that its artifact has not passed.

        Those that run nothing are run now, where nobody has yet. Raises DamagedBlobError.
        """
        if component not in self.outputs:
            return ()
        checks = self.catalog.component(component).check
        return tuple(check.name for check in checks if not self._has_passed(component, check, say))

    def failed(self) -> tuple[str, ...]:
        """The checks that are known to have failed, each behind its component."""
        return tuple(
            f"{component}: {name}"
            for component in self.outputs
            for name, key in self.keys(component).items()
            if has_passed(self.home, key) is False
        )

    def keys(self, component: str) -> dict[str, str]:
        """The keys of a component's checks, by their names."""
        if component not in self.outputs:
            return {}
        return {check.name: self._key(component, check) for check in self.catalog.component(component).check}

    def _has_passed(self, component: str, check: Check, say: Callable[[str], None]) -> bool:
        passed = has_passed(self.home, self._key(component, check))
        if passed is None and is_static(check):
            notes = self._look(component, check)
            self.note(component, check, notes)
            passed = all(note.ok for note in notes)
            for note in (note for note in notes if not note.ok):
                say(f"check {component}: {note.name}: {note.detail}")
        return bool(passed)

    def _look(self, component: str, check: Check) -> list[CheckNote]:
        try:
            with named(self.store, self.outputs[component]) as path:
                return look_at(check, path, self.lock.request.gpu, self.catalog)
        except ExplainedError as error:
            if error.retryable:
                raise
            return [CheckNote(check.name, False, f"{error.message}: {error.cause}")]

    def _key(self, component: str, check: Check) -> str:
        """The sha256 over the check, the program that it runs, what it is run on, and for which GPUs."""
        outputs = (
            self.outputs if check.wheels or not is_static(check) else {component: self.outputs[component]}
        )
        facts = {
            "schema": SCHEMA,
            "component": component,
            "check": check.model_dump(mode="json"),
            "program": _digest(self.catalog.file(check.script).parent) if check.script else "",
            "artifacts": {name: output.sha256 for name, output in outputs.items()},
            "gpus": list(self.lock.request.gpu),
        }
        return sha256_bytes(canonical_json(facts))


def has_passed(home: Home, key: str) -> bool | None:
    """Whether the check of that key passed; None where nobody ran it, or what was kept of it is damaged."""
    try:
        return opened(json.loads(home.check(key).read_bytes()))["passed"] is True
    except (OSError, ValueError, KeyError):
        return None


def _digest(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*.py") if path.is_file())
    return sha256_bytes(
        canonical_json([[str(path.relative_to(folder)), sha256_file(path)] for path in files])
    )
