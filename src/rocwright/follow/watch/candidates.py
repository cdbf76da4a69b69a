"""The versions that an answer offers beyond what a lock has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from rocwheel.wheels.names import read_version
from rocwright.catalog.model import Scheme
from rocwright.follow.watch.question import ImageTags, Listing, Project, Question, Refs, RemoteFile, TagDay
from rocwright.follow.watch.questions import Watched
from rocwright.follow.watch.upstream import Answer
from rocwright.plan.resolve.settings import Take
from rocwright.sources.index import Published

# Newer versions of one series that are looked at: the newest, and some for where those are too young.
GROUP_LIMIT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class NewerVersion:
    """A newer version: its day where the answer told it, else the question that tells it."""

    version: str
    day: datetime | None = None
    asks: Question | None = None


def series(version: str, scheme: Scheme) -> tuple[int, ...]:
    """Return what a patch release leaves as it is: the first two numbers, if there are more.

    All builds are one series.
    """
    if scheme == "build":
        return ()
    numbers = Version(version).release
    return numbers[:2] if len(numbers) > 2 else numbers


def newer(subject: Watched, answer: Answer, take: Take, python: str) -> list[tuple[NewerVersion, ...]]:
    """The newer versions that are worth telling: those of the same series, then those of others.

    The newest come first. `python` is the version that a file of an index must run on.
    """
    has, scheme = _version(subject.version), subject.scheme
    if has is None or subject.spelled is None:
        return []
    offered: dict[Version, NewerVersion] = {}
    for candidate in _offered(subject, answer, python):
        version = _version(candidate.version)
        if version is None or version <= has or (version.local and not has.local):
            continue
        if _is_taken(version, has, take, scheme):
            offered.setdefault(version, candidate)
    falling = sorted(offered, reverse=True)
    same_series = [
        version for version in falling if series(str(version), scheme) == series(subject.version, scheme)
    ]
    other_series = [version for version in falling if version not in same_series]
    groups = (
        tuple(offered[version] for version in some[:GROUP_LIMIT]) for some in (same_series, other_series)
    )
    return [group for group in groups if group]


def _is_taken(version: Version, has: Version, take: Take, scheme: Scheme) -> bool:
    match take:
        case "all":
            return True
        case "stable":
            return not version.is_prerelease
        case "patch":
            return not version.is_prerelease and series(str(version), scheme) == series(str(has), scheme)


def _version(text: str) -> Version | None:
    try:
        return read_version(text)
    except InvalidVersion:
        return None


def _offered(subject: Watched, answer: Answer, python: str) -> Iterator[NewerVersion]:
    assert subject.spelled is not None
    match subject.question, answer:
        case Refs() as question, Mapping():
            for ref, commit in answer.items():
                if version := subject.spelled.version(ref):
                    yield NewerVersion(version=version, asks=TagDay(question.url, ref, str(commit)))
        case ImageTags(), Sequence():
            for tag in answer:
                if isinstance(tag, str) and (version := subject.spelled.version(tag)):
                    yield NewerVersion(version=version)
        case Project(), Sequence():
            yield from _releases([file for file in answer if isinstance(file, Published)], python)
        case Listing(), Mapping():
            for name, day in answer.items():
                if version := subject.spelled.version(name):
                    address = subject.address.replace("{version}", quote(version))
                    released = day if isinstance(day, datetime) else None
                    yield NewerVersion(version=version, day=released, asks=RemoteFile(address))
        case _:
            pass


def _releases(files: Iterable[Published], python: str) -> Iterator[NewerVersion]:
    """The releases of which something is left that may be taken, each with the day of its first file."""
    by_version: dict[str, list[Published]] = {}
    for file in files:
        if file.yanked is None and _runs_on(file.requires_python, python):
            by_version.setdefault(file.version, []).append(file)
    for version, some in by_version.items():
        days = [file.uploaded for file in some if file.uploaded is not None]
        yield NewerVersion(version=version, day=min(days, default=None))


def _runs_on(required: str, python: str) -> bool:
    try:
        return not python or Version(python) in SpecifierSet(required)
    except ValueError:  # neither, or of too many digits
        return True
