"""Which channels a lock has earned, from what is on record of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple

import re2

from rocbase.model import Frozen
from rocbase.toml.read import Reader, parse
from rocwright.catalog.folders import catalog_folders
from rocwright.plan.resolve.files import read_project
from rocwright.plan.resolve.folder import PROJECT
from rocwright.plan.resolve.settings import Channel, ChannelsFile
from rocwright.records.model import (
    ANEW,
    EMULATED,
    OWN_SHARDS,
    OWNER,
    SAID,
    Figure,
    Finding,
    Promotion,
)
from rocwright.verify.bench.statistics import LEAST_RUNS, pairs, slower

CHANNELS = "channels.toml"


def channels(own: Iterable[Channel] = ()) -> tuple[Channel, ...]:
    """The catalog's channels in order; a project's `own` stand in for those of their name, or last."""
    reader = Reader(catalog_folders())
    tables = [parse(ChannelsFile, reader.data(path), path) for path in reader.layers(CHANNELS)]
    by_name = {channel.name: channel for table in tables for channel in table.channel}
    return tuple((by_name | {channel.name: channel for channel in own}).values())


def channels_in(folder: Path) -> tuple[Channel, ...]:
    """The channels of the project in a folder; where there is none, the catalog's. Raises InputError."""
    path = folder / PROJECT
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
    previous: Promotion | None,
    needs_before: bool,
    moment: datetime,
    holds: Sequence[Figure] = (),
) -> Lack | None:
    """What a lock lacks for a channel; None where it has earned it.

    `previous` is its promotion to the channel before this one, which it must have where `needs_before`;
    `holds` is what was measured of the lock that the channel holds.
    """
    if shown.said not in SAID or SAID.index(shown.said) < SAID.index(channel.said):
        bring: Bring = "device" if channel.said == SAID[-1] and shown.said != "built" else "evidence"
        return Lack(
            f"the evidence says {shown.said or 'nothing'!r}; the channel needs {channel.said!r}", bring
        )
    wrong = [finding.name for finding in shown.findings if not finding.ok]
    if wrong:
        return Lack(f"not right: {', '.join(wrong[:3])}", "fix")
    checked = {finding.check for finding in shown.findings if not finding.absent}
    lacking = [name for name in channel.checks if name not in checked]
    if lacking == [ANEW] and (
        finding := next((finding for finding in shown.findings if finding.check == ANEW), None)
    ):
        return Lack(f"not recompiled: {finding.detail}", "anew")
    if lacking:
        return Lack(f"did not run: {', '.join(lacking)}", "evidence")
    if parts := next(
        (finding for finding in shown.findings if finding.check == OWN_SHARDS and finding.absent), None
    ):
        return Lack(f"compiled by others in part: {parts.detail}", "anew")
    owners = len({finding.name for finding in shown.findings if finding.check == OWNER}) or 1
    if owners < channel.agree:
        return Lack(f"built by {owners} of {channel.agree} owners who must agree", "owner")
    devices = sorted({finding.device for finding in shown.findings if finding.device})
    if channel.device and not any(_is_meant(channel.device, device) for device in devices):
        return Lack(
            f"ran on {', '.join(devices) or 'no device'}; the channel needs {channel.device}", "device"
        )
    if channel.slower is not None and (lack := _too_slow(channel.slower, shown.measured, holds)):
        return lack
    if not needs_before:
        return None
    if previous is None:
        return Lack("it is not in the channel before this one", "before")
    if not channel.days:
        return None
    since = moment - datetime.fromisoformat(previous.at.replace("Z", "+00:00"))
    if since < timedelta(0):
        return Lack("the clock was set back: its promotion is dated in the future", "time")
    remaining = timedelta(days=channel.days) - since
    if remaining <= timedelta(0):
        return None
    return Lack(f"it must stay in that channel for {channel.days:g} d: {_days(remaining)} left", "time")


def _too_slow(percent: float, measured: Sequence[Figure], holds: Sequence[Figure]) -> Lack | None:
    """Whether a lock is held back for its speed, by figures of enough runs on one device and machine."""
    figures = [figure for figure in measured if len(figure.values) >= LEAST_RUNS]
    baseline = [figure for figure in holds if len(figure.values) >= LEAST_RUNS]
    if not figures:
        return Lack(f"not measured with at least {LEAST_RUNS} runs", "bench")
    lost = sorted({figure.name for figure in baseline} - {new.name for _, new in pairs(baseline, figures)})
    if lost:
        return Lack(f"not measured where the lock before it was: {', '.join(lost[:3])}", "bench")
    worse = slower(baseline, figures, percent)
    return (
        Lack(f"slower than the lock that the channel holds: {'; '.join(worse[:3])}", "faster")
        if worse
        else None
    )


def _is_meant(pattern: str, device: str) -> bool:
    """Whether it ran where a channel asks for: an emulated GPU only where its pattern has that word."""
    emulated = device.startswith(f"{EMULATED} ") and EMULATED not in pattern
    return not emulated and re2.search(pattern, device) is not None


def _days(remaining: timedelta) -> str:
    hours = remaining.total_seconds() / 3600
    return f"{hours / 24:.1f} d" if hours > 48 else f"{hours:.0f} h"


def earned(
    channels: Sequence[Channel],
    shown: LockEvidence,
    promotions: Iterable[Promotion],
    lock: str,
    moment: datetime | None = None,
    measured: Callable[[str], Sequence[Figure]] = lambda lock: (),
) -> list[tuple[Channel, str]]:
    """Each channel with the reason why the lock (its sha256) is not promoted to it, "" where it is.

    Those that hold it already are left out. `promotions` are the promotions of the row, the newest first;
    `measured` gives the figures of another lock.
    """
    current = moment or datetime.now(UTC)
    newest: dict[str, Promotion] = {}
    for promotion in promotions:
        newest.setdefault(promotion.channel, promotion)
    verdicts: list[tuple[Channel, str]] = []
    previous: Promotion | None = None
    for number, channel in enumerate(channels):
        holds = newest.get(channel.name)
        if holds is not None and holds.lock == lock:
            previous = holds
            continue
        baseline = measured(holds.lock) if holds is not None and channel.slower is not None else ()
        lack = missing(channel, shown, previous, number > 0, current, baseline)
        verdicts.append((channel, lack.why if lack else ""))
        previous = (
            None
            if lack
            else Promotion(
                stack="", gpu="", base="", channel=channel.name, run="", lock=lock, at=current.isoformat()
            )
        )
    return verdicts
