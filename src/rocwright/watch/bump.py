"""A lock and what is new upstream -> a candidate lock that takes it, and what could not be taken."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from rocbase.errors import ConflictError, InputError
from rocwright.catalog.load import Catalog, lookup
from rocwright.plan.make import make_plan
from rocwright.resolve.choose import ROCM
from rocwright.resolve.difference import LockDifference, difference
from rocwright.resolve.lock import make_lock, versions_in
from rocwright.resolve.model import Lock, Request
from rocwright.resolve.shipped import preferred
from rocwright.resolve.upstream import Upstream
from rocwright.watch.admit import choose_with, rule, with_pins
from rocwright.watch.model import News

ROOT = "root/"
"""The roots' names begin with it, in news and on the command line: root/build, root/run, root/check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BumpRequest:
    """What of the news is to be taken: pins of `[versions]`, and roots and Python packages to choose anew.

    `left` are the names that cannot be taken together with the others, and why.
    """

    pins: Mapping[str, str]
    roots: frozenset[str]
    python: bool
    left: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pins or self.roots or self.python)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockCandidate:
    """A lock that takes what is wanted, and how it differs from the one there is.

    `ages` are days since the release by name, `again` the steps that run again, `left` what is not taken,
    `silent` the sources that gave no answer, and why.
    """

    lock: Lock
    difference: LockDifference
    ages: Mapping[str, int]
    again: tuple[str, ...]
    left: tuple[tuple[str, str], ...]
    silent: tuple[str, ...] = ()


def wanted(lock: Lock, catalog: Catalog, news: Sequence[News], names: Sequence[str]) -> BumpRequest:
    """What to take: all that is admitted, or of the `names` the newest that fits, a pin of theirs or not.

    Raises InputError for a name that is no part of the lock.
    """
    _check_names(lock, names)
    chosen, refused = _chosen(news, names)
    taken = [one for one in news if one.admitted and not one.pin]
    pins, dead = _together(lock, catalog, {name: one.pin for name, one in chosen.items()})
    left = refused | _nothing_new(news, names, {*chosen, *refused}) | dead
    return BumpRequest(
        pins=pins,
        roots=_roots(taken, names),
        python="python" in names or (not names and any(_is_python(one, lock) for one in taken)),
        left=tuple((name, why) for name, why in left.items() if name not in pins),
    )


def _check_names(lock: Lock, names: Sequence[str]) -> None:
    """Raises InputError for a name that is no part of the lock."""
    parts = [name for name in versions_in(lock) if name not in lock.provided or name == ROCM]
    parts += [f"{ROOT}{root.role}" for root in lock.roots] + (["python"] if lock.python else [])
    for name in names:
        lookup("part of the lock", name, dict.fromkeys(parts))


def _chosen(news: Sequence[News], names: Sequence[str]) -> tuple[dict[str, News], dict[str, str]]:
    """The newest of each that fits, and of what does not, why."""
    chosen: dict[str, News] = {}
    refused: dict[str, str] = {}
    for one in news:
        named = one.name in names
        if not one.pin or not (named or not names):
            continue
        if one.admitted or (named and "pins it to" in one.why):
            chosen[one.name] = max(one, chosen.get(one.name, one), key=_rank)
        else:
            refused.setdefault(one.name, f"{one.new}: {one.why}")
    return chosen, refused


def _nothing_new(news: Sequence[News], names: Sequence[str], known: Container[str]) -> dict[str, str]:
    """The names of which nobody told anything; the Python packages are chosen anew all the same."""
    told = {one.name for one in news} | {"python"}
    return {name: "nothing new" for name in names if name not in known and name not in told}


def _roots(taken: Iterable[News], names: Sequence[str]) -> frozenset[str]:
    """The roles of the roots that are made anew."""
    return frozenset(
        one.name.removeprefix(ROOT)
        for one in taken
        if one.name.startswith(ROOT) and (one.name in names or not names)
    )


def _rank(one: News) -> tuple[int, Version]:
    # a branch that is followed goes before tags: that is what following means
    try:
        return one.step == "commit", Version(one.new)
    except InvalidVersion:
        return one.step == "commit", Version("0")


def _is_python(one: News, lock: Lock) -> bool:
    files = lock.python.files if lock.python is not None else ()
    return any(getattr(pin.origin, "project", "") == one.name for pin in files)


def _together(lock: Lock, catalog: Catalog, pins: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The pins that hold together, and for each of the others the rule that is in its way."""
    versions = {name: pin for name, pin in pins.items() if not pin.startswith("@")}
    commits = {name: pin for name, pin in pins.items() if pin.startswith("@")}
    left: dict[str, str] = {}
    try:
        choose_with(lock, catalog, versions)
    except (ConflictError, InputError):
        held: dict[str, str] = {}
        for name, pin in versions.items():
            try:
                choose_with(lock, catalog, held | {name: pin})
                held[name] = pin
            except (ConflictError, InputError) as error:
                left[name] = f"{pin} does not fit the other updates: {rule(error)}"
        versions = held
    return versions | commits, left


def make_candidate(
    lock: Lock,
    catalog: Catalog,
    take: BumpRequest,
    news: Iterable[News],
    outside: Upstream,
    on_line: Callable[[str], None],
) -> LockCandidate:
    """The candidate lock: what is not wanted stays as it is locked, as far as the solver allows.

    Raises what locking raises.
    """
    request = with_pins(lock.request, dict(take.pins))
    kept = _moving(lock, take)
    made = make_lock(request, catalog, outside, on_line, remedies=lock.remedies, keep=kept)
    made = made.model_copy(update={"request": _request(lock.request, take.pins, catalog)})
    before = {step.key for step in make_plan(lock, catalog).steps}
    after = make_plan(made, catalog)
    return LockCandidate(
        lock=made,
        difference=difference(lock, made),
        ages={
            one.name: one.age
            for one in news
            if one.age is not None and one.pin == take.pins.get(one.name, "")
        },
        again=tuple(step.name for step in after.steps if step.key not in before),
        left=take.left,
    )


def _moving(lock: Lock, take: BumpRequest) -> Lock:
    """The lock in which what is to be looked up again is open."""
    open_ = {"pending": "to be looked up again"}
    python = lock.python.model_copy(update=open_) if lock.python and take.python else lock.python
    return lock.model_copy(
        update={
            "python": python,
            "components": tuple(
                one.model_copy(update=open_) if one.name in take.pins else one for one in lock.components
            ),
            "roots": tuple(
                one.model_copy(update=open_) if one.role in take.roots else one for one in lock.roots
            ),
        }
    )


def _request(request: Request, pins: Mapping[str, str], catalog: Catalog) -> Request:
    """What the user asks for, with the pins that only the project file can keep.

    Those are the ones that it has already, versions and commits that the catalog does not know, and versions
    in the place of those that a lock would take from the row that is meant.
    """
    liked = preferred(catalog, request)["prefer"]
    kept = {
        name: pin
        for name, pin in pins.items()
        if name in request.versions or pin.startswith("@") or " like " in pin or liked.get(name, pin) != pin
    }
    return with_pins(request, kept)
