"""What differs between two locks, in the pieces that are tried one by one."""

from __future__ import annotations

from collections.abc import Iterable

from rocbase.errors import InputError
from rocbase.model import Frozen
from rocwright.plan.resolve.difference import VERSIONS, Part, PinChange, difference, taking
from rocwright.plan.resolve.model import Lock


class Pin(Frozen):
    """Changes that are made together; `name` is that of a component, or of all of them."""

    name: str
    changes: tuple[PinChange, ...]

    @property
    def part(self) -> Part:
        """What the changes are of."""
        return self.changes[-1].part

    @property
    def label(self) -> str:
        """The change in a few words."""
        moves = {(change.before, change.after) for change in self.changes if change.part == self.part}
        if len(moves) > 1:
            return f"{self.name} ({len(self.changes)} changes)"
        ((old, new),) = moves
        return f"{self.name} {old or '(none)'} -> {new or '(none)'}"


def pins(good: Lock, bad: Lock) -> tuple[Pin, ...]:
    """The pieces of the difference of two locks, components first, and of them the last built first;
    then remedies.

    Raises InputError where the locks are of different stacks, GPUs or bases.
    """
    _same_request(good, bad)
    differences = difference(good, bad)
    # what comes last in a stack is built of the rest: it is the likelier culprit
    alone = (*reversed(differences.of("component")), *differences.of("remedy"))
    # a version that the catalog does not know is asked for in the request: that goes with its component
    requested = {change.name: change for change in differences.of("request")}
    pinned = {
        change.name: requested.pop(f"{VERSIONS}{change.name}", None) for change in differences.of("component")
    }
    components = [
        Pin(name=change.name, changes=tuple(filter(None, (pinned.get(change.name), change))))
        for change in alone
    ]
    groups = {
        "ROCm": differences.of("rocm"),
        "the base": differences.of("provided") + differences.of("package"),
        "Python packages": differences.of("python"),
        "what is asked for": tuple(requested.values()),
    }
    return (*components, *(Pin(name=name, changes=changes) for name, changes in groups.items() if changes))


def parts(pin: Pin) -> tuple[Pin, ...]:
    """The pieces of a piece: packages that moved from one version to another together, as those of one source
    do, with what the base brings along in them."""
    packages: dict[tuple[str, str], list[PinChange]] = {}
    for change in pin.changes:
        if change.part != "provided":
            packages.setdefault((change.before, change.after), []).append(change)
    for change in pin.changes:
        if change.part == "provided":
            packages.setdefault(_home_of(change, packages), []).insert(0, change)
    return tuple(Pin(name=_name(changes), changes=tuple(changes)) for changes in packages.values())


def _home_of(provided: PinChange, packages: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """The move of packages that a version brought along belongs to: 2.6.0 came with 2.6.0+dfsg-7."""
    move = (provided.before, provided.after)
    return next(
        (
            versions
            for versions in packages
            if versions[0].startswith(move[0]) and versions[1].startswith(move[1])
        ),
        move,
    )


def _name(changes: Iterable[PinChange]) -> str:
    first, *remaining = sorted({change.name for change in changes}, key=lambda name: (len(name), name))
    return f"{first} and {len(remaining)} more" if remaining else first


def mix(good: Lock, bad: Lock, chosen: Iterable[Pin]) -> Lock:
    """The good lock with these changes made."""
    return taking(good, bad, [change for pin in chosen for change in pin.changes])


def _same_request(good: Lock, bad: Lock) -> None:
    changed = [
        name
        for name in ("stack", "gpu", "base", "provider")
        if getattr(good.request, name) != getattr(bad.request, name)
    ]
    if changed:
        raise InputError(
            "the two locks are for different requests",
            cause="; ".join(
                f"{name}: {getattr(good.request, name)} and {getattr(bad.request, name)}" for name in changed
            ),
            next_step="name two locks of one stack, for the same GPUs, on the same base",
        )
