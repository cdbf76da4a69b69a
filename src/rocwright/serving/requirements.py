"""What wheels require where they are imported, and which of it nothing brings yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rocwright.model.steps import FilePin, IndexOrigin


def lacking(
    requirements: Iterable[Requirement], there: Mapping[str, str], markers: Mapping[str, str]
) -> tuple[str, ...]:
    """The requirements (PEP 508, sorted) that hold with these `markers` and that nothing `there` answers;
    `there` are versions by normal name."""
    return tuple(
        sorted(
            {
                _bare(one)
                for one in requirements
                if _holds(one, markers) and not _is_met(one, there.get(canonicalize_name(one.name)))
            }
        )
    )


def needed(
    wanted: Sequence[str],
    pins: Sequence[FilePin],
    requires: Callable[[Sequence[FilePin]], Iterable[Iterable[Requirement]]],
    there: Mapping[str, str],
    markers: Mapping[str, str],
) -> tuple[FilePin, ...]:
    """Those of the files that `wanted` leads to, without what is only required by something that is `there`.

    An index resolves to all that a requirement may lead to; what was built here, or what the base brings,
    must not come from it a second time.
    """
    by_name = {
        canonicalize_name(pin.origin.project): pin for pin in pins if isinstance(pin.origin, IndexOrigin)
    }
    found: dict[str, FilePin] = {}
    followed: set[tuple[str, str]] = set()
    todo = [Requirement(one) for one in wanted]
    while todo:
        this: list[tuple[FilePin, set[str]]] = []
        for one in todo:
            name = canonicalize_name(one.name)
            extras = {extra for extra in ("", *one.extras) if (name, extra) not in followed}
            if _is_met(one, there.get(name)) or name not in by_name or not extras:
                continue
            followed |= {(name, extra) for extra in extras}
            found[name] = by_name[name]
            this.append((by_name[name], extras))
        todo = [
            each
            for (_, extras), needs in zip(this, requires([pin for pin, _ in this]), strict=True)
            for each in needs
            if any(_holds(each, {**markers, "extra": extra}) for extra in extras)
        ]
    return tuple(sorted(found.values(), key=lambda pin: pin.filename))


def _holds(one: Requirement, markers: Mapping[str, str]) -> bool:
    return one.marker is None or one.marker.evaluate({"extra": "", **markers})


def _is_met(one: Requirement, version: str | None) -> bool:
    return version is not None and one.specifier.contains(version, prereleases=True)


def _bare(one: Requirement) -> str:
    """Without its marker, which was asked already, and for another Python than the resolver's."""
    extras = f"[{','.join(sorted(one.extras))}]" if one.extras else ""
    return f"{one.name}{extras}{f' @ {one.url}' if one.url else one.specifier}"
