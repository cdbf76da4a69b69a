"""Which channels a lock has earned, from what is on record of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple

import re2

from rocbase.model import Frozen
from rocbase.toml.read import Reader, parse
from rocwright.bench.statistics import LEAST_RUNS, pairs, slower
from rocwright.catalog.folders import catalog_folders
from rocwright.records.model import ANEW, EMULATED, OWN_SHARDS, OWNER, SAID, Figure, Finding, Promotion
from rocwright.resolve.files import PROJECT, read_project
from rocwright.resolve.settings import Channel

CHANNELS = "channels.toml"


class ChannelsFile(Frozen):
    """channels.toml."""

    channel: tuple[Channel, ...] = ()


def channels(own: Iterable[Channel] = ()) -> tuple[Channel, ...]:
    """The catalog's channels in order; a project's `own` stand in for those of their name, or last."""
    reader = Reader(catalog_folders())
    tables = [parse(ChannelsFile, reader.data(path), path) for path in reader.layers(CHANNELS)]
    found = {one.name: one for table in tables for one in table.channel}
    return tuple((found | {one.name: one for one in own}).values())


def channels_in(where: Path) -> tuple[Channel, ...]:
    """The channels of the project in a folder; where there is none, the catalog's. Raises InputError."""
    path = where / PROJECT
    return channels(read_project(path).channel if path.exists() else ())


class LockEvidence(Frozen):
    """What a lock has shown: the most that evidence says of it, the findings of its checks, and what was
    measured of it."""

    said: str
    findings: tuple[Finding, ...] = ()
    measured: tuple[Figure, ...] = ()


Bring = Literal["evidence", "device", "fix", "before", "time", "anew", "owner", "bench", "faster"]


class Lack(NamedTuple):
    """Why a lock has not earned a channel, in words, and what would bring it: evidence, evidence of a
    device, a check that is fixed, the channel before, time, a second build without a compiler cache, another
    owner who builds the same, a measurement, or a build that is as fast as what the channel holds."""

    why: str
    bring: Bring


def missing(
    channel: Channel,
    shown: LockEvidence,
    before: Promotion | None,
    needs_before: bool,
    now: datetime,
    holds: Sequence[Figure] = (),
) -> Lack | None:
    """What a lock lacks for a channel; None where it has earned it.

    `before` is its promotion to the channel before this one, which it must have where `needs_before`; `holds`
    is what was measured of the lock that the channel holds.
    """
    if shown.said not in SAID or SAID.index(shown.said) < SAID.index(channel.said):
        bring: Bring = "device" if channel.said == SAID[-1] and shown.said != "built" else "evidence"
        return Lack(
            f"the evidence says {shown.said or 'nothing'!r}; the channel needs {channel.said!r}", bring
        )
    wrong = [one.name for one in shown.findings if not one.ok]
    if wrong:
        return Lack(f"not right: {', '.join(wrong[:3])}", "fix")
    done = {one.check for one in shown.findings if not one.absent}
    lacking = [name for name in channel.checks if name not in done]
    if lacking == [ANEW] and (told := next((one for one in shown.findings if one.check == ANEW), None)):
        return Lack(f"not recompiled: {told.detail}", "anew")
    if lacking:
        return Lack(f"did not run: {', '.join(lacking)}", "evidence")
    if parts := next((one for one in shown.findings if one.check == OWN_SHARDS and one.absent), None):
        return Lack(f"compiled by others in part: {parts.detail}", "anew")
    owners = len({one.name for one in shown.findings if one.check == OWNER}) or 1
    if owners < channel.agree:
        return Lack(f"built by {owners} of {channel.agree} owners who must agree", "owner")
    devices = sorted({one.device for one in shown.findings if one.device})
    if channel.device and not any(_is_meant(channel.device, one) for one in devices):
        return Lack(
            f"ran on {', '.join(devices) or 'no device'}; the channel needs {channel.device}", "device"
        )
    if channel.slower is not None and (lack := _too_slow(channel.slower, shown.measured, holds)):
        return lack
    if not needs_before:
        return None
    if before is None:
        return Lack("it is not in the channel before this one", "before")
    if not channel.days:
        return None
    since = now - datetime.fromisoformat(before.at.replace("Z", "+00:00"))
    if since < timedelta(0):
        return Lack("the clock was set back: its promotion is dated in the future", "time")
    left = timedelta(days=channel.days) - since
    if left <= timedelta(0):
        return None
    return Lack(f"it must stay in that channel for {channel.days:g} d: {_days(left)} left", "time")


def _too_slow(percent: float, measured: Sequence[Figure], holds: Sequence[Figure]) -> Lack | None:
    """Whether a lock is held back for its speed, by figures of enough runs on one device and machine."""
    told = [one for one in measured if len(one.values) >= LEAST_RUNS]
    known = [one for one in holds if len(one.values) >= LEAST_RUNS]
    if not told:
        return Lack(f"not measured with at least {LEAST_RUNS} runs", "bench")
    lost = sorted({one.name for one in known} - {new.name for _, new in pairs(known, told)})
    if lost:
        return Lack(f"not measured where the lock before it was: {', '.join(lost[:3])}", "bench")
    worse = slower(known, told, percent)
    return (
        Lack(f"slower than the lock that the channel holds: {'; '.join(worse[:3])}", "faster")
        if worse
        else None
    )


def _is_meant(pattern: str, device: str) -> bool:
    """Whether it ran where a channel asks for: an emulated GPU only where its pattern has that word."""
    emulated = device.startswith(f"{EMULATED} ") and EMULATED not in pattern
    return not emulated and re2.search(pattern, device) is not None


def _days(left: timedelta) -> str:
    hours = left.total_seconds() / 3600
    return f"{hours / 24:.1f} d" if hours > 48 else f"{hours:.0f} h"


def earned(
    wanted: Sequence[Channel],
    shown: LockEvidence,
    held: Iterable[Promotion],
    lock: str,
    now: datetime | None = None,
    measured: Callable[[str], Sequence[Figure]] = lambda lock: (),
) -> list[tuple[Channel, str]]:
    """Each channel with the reason why the lock (its sha256) is not promoted to it, "" where it is.

    Those that hold it already are left out. `held` are the promotions of the row, the newest first;
    `measured` gives the figures of another lock.
    """
    at = now or datetime.now(UTC)
    newest: dict[str, Promotion] = {}
    for one in held:
        newest.setdefault(one.channel, one)
    found: list[tuple[Channel, str]] = []
    before: Promotion | None = None
    for number, channel in enumerate(wanted):
        holds = newest.get(channel.name)
        if holds is not None and holds.lock == lock:
            before = holds
            continue
        known = measured(holds.lock) if holds is not None and channel.slower is not None else ()
        lack = missing(channel, shown, before, number > 0, at, known)
        found.append((channel, lack.why if lack else ""))
        before = (
            None
            if lack
            else Promotion(
                stack="", gpu="", base="", channel=channel.name, run="", lock=lock, at=at.isoformat()
            )
        )
    return found
