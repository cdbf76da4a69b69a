"""A person promotes: without waiting for the days, never without the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rocwright.cycle.channels import missing
from rocwright.cycle.row import Row
from rocwright.cycle.shown import shown
from rocwright.errors import InputError
from rocwright.flow import project_of
from rocwright.home import Home
from rocwright.models import Frozen
from rocwright.records.model import Promotion, Which, now
from rocwright.records.read import Records
from rocwright.resolve.model import Lock
from rocwright.resolve.settings import Channel


class Stand(Frozen):
    """How a cell stands to a channel: `why` it may not be promoted now, "" where nothing speaks against it.

    `run` says the most of the lock that would be promoted, whose sha256 is `lock`.
    """

    channel: Channel
    why: str
    run: str = ""
    lock: str = ""
    said: str = ""


def stands(
    records: Records, stack: str, gpu: str, base: str, channels: Sequence[Channel]
) -> tuple[Stand, ...]:
    """For each channel in order what speaks against promoting the cell's newest lock with evidence.

    The days that a channel asks for are left out: they are what a person may judge.
    """
    runs = records.runs(Which(stack=stack, gpu=gpu, base=base), limit=100, steps=False)
    lock = next((run.lock for run in runs if run.said and run.lock), "")
    if not lock:
        return tuple(Stand(channel=one, why="no lock with evidence is on record") for one in channels)
    mine = [run for run in runs if run.lock == lock]
    best, evidence = shown(records, mine)
    broken = mine[0].outcome in ("failed", "killed")
    held: dict[str, Promotion] = {}
    for promotion in records.promotions(stack=stack, gpu=gpu, base=base):
        held.setdefault(promotion.channel, promotion)
    found: list[Stand] = []
    for number, channel in enumerate(channels):
        before = held.get(channels[number - 1].name) if number else None
        holds = held.get(channel.name)
        why = missing(
            channel.model_copy(update={"days": 0.0}),
            evidence,
            before if before is not None and before.lock == lock else None,
            number > 0,
            datetime.now(UTC),
        )
        why = "its newest run failed" if broken and not why else why
        why = "it holds it already" if holds is not None and holds.lock == lock else why
        found.append(Stand(channel=channel, why=why, run=best, lock=lock, said=evidence.said))
    return tuple(found)


def promote(
    records: Records,
    where: Path,
    home: Home,
    cell: tuple[str, str, str],
    name: str,
    channels: Sequence[Channel],
    by: str,
) -> Promotion:
    """Make a cell's newest lock with evidence what a channel holds; its lock is kept in the project folder
    `where`. Raises InputError where something speaks against it."""
    stack, gpu, base = cell
    stand = next(
        (one for one in stands(records, stack, gpu, base, channels) if one.channel.name == name), None
    )
    why = "there is no such channel" if stand is None else stand.why
    if stand is None or why:
        raise InputError(
            f"{stack}, {gpu} on {base} is not promoted to {name}",
            cause=why,
            next_step="build and verify it first: rocwright build --verify",
        )
    kept = records.lock(stand.lock)
    if kept is None:
        raise InputError(
            f"the lock of {stack} is not on record any more", next_step="build it again, then promote it"
        )
    lock = Lock.model_validate_json(kept)
    # the lock first: a promotion on record has its lock, whenever this is killed
    Row.of(lock.request, where, project_of(lock.request, where, home)).hold(name, lock)
    made = Promotion(
        stack=stack,
        gpu=gpu,
        base=base,
        channel=name,
        run=stand.run,
        lock=stand.lock,
        at=now(),
        by=by,
        why=f"by hand; the evidence says {stand.said!r}",
    )
    records.promote(made)
    return made
