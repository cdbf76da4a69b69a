"""How the cells of the matrix stand to the channels, and what would bring them on."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from rocbase.model import Frozen
from rocwright.bench.on_record import measured
from rocwright.cycle.channels import Bring, missing
from rocwright.cycle.shown import held as held_by
from rocwright.cycle.shown import shown
from rocwright.records.model import Promotion, Which
from rocwright.records.read import Records
from rocwright.resolve.files import PROJECT, read_project
from rocwright.resolve.model import Lock, Request, row_name
from rocwright.resolve.settings import Channel


class ChannelPlace(NamedTuple):
    """A cell of the matrix."""

    stack: str
    gpu: str
    base: str
    variant: str = ""

    @property
    def name(self) -> str:
        """What it is called as a row."""
        return row_name(self.stack, (self.gpu,), self.base, self.variant)


class Stand(Frozen):
    """How a cell stands to a channel: `why` its newest lock may not be promoted now, "" where nothing speaks
    against it, and what to do about that.

    `run` says the most of the lock that would be promoted, whose sha256 is `lock`. `holds` is the lock that
    the channel holds, `since` when it came there.
    """

    channel: Channel
    why: str
    next_step: str = ""
    run: str = ""
    lock: str = ""
    said: str = ""
    holds: str = ""
    since: str = ""


def stands(
    records: Records, where: Path, place: ChannelPlace, channels: Sequence[Channel]
) -> tuple[Stand, ...]:
    """For each channel in order what speaks against promoting the cell's newest lock with evidence; `where`
    is the project's folder.

    The days that a channel asks for are left out: they are what a person may judge.
    """
    stack, gpu, base, variant = place
    held: dict[str, Promotion] = {}
    for promotion in held_by(records, stack=stack, gpu=gpu, base=base, variant=variant):
        held.setdefault(promotion.channel, promotion)
    which = Which(stack=stack, gpu=gpu, base=base, variant=variant)
    runs = records.runs(which, limit=100, steps=False)
    lock = next((run.lock for run in runs if run.said and run.lock), "")
    mine = [run for run in runs if run.lock == lock]
    best, evidence = shown(records, mine)
    broken = bool(lock) and mine[0].outcome in ("failed", "killed")
    build = f"rocwright build {shlex.join(_asked(records, where, place, lock).words)} --verify"
    found: list[Stand] = []
    for number, channel in enumerate(channels):
        before = held.get(channels[number - 1].name) if number else None
        holds = held.get(channel.name)
        speeds = (
            measured(records, replace(which, lock=holds.lock))
            if holds is not None and channel.slower is not None
            else ()
        )
        lack = missing(
            channel.model_copy(update={"days": 0.0}),
            evidence,
            before if before is not None and before.lock == lock else None,
            number > 0,
            datetime.now(UTC),
            speeds,
        )
        if not lock:
            why, next_step = "no lock with evidence is on record", build
        elif holds is not None and holds.lock == lock:
            why, next_step = (
                "the channel has this lock already",
                "rocwright promote shows what each channel holds",
            )
        elif lack is not None:
            first = f"rocwright promote {place.name} --to {channels[number - 1].name}"
            why, next_step = lack.why, first if lack.bring == "before" else _brings(lack.bring, build)
        else:
            why, next_step = ("its newest run failed", build) if broken else ("", "")
        found.append(
            Stand(
                channel=channel,
                why=why,
                next_step=next_step,
                run=best,
                lock=lock,
                said=evidence.said,
                holds=holds.lock if holds else "",
                since=holds.at if holds else "",
            )
        )
    return tuple(found)


def _brings(bring: Bring, build: str) -> str:
    """What to do for what a lock lacks; `build` is the command that builds and verifies it."""
    match bring:
        case "device":
            return f"on a machine with such a device and the same records: {build}"
        case "fix":
            return f"fix what fails, then {build}"
        case "anew":
            words = build.removeprefix("rocwright build ").removesuffix(" --verify")
            return f"rocwright reproduce {words}, then rocwright verify {words}"
        case "bench" | "faster":
            words = build.removeprefix("rocwright build ").removesuffix(" --verify")
            return f"rocwright bench {words}, on the machine and the device of the lock before it"
        case "owner":
            return f"somebody whose key is trusted here pushes the same to a shared store; then {build}"
        case _:
            return build


def _asked(records: Records, where: Path, place: ChannelPlace, lock: str) -> Request:
    """What a cell is asked for with: as the project says, else as its lock does, else by its words."""
    row = row_in(where, place)
    if row is not None:
        return row
    kept = records.lock(lock) if lock else None
    # a lock of another version may be one that this version cannot read
    with contextlib.suppress(ValidationError):
        if kept is not None:
            return Lock.model_validate_json(kept).request
    return Request(stack=place.stack, gpu=(place.gpu,), base=place.base)


def row_in(where: Path, place: ChannelPlace) -> Request | None:
    """The row of the project in the folder `where` that a cell is of; None where it is of none."""
    wanted = (place.stack, place.base, place.variant)
    return next(
        (
            one
            for one in _rows(where)
            if place.gpu in one.gpu and (one.stack, one.base, one.variant) == wanted
        ),
        None,
    )


def _rows(where: Path) -> Sequence[Request]:
    path = where / PROJECT
    return read_project(path).rows if path.exists() else ()


def places(records: Records, where: Path, *, all_: bool = False) -> dict[str, ChannelPlace]:
    """By name, the rows of the project in the folder `where`; where there is none, or with `all_`, every cell
    on record too. Raises InputError for a project file that cannot be read."""
    rows = _rows(where)
    found = {one.name: ChannelPlace(one.stack, one.gpu[0], one.base, one.variant) for one in rows}
    if all_ or not rows:
        known = set(found.values())
        cells = (ChannelPlace(one.stack, one.gpu, one.base, one.variant) for one in records.matrix())
        found |= {one.name: one for one in cells if one not in known}
    return found
