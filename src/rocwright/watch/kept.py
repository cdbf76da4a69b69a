"""The last look at what upstream has, lock by lock, kept for whoever asks without looking again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from pydantic import ValidationError

from rocbase.files.atomic import sha256_bytes, write_atomic
from rocbase.model import Frozen
from rocwright.home import Home
from rocwright.watch.model import WatchReport


class LastLook(Frozen):
    """What the look `at` (UTC, ISO 8601) found of the lock of that label. `asked`, `silent`, `unseen`, ... of
    the report are those of the whole look."""

    lock: str
    at: str
    report: WatchReport


def keep(report: WatchReport, labels: Iterable[str], home: Home, at: str) -> None:
    """Keep a report, a file for each lock; a disk that is full or read-only costs the page only."""
    for label in labels:
        with contextlib.suppress(OSError):
            write_atomic(
                home.watched / f"{sha256_bytes(label.encode())[:16]}.json",
                LastLook(lock=label, at=at, report=_of(report, label)).model_dump_json(),
            )


def kept(home: Home) -> list[LastLook]:
    """The last look at each lock, the newest first; what cannot be read is left out."""
    found = []
    for path in home.watched.glob("*.json"):
        with contextlib.suppress(OSError, ValidationError):
            found.append(LastLook.model_validate_json(path.read_bytes()))
    return sorted(found, key=lambda one: (one.at, one.lock), reverse=True)


def _of(report: WatchReport, label: str) -> WatchReport:
    return report.model_copy(
        update={
            "alarms": tuple(one for one in report.alarms if one.lock == label),
            "cautions": tuple(one for one in report.cautions if one.lock == label),
            "news": tuple(one for one in report.news if one.lock == label),
        }
    )
