"""What differs between two locks, in the pieces that are tried one by one."""

from __future__ import annotations

from collections.abc import Iterable

from rocbase.errors import InputError
from rocbase.model import Frozen
from rocwright.resolve.difference import VERSIONS, Part, PinChange, difference, taking
from rocwright.resolve.model import Lock


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
        moves = {(one.before, one.after) for one in self.changes if one.part == self.part}
        if len(moves) > 1:
            return f"{self.name} ({len(self.changes)} changes)"
        ((before, after),) = moves
        return f"{self.name} {before or '(none)'} -> {after or '(none)'}"


def pins(good: Lock, bad: Lock) -> tuple[Pin, ...]:
    """The pieces of the difference of two locks, components first, and of them the last built first;
    then remedies.

    Raises InputError where the locks are of different stacks, GPUs or bases.
    """
    _same_request(good, bad)
    found = difference(good, bad)
    # what comes last in a stack is built of the rest: it is the likelier culprit
    alone = (*reversed(found.of("component")), *found.of("remedy"))
    # a version that the catalog does not know is asked for in the request: that goes with its component
    asked = {one.name: one for one in found.of("request")}
    pinned = {one.name: asked.pop(f"{VERSIONS}{one.name}", None) for one in found.of("component")}
    components = [
        Pin(name=one.name, changes=tuple(filter(None, (pinned.get(one.name), one)))) for one in alone
    ]
    whole = {
        "ROCm": found.of("rocm"),
        "the base": found.of("provided") + found.of("package"),
        "Python packages": found.of("python"),
        "what is asked for": tuple(asked.values()),
    }
    return (*components, *(Pin(name=name, changes=changes) for name, changes in whole.items() if changes))


def parts(pin: Pin) -> tuple[Pin, ...]:
    """The pieces of a piece: packages that moved from one version to another together, as those of one source
    do, with what the base brings along in them."""
    packages: dict[tuple[str, str], list[PinChange]] = {}
    for one in pin.changes:
        if one.part != "provided":
            packages.setdefault((one.before, one.after), []).append(one)
    for one in pin.changes:
        if one.part == "provided":
            packages.setdefault(_home_of(one, packages), []).insert(0, one)
    return tuple(Pin(name=_name(changes), changes=tuple(changes)) for changes in packages.values())


def _home_of(provided: PinChange, packages: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """The move of packages that a version brought along belongs to: 2.6.0 came with 2.6.0+dfsg-7."""
    move = (provided.before, provided.after)
    return next((one for one in packages if one[0].startswith(move[0]) and one[1].startswith(move[1])), move)


def _name(changes: Iterable[PinChange]) -> str:
    first, *rest = sorted({one.name for one in changes}, key=lambda name: (len(name), name))
    return f"{first} and {len(rest)} more" if rest else first


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
