"""What people and programs read: a table, lines behind the mark, JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smoke.runner import Outcome

MARK = "ROCWRIGHT-CHECK "


def mark(suite: str, device: str, outcome: Outcome) -> str:
    """One outcome as a line that rocwright reads."""
    return MARK + json.dumps(row(suite, device, outcome), sort_keys=True)


def row(suite: str, device: str, outcome: Outcome) -> dict[str, Any]:
    """One outcome as data; numbers that JSON has no word for are left out."""
    told = asdict(outcome)
    for name in ("error", "tolerance"):
        if told[name] is not None and not math.isfinite(told[name]):
            told[name] = None
    more = told.pop("more")
    told["name"] = f"{suite}: {outcome.group}/{outcome.name}"
    told["next"] = told.pop("next_step")
    return {"suite": suite, "device": device, "ok": outcome.ok, **told, **more, "detail": sentence(outcome)}


def sentence(outcome: Outcome) -> str:
    """The detail, the cause and the next step on one line, the state before them unless it went well."""
    if outcome.state == "ok":
        if not outcome.tolerance:
            return outcome.detail
        return f"{outcome.detail}, {outcome.tolerance:.2g} allowed"
    parts = [f"{outcome.state}: {outcome.detail}"]
    parts += [f"cause: {outcome.cause}"] if outcome.cause else []
    parts += [f"next: {outcome.next_step}"] if outcome.next_step else []
    return "; ".join(parts)


def table(found: Sequence[tuple[str, str, Outcome]]) -> list[str]:
    """One line for each group on each device, and under it what did not go well."""
    lines: list[str] = []
    groups: dict[tuple[str, str, str], list[Outcome]] = {}
    for suite, device, outcome in found:
        groups.setdefault((device, suite, outcome.group), []).append(outcome)
    width = max((len(f"{suite} {group}") for _, suite, group in groups), default=0)
    last = ""
    for (device, suite, group), outcomes in groups.items():
        if device != last:
            lines.append(f"on {device}")
            last = device
        lines.append(f"  {f'{suite} {group}':<{width}}  {summary(outcomes)}")
        left_out = [outcome.name for outcome in outcomes if outcome.state == "untried"]
        for outcome in outcomes:
            if outcome.state in ("ok", "untried"):
                continue
            word = outcome.state if outcome.ok else outcome.state.upper()
            lines.append(f"      {word:<7} {outcome.name}: {outcome.detail}")
            lines += [f"              cause  {outcome.cause}"] if outcome.cause else []
            lines += [f"              next   {outcome.next_step}"] if outcome.next_step else []
        if left_out:
            why = next(outcome.detail for outcome in outcomes if outcome.state == "untried")
            lines.append(f"      UNTRIED {why}: {', '.join(left_out)}")
    return lines


def summary(outcomes: Sequence[Outcome]) -> str:
    """How many of each state, seconds, and the worst error as a share of what is allowed."""
    states = {}
    for outcome in outcomes:
        states[outcome.state] = states.get(outcome.state, 0) + 1
    counted = ", ".join(f"{count} {state}" for state, count in states.items())
    shares = [
        (outcome.error / outcome.tolerance, outcome)
        for outcome in outcomes
        if outcome.state == "ok" and outcome.tolerance and outcome.error is not None
    ]
    told = f"{counted:<18}  {sum(one.seconds for one in outcomes):6.1f} s"
    if shares:
        share, worst = max(shares, key=lambda one: one[0])
        told += f"  worst {worst.name}: {worst.error:.2g} of {worst.tolerance:.2g} allowed ({share:.0%})"
    return told
