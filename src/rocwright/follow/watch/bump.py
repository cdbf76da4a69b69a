"""A lock and what is new upstream -> a candidate lock that takes it, and what could not be taken."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from rocbase.errors import ConflictError, InputError
from rocwright.catalog.load import Catalog, lookup
from rocwright.follow.watch.admit import choose_with, rule, with_pins
from rocwright.follow.watch.model import News
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.choose import ROCM
from rocwright.plan.resolve.difference import LockDifference, difference
from rocwright.plan.resolve.lock import make_lock, versions_in
from rocwright.plan.resolve.model import Lock, Request
from rocwright.plan.resolve.shipped import preferred
from rocwright.plan.resolve.upstream import Upstream

# The roots' names begin with it, in news and on the command line: root/build, root/run, root/check.
ROOT = "root/"


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


def bump_request(lock: Lock, catalog: Catalog, news: Sequence[News], names: Sequence[str]) -> BumpRequest:
    """What to take: all that is admitted, or of the `names` the newest that fits, a pin of theirs or not.

    Raises InputError for a name that is no part of the lock.
    """
    _check_names(lock, names)
    chosen, refused = _chosen(news, names)
    accepted = [update for update in news if update.admitted and not update.pin]
    pins, dead = _together(lock, catalog, {name: update.pin for name, update in chosen.items()})
    skipped = refused | _nothing_new(news, names, {*chosen, *refused}) | dead
    return BumpRequest(
        pins=pins,
        roots=_roots(accepted, names),
        python="python" in names or (not names and any(_is_python(update, lock) for update in accepted)),
        left=tuple((name, reason) for name, reason in skipped.items() if name not in pins),
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
    for update in news:
        named = update.name in names
        if not update.pin or not (named or not names):
            continue
        if update.admitted or (named and "pins it to" in update.why):
            chosen[update.name] = max(update, chosen.get(update.name, update), key=_rank)
        else:
            refused.setdefault(update.name, f"{update.new}: {update.why}")
    return chosen, refused


def _nothing_new(news: Sequence[News], names: Sequence[str], decided: Container[str]) -> dict[str, str]:
    """The names of which nobody told anything; the Python packages are chosen anew all the same."""
    reported = {update.name for update in news} | {"python"}
    return {name: "nothing new" for name in names if name not in decided and name not in reported}


def _roots(accepted: Iterable[News], names: Sequence[str]) -> frozenset[str]:
    """The roles of the roots that are made anew."""
    return frozenset(
        update.name.removeprefix(ROOT)
        for update in accepted
        if update.name.startswith(ROOT) and (update.name in names or not names)
    )


def _rank(update: News) -> tuple[int, Version]:
    # a branch that is followed goes before tags: that is what following means
    try:
        return update.step == "commit", Version(update.new)
    except InvalidVersion:
        return update.step == "commit", Version("0")


def _is_python(update: News, lock: Lock) -> bool:
    files = lock.python.files if lock.python is not None else ()
    return any(getattr(pin.origin, "project", "") == update.name for pin in files)


def _together(lock: Lock, catalog: Catalog, pins: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The pins that hold together, and for each of the others the rule that is in its way."""
    versions = {name: pin for name, pin in pins.items() if not pin.startswith("@")}
    commits = {name: pin for name, pin in pins.items() if pin.startswith("@")}
    skipped: dict[str, str] = {}
    try:
        choose_with(lock, catalog, versions)
    except (ConflictError, InputError):
        compatible: dict[str, str] = {}
        for name, pin in versions.items():
            try:
                choose_with(lock, catalog, compatible | {name: pin})
                compatible[name] = pin
            except (ConflictError, InputError) as error:
                skipped[name] = f"{pin} does not fit the other updates: {rule(error)}"
        versions = compatible
    return versions | commits, skipped


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
    reopened = _moving(lock, take)
    candidate = make_lock(request, catalog, outside, on_line, remedies=lock.remedies, keep=reopened)
    candidate = candidate.model_copy(update={"request": _request(lock.request, take.pins, catalog)})
    previous_keys = {step.key for step in make_plan(lock, catalog).steps}
    plan = make_plan(candidate, catalog)
    return LockCandidate(
        lock=candidate,
        difference=difference(lock, candidate),
        ages={
            update.name: update.age
            for update in news
            if update.age is not None and update.pin == take.pins.get(update.name, "")
        },
        again=tuple(step.name for step in plan.steps if step.key not in previous_keys),
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
                component.model_copy(update=open_) if component.name in take.pins else component
                for component in lock.components
            ),
            "roots": tuple(
                root.model_copy(update=open_) if root.role in take.roots else root for root in lock.roots
            ),
        }
    )


def _request(request: Request, pins: Mapping[str, str], catalog: Catalog) -> Request:
    """What the user asks for, with the pins that only the project file can keep.

    Those are the ones that it has already, versions and commits that the catalog does not know, and versions
    in the place of those that a lock would take from the row that is meant.
    """
    liked = preferred(catalog, request)["prefer"]
    project_pins = {
        name: pin
        for name, pin in pins.items()
        if name in request.versions or pin.startswith("@") or " like " in pin or liked.get(name, pin) != pin
    }
    return with_pins(request, project_pins)
