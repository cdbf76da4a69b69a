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
from rocwright.follow.cycle.channels import Bring, missing
from rocwright.follow.cycle.shown import promotions_of as held_by
from rocwright.follow.cycle.shown import shown
from rocwright.plan.resolve.files import read_project
from rocwright.plan.resolve.folder import PROJECT
from rocwright.plan.resolve.model import Lock, Request, row_name
from rocwright.plan.resolve.settings import Channel
from rocwright.records.model import Promotion, Which
from rocwright.records.read import Records
from rocwright.verify.bench.on_record import measured


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
    records: Records, folder: Path, place: ChannelPlace, channels: Sequence[Channel]
) -> tuple[Stand, ...]:
    """For each channel in order what speaks against promoting the cell's newest lock with evidence; `folder`
    is the project's folder.

    The days that a channel asks for are left out: they are what a person may judge.
    """
    stack, gpu, base, variant = place
    promotions: dict[str, Promotion] = {}
    for promotion in held_by(records, stack=stack, gpu=gpu, base=base, variant=variant):
        promotions.setdefault(promotion.channel, promotion)
    which = Which(stack=stack, gpu=gpu, base=base, variant=variant)
    runs = records.runs(which, limit=100, steps=False)
    lock = next((run.lock for run in runs if run.said and run.lock), "")
    mine = [run for run in runs if run.lock == lock]
    best, evidence = shown(records, mine)
    broken = bool(lock) and mine[0].outcome in ("failed", "killed")
    build = f"rocwright build {shlex.join(_request_of(records, folder, place, lock).words)} --verify"
    entries: list[Stand] = []
    for number, channel in enumerate(channels):
        previous = promotions.get(channels[number - 1].name) if number else None
        holds = promotions.get(channel.name)
        speeds = (
            measured(records, replace(which, lock=holds.lock))
            if holds is not None and channel.slower is not None
            else ()
        )
        lack = missing(
            channel.model_copy(update={"days": 0.0}),
            evidence,
            previous if previous is not None and previous.lock == lock else None,
            number > 0,
            datetime.now(UTC),
            speeds,
        )
        if not lock:
            reason, next_step = "no lock with evidence is on record", build
        elif holds is not None and holds.lock == lock:
            reason, next_step = (
                "the channel has this lock already",
                "rocwright promote shows what each channel holds",
            )
        elif lack is not None:
            first = f"rocwright promote {place.name} --to {channels[number - 1].name}"
            reason, next_step = lack.why, first if lack.bring == "before" else _brings(lack.bring, build)
        else:
            reason, next_step = ("its newest run failed", build) if broken else ("", "")
        entries.append(
            Stand(
                channel=channel,
                why=reason,
                next_step=next_step,
                run=best,
                lock=lock,
                said=evidence.said,
                holds=holds.lock if holds else "",
                since=holds.at if holds else "",
            )
        )
    return tuple(entries)


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


def _request_of(records: Records, folder: Path, place: ChannelPlace, lock: str) -> Request:
    """What a cell is asked for with: as the project says, else as its lock does, else by its words."""
    row = row_in(folder, place)
    if row is not None:
        return row
    text = records.lock(lock) if lock else None
    # a lock of another version may be one that this version cannot read
    with contextlib.suppress(ValidationError):
        if text is not None:
            return Lock.model_validate_json(text).request
    return Request(stack=place.stack, gpu=(place.gpu,), base=place.base)


def row_in(folder: Path, place: ChannelPlace) -> Request | None:
    """The row of the project in `folder` that a cell is of; None where it is of none."""
    cell = (place.stack, place.base, place.variant)
    return next(
        (row for row in _rows(folder) if place.gpu in row.gpu and (row.stack, row.base, row.variant) == cell),
        None,
    )


def _rows(folder: Path) -> Sequence[Request]:
    path = folder / PROJECT
    return read_project(path).rows if path.exists() else ()


def places(records: Records, folder: Path, *, all_: bool = False) -> dict[str, ChannelPlace]:
    """By name, the rows of the project in `folder`; where there is none, or with `all_`, every cell
    on record too. Raises InputError for a project file that cannot be read."""
    rows = _rows(folder)
    by_name = {row.name: ChannelPlace(row.stack, row.gpu[0], row.base, row.variant) for row in rows}
    if all_ or not rows:
        existing = set(by_name.values())
        cells = (ChannelPlace(cell.stack, cell.gpu, cell.base, cell.variant) for cell in records.matrix())
        by_name |= {place.name: place for place in cells if place not in existing}
    return by_name
