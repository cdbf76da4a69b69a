"""The last look at what upstream has, lock by lock, kept for whoever asks without looking again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from pydantic import ValidationError

from rocbase.files.atomic import sha256_bytes, write_atomic
from rocbase.model import Frozen
from rocwright.follow.watch.model import WatchReport
from rocwright.home import Home


class LastLook(Frozen):
    """What the look `at` (UTC, ISO 8601) found of the lock of that label. `asked`, `silent`, `unseen`, ... of
    the report are those of the whole look."""

    lock: str
    at: str
    report: WatchReport


def keep(report: WatchReport, labels: Iterable[str], home: Home, timestamp: str) -> None:
    """Keep a report, a file for each lock; a disk that is full or read-only costs the page only."""
    for label in labels:
        with contextlib.suppress(OSError):
            write_atomic(
                home.watched / f"{sha256_bytes(label.encode())[:16]}.json",
                LastLook(lock=label, at=timestamp, report=_report_of(report, label)).model_dump_json(),
            )


def kept(home: Home) -> list[LastLook]:
    """The last look at each lock, the newest first; what cannot be read is left out."""
    looks = []
    for path in home.watched.glob("*.json"):
        with contextlib.suppress(OSError, ValidationError):
            looks.append(LastLook.model_validate_json(path.read_bytes()))
    return sorted(looks, key=lambda look: (look.at, look.lock), reverse=True)


def _report_of(report: WatchReport, label: str) -> WatchReport:
    return report.model_copy(
        update={
            "alarms": tuple(alarm for alarm in report.alarms if alarm.lock == label),
            "cautions": tuple(caution for caution in report.cautions if caution.lock == label),
            "news": tuple(update for update in report.news if update.lock == label),
        }
    )
