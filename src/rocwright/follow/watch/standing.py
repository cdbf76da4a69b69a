"""Whether what a lock pins still stands upstream as it was: alarms, and cautions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

from rocbase.errors import FetchError
from rocwright.follow.watch.ask import Reply
from rocwright.follow.watch.model import Alarm, Caution, Kept
from rocwright.follow.watch.question import Image, Project, Refs, RemoteFile
from rocwright.follow.watch.questions import Watched
from rocwright.model.steps import FilePin
from rocwright.plan.resolve.model import Lock
from rocwright.sources.index import Published
from rocwright.sources.web import Standing

# Whether the store has a file.
Has = Callable[[FilePin], bool]


def standing(subject: Watched, reply: Reply, lock: Lock, label: str, has: Has) -> Iterator[Alarm | Caution]:
    """What is wrong with one thing of a lock, by what its source says now."""
    storage = _retention(subject.pins, has)

    def caution(summary: str, reason: str = "") -> Caution:
        return Caution(lock=label, name=subject.name, what=summary, why=reason, kept=storage)

    def alarm(summary: str, locked: str, upstream: str) -> Alarm:
        return Alarm(lock=label, name=subject.name, what=summary, had=locked, now=upstream, kept=storage)

    if isinstance(reply.error, FetchError):
        yield caution(f"{subject.question} no longer exists", reply.error.cause)
        return
    match subject.question, reply.answer:
        case Refs() as question, Mapping() as refs if subject.ref:
            commit = str(refs.get(subject.ref, ""))
            tag = f"the tag {subject.ref.removeprefix('refs/tags/')} of {question.url}"
            if not commit:
                yield caution(f"{tag} no longer exists")
            elif subject.commit and commit != subject.commit:
                yield alarm(f"{tag} has moved", subject.commit, commit)
        case Project(), Sequence() as files:
            yield from _files(
                subject, [file for file in files if isinstance(file, Published)], caution, alarm
            )
        case Image() as question, str() as digest if (
            subject.commit and digest != subject.commit and not subject.rolls
        ):
            yield alarm(f"the tag {question.reference} has moved", subject.commit, digest)
        case RemoteFile() as question, Standing() as stands:
            (pin,) = subject.pins
            if not stands.there:
                yield caution(f"{question.url} no longer exists")
            elif stands.size is not None and stands.size != pin.size:
                sizes = f"{pin.size} bytes", f"{stands.size} bytes"
                yield alarm(f"the file at {question.url} was replaced", *sizes)
            elif stands.modified is not None and stands.modified > locked_on(lock):
                day = stands.modified.date().isoformat()
                yield caution(f"{question.url} was written again on {day}", "its size is unchanged")
        case _:
            pass


def locked_on(lock: Lock) -> datetime:
    """When a lock was made."""
    return datetime.fromisoformat(lock.created.replace("Z", "+00:00"))


def _files(
    subject: Watched,
    files: Sequence[Published],
    caution: Callable[[str, str], Caution],
    alarm: Callable[[str, str, str], Alarm],
) -> Iterator[Alarm | Caution]:
    by_name = {file.filename: file for file in files}
    for pin in subject.pins:
        file = by_name.get(pin.filename)
        if file is None:
            yield caution(f"{pin.filename} is no longer on the index", "")
        elif file.sha256 and file.sha256 != pin.sha256:
            yield alarm(f"{pin.filename} on the index is another file now", pin.sha256, file.sha256)
        elif file.yanked is not None:
            yield caution(f"{pin.filename} was withdrawn (yanked)", file.yanked)
    if not (subject.pins or subject.elsewhere) and not any(file.version == subject.version for file in files):
        yield caution(f"{subject.question} no longer has {subject.version}", "")


def _retention(pins: Sequence[FilePin], has: Has) -> Kept:
    if not pins:
        return "unknown"
    return "whole" if all(map(has, pins)) else "no"
