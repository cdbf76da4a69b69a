"""What wheels require where they are imported, and which of it nothing brings yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rocwright.model.steps import FilePin, IndexOrigin


def lacking(
    requirements: Iterable[Requirement], installed: Mapping[str, str], markers: Mapping[str, str]
) -> tuple[str, ...]:
    """The requirements (PEP 508, sorted) that hold with these `markers` and that nothing `installed` answers;
    `installed` are versions by normal name."""
    return tuple(
        sorted(
            {
                _bare(requirement)
                for requirement in requirements
                if _holds(requirement, markers)
                and not _is_met(requirement, installed.get(canonicalize_name(requirement.name)))
            }
        )
    )


def needed(
    requirements: Sequence[str],
    pins: Sequence[FilePin],
    requires: Callable[[Sequence[FilePin]], Iterable[Iterable[Requirement]]],
    installed: Mapping[str, str],
    markers: Mapping[str, str],
) -> tuple[FilePin, ...]:
    """The files that `requirements` lead to, without what only something that is `installed` requires.

    An index resolves to all that a requirement may lead to; what was built here, or what the base brings,
    must not come from it a second time.
    """
    by_name = {
        canonicalize_name(pin.origin.project): pin for pin in pins if isinstance(pin.origin, IndexOrigin)
    }
    chosen: dict[str, FilePin] = {}
    followed: set[tuple[str, str]] = set()
    todo = [Requirement(text) for text in requirements]
    while todo:
        this: list[tuple[FilePin, set[str]]] = []
        for requirement in todo:
            name = canonicalize_name(requirement.name)
            extras = {extra for extra in ("", *requirement.extras) if (name, extra) not in followed}
            if _is_met(requirement, installed.get(name)) or name not in by_name or not extras:
                continue
            followed |= {(name, extra) for extra in extras}
            chosen[name] = by_name[name]
            this.append((by_name[name], extras))
        todo = [
            need
            for (_, extras), needs in zip(this, requires([pin for pin, _ in this]), strict=True)
            for need in needs
            if any(_holds(need, {**markers, "extra": extra}) for extra in extras)
        ]
    return tuple(sorted(chosen.values(), key=lambda pin: pin.filename))


def _holds(requirement: Requirement, markers: Mapping[str, str]) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": "", **markers})


def _is_met(requirement: Requirement, version: str | None) -> bool:
    return version is not None and requirement.specifier.contains(version, prereleases=True)


def _bare(requirement: Requirement) -> str:
    """Without its marker, which was asked already, and for another Python than the resolver's."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return (
        f"{requirement.name}{extras}{f' @ {requirement.url}' if requirement.url else requirement.specifier}"
    )
