"""Which devices to try: equal ones once, unless all are asked for. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

Description = dict[str, Any]


class Chosen(NamedTuple):
    """A device to try: torch's name for it, what it is called, and the equal ones that it stands for."""

    device: str
    title: str
    stands_for: tuple[str, ...] = ()


class NoDeviceError(Exception):
    """What was asked for is not there; the text says what torch sees."""


def chosen(described: Description, wanted: str, *, every: bool = False) -> list[Chosen]:
    """The devices for `wanted`: cpu, cuda, cuda:1, or auto (every GPU where there is one, else the CPU).

    Raises NoDeviceError.
    """
    found = described.get("devices", [])
    if wanted == "cpu" or (wanted == "auto" and not found):
        return [Chosen("cpu", "cpu")]
    if wanted.startswith("cuda:"):
        found = [one for one in found if f"cuda:{one['index']}" == wanted]
        every = True
    elif wanted not in ("cuda", "auto"):
        raise NoDeviceError(f"{wanted!r} is no device; known are auto, cpu, cuda and cuda:N")
    if not found:
        raise NoDeviceError(f"{wanted} was asked for, and torch sees {seen(described)}")
    if every:
        return [Chosen(f"cuda:{one['index']}", f"{title(one)} cuda:{one['index']}") for one in found]
    groups: dict[tuple[object, ...], list[Description]] = {}
    for one in found:
        groups.setdefault((one["name"], one["target"], one["memory"]), []).append(one)
    return [
        Chosen(f"cuda:{first['index']}", title(first), tuple(f"cuda:{one['index']}" for one in rest))
        for first, *rest in groups.values()
    ]


def title(one: Description) -> str:
    """A device as people name it, with its target."""
    return f"{one['name']} ({one['target']})" if one["target"] else str(one["name"])


def seen(described: Description) -> str:
    """What torch sees, in words."""
    if described.get("devices"):
        return ", ".join(f"cuda:{one['index']} {title(one)}" for one in described["devices"])
    return "no GPU" + (f" ({described['why_none']})" if described.get("why_none") else "")


def plain_target(target: str) -> str:
    """A target without its features: gfx90a of gfx90a:sramecc+:xnack-."""
    return target.partition(":")[0]


def serves(built: list[str], target: str) -> bool:
    """Whether one of the targets that torch was built for runs on a device of `target`.

    AMD: the same name. NVIDIA: machine code of the same major version and no later a minor one, or PTX of no
    later a version, which the driver compiles (both sm_90 and sm_90a count as 9.0).
    """
    if not target.startswith("sm_"):
        return plain_target(target) in {plain_target(one) for one in built}
    mine = _version(target)
    for one in built:
        kind, _, _ = one.partition("_")
        theirs = _version(one)
        if theirs <= mine and (kind == "compute" or theirs[0] == mine[0]):
            return True
    return False


def _version(name: str) -> tuple[int, int]:
    digits = "".join(one for one in name.partition("_")[2] if one.isdigit())
    return (int(digits[:-1] or 0), int(digits[-1:] or 0))
