"""Which operations give other bits from run to run: without launch blocking, with it, between two processes.

Each pass is a process of its own. A third one tells which operations torch itself calls nondeterministic:
they raise under `torch.use_deterministic_algorithms(True)` and are shown apart.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from smoke import runner
from smoke.bits import RAISES
from smoke.runner import Limits, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

REPEAT = 50

BLOCKING = ("HIP_LAUNCH_BLOCKING", "CUDA_LAUNCH_BLOCKING")
"""With 1 each kernel ends before the next is launched. Source: "Debugging" of HIP's manual, "CUDA environment
variables" of CUDA's programming guide."""

WORKSPACE = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
"""Without it each product of matrices raises under deterministic algorithms, whose result does not differ.
Source: the documentation of torch.use_deterministic_algorithms."""

Found = dict[tuple[str, str], Outcome]


class Pass(NamedTuple):
    """One process with all cases: what it is called, and its environment."""

    name: str
    env: dict[str, str]
    deterministic: bool = False


def passes(env: Mapping[str, str]) -> tuple[Pass, Pass, Pass]:
    """Without launch blocking, with it, and under deterministic algorithms."""
    free = {name: value for name, value in env.items() if name not in BLOCKING}
    return (
        Pass("without launch blocking", free),
        Pass("with launch blocking", free | dict.fromkeys(BLOCKING, "1")),
        Pass("under deterministic algorithms", free | WORKSPACE, deterministic=True),
    )


def outcomes(
    order: dict[str, Any], limits: Limits, repeat: int, note: Callable[[str], None]
) -> Iterator[Outcome]:
    """Try each case `repeat` times in each pass; how it ended. Raises ChildFailedError."""
    longer = max(1.0, repeat / 10)
    limits = replace(limits, operation=limits.operation * longer, group=limits.group * longer)
    free, blocking, exact = passes(os.environ)
    tried = [_run(one, {**order, "repeat": repeat, "repeats": {}}, limits, note) for one in (free, blocking)]
    # once is enough to see whether it raises; what differs is tried as often as before
    drifting = {
        f"{group}/{name}": repeat
        for group, name in tried[0]
        if _differs(*(t.get((group, name)) for t in tried))
    }
    known = _run(exact, {**order, "repeat": 1, "repeats": drifting}, limits, note)
    for key, one in tried[0].items():
        yield judged(one, tried[1].get(key), known.get(key))


def _run(one: Pass, order: dict[str, Any], limits: Limits, note: Callable[[str], None]) -> Found:
    found: Found = {}
    group = ""
    words = {**order, "task": "bits", "deterministic": one.deterministic}
    for outcome in runner.outcomes(words, limits, one.env):
        if outcome.group != group:
            group = outcome.group
            note(f"{one.name}: {group}")
        found[outcome.group, outcome.name] = outcome
    return found


def _differs(free: Outcome | None, blocking: Outcome | None) -> bool:
    if free is None or blocking is None or free.state != "ok" or blocking.state != "ok":
        return False
    one, other = free.more, blocking.more
    return bool(one["differ"] or other["differ"] or one["first"] != other["first"])


def judged(free: Outcome, blocking: Outcome | None, exact: Outcome | None) -> Outcome:
    """How a case ended, by how it went in the three passes: ok, drift, or apart where torch itself says that
    it is nondeterministic, or takes an algorithm that is not only when asked. Pure."""
    lost = Outcome(free.group, free.name, "untried", "its process ended before")
    blocking, exact = blocking or lost, exact or lost
    for where, one in (("", free), ("with launch blocking: ", blocking)):
        if one.state != "ok":
            return replace(one, detail=f"{where}{one.detail}")
    counts = {"free": _count(free), "blocking": _count(blocking), "deterministic": _count(exact)}
    processes = free.more["first"] != blocking.more["first"]
    more = counts | {
        "between processes": processes,
        "example": free.more["example"] or blocking.more["example"],
    }
    seconds = round(free.seconds + blocking.seconds + exact.seconds, 3)
    made = Outcome(free.group, free.name, "ok", "", seconds=seconds, more=more)
    drifts = _differs(free, blocking)
    if exact.state == RAISES:
        how = _words(more) if drifts else f"{_same(free)}; it may differ"
        return replace(made, state="apart", detail=f"{how}: torch calls it nondeterministic ({exact.detail})")
    if not drifts:
        return replace(made, detail=_same(free))
    if _is_choice(blocking, exact):
        said = f"{_words(more)}: torch has an algorithm that repeats its bits, and takes it only when asked"
        return replace(made, state="apart", detail=said)
    cause, next_step = _cause(free, blocking)
    return replace(made, state="drift", detail=_words(more), cause=cause, next_step=next_step)


def _is_choice(blocking: Outcome, exact: Outcome) -> bool:
    """Whether it is torch's own choice: sums in an order that changes, even with launch blocking, but not
    under deterministic algorithms. What stops with launch blocking is not: a GPU or its libraries do that."""
    repeats = exact.state == "ok" and exact.more["runs"] > 1 and not exact.more["differ"]
    return bool(blocking.more["differ"]) and repeats


def _count(one: Outcome) -> str:
    """How many runs differ from the first: 3/50."""
    if one.state == RAISES:
        return RAISES
    return f"{one.more['differ']}/{one.more['runs']}" if one.state == "ok" else one.state


def _same(free: Outcome) -> str:
    return f"{free.more['runs']} runs in each of two processes, the same bits"


def _words(more: Mapping[str, Any]) -> str:
    told = [
        f"{more['free']} runs differ without launch blocking, {more['blocking']} with it",
        f"under deterministic algorithms: {more['deterministic']}",
    ]
    told += ["the two processes differ"] if more["between processes"] else []
    return "; ".join([*told, *([more["example"]] if more["example"] else [])])


def _cause(free: Outcome, blocking: Outcome) -> tuple[str, str]:
    if not (free.more["differ"] or blocking.more["differ"]):
        return (
            "each process repeats its own bits: the two took another algorithm",
            "run the suite again: a library that measures and then chooses (MIOpen, cuBLASLt) may do so",
        )
    if not blocking.more["differ"]:
        return (
            "kernels that run at the same time disturb each other, or one starts before another has ended",
            f"set {BLOCKING[0]}=1 for what uses it: with it, it gave the same bits each time",
        )
    return (
        "nothing that was tried makes it repeat its bits",
        f"run it alone with --only '{free.group}/{free.name}'; then look for a known fault of the target",
    )


def table(found: Sequence[tuple[str, str, Outcome]]) -> list[str]:
    """What is not deterministic, on each device: runs that differ, in each pass."""
    lines: list[str] = []
    devices = dict.fromkeys(device for suite, device, _ in found if suite == "drift")
    for device in devices:
        mine = [
            o
            for suite, where, o in found
            if suite == "drift" and where == device and o.state in ("drift", "apart")
        ]
        tried = sum(suite == "drift" and where == device for suite, where, _ in found)
        lines.append(f"not deterministic on {device}: {sum(o.state == 'drift' for o in mine)} of {tried}")
        if not mine:
            continue
        width = max(len(f"{o.group}/{o.name}") for o in mine)
        lines.append(f"  {'':<{width}}  {'alone':>7} {'blocking':>8} {'determ.':>7}  processes")
        for one in sorted(mine, key=lambda o: o.state, reverse=True):
            more = one.more
            between = "differ" if more["between processes"] else "same"
            raises = more["deterministic"] == RAISES
            known = "torch calls it nondeterministic" if raises else "torch has another algorithm"
            apart = f"  {known}" if one.state == "apart" else ""
            name = f"{one.group}/{one.name}"
            lines.append(
                f"  {name:<{width}}  {more['free']:>7} {more['blocking']:>8} {more['deterministic']:>7}"
                f"  {between}{apart}"
            )
    return lines
