"""A person promotes: without waiting for the days, never without the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rocbase.errors import InputError
from rocwright.follow.cycle.row import FollowedRow
from rocwright.follow.cycle.shown import failed_here
from rocwright.follow.cycle.stands import ChannelPlace, row_in, stands
from rocwright.home import Home
from rocwright.plan.resolve.model import Lock
from rocwright.plan.resolve.settings import Channel
from rocwright.project import project_of
from rocwright.records.model import Promotion, now
from rocwright.records.read import Records


def promote(
    records: Records,
    folder: Path,
    home: Home,
    place: ChannelPlace,
    name: str,
    channels: Sequence[Channel],
    promoter: str,
) -> Promotion:
    """Make a cell's newest lock with evidence what a channel holds; its lock is kept in the project's
    `folder`. With `name` "", the first channel that holds another lock. Raises InputError where something
    speaks against it, with what would mend that."""
    entries = stands(records, folder, place, channels)
    if name:
        stand = next((entry for entry in entries if entry.channel.name == name), None)
    else:
        stand = next((entry for entry in entries if not entry.lock or entry.holds != entry.lock), entries[-1])
    if stand is None:
        raise InputError(
            f"{place.name} is not promoted to {name}",
            cause=f"there is no such channel; there are {', '.join(channel.name for channel in channels)}",
            next_step="rocwright promote shows what each channel holds",
        )
    name = stand.channel.name
    if stand.why:
        raise InputError(
            f"{place.name} is not promoted to {name}", cause=stand.why, next_step=stand.next_step
        )
    lock_text = records.lock(stand.lock)
    if lock_text is None:
        raise InputError(
            f"the lock of {place.name} is no longer on record",
            cause="the records were replaced or pruned since it was built",
            next_step=f"build and verify it again, then: rocwright promote {place.name}",
        )
    lock = Lock.model_validate_json(lock_text)
    if failed := failed_here(project_of(lock.request, folder, home), lock):
        raise InputError(
            f"{place.name} is not promoted to {name}",
            cause=failed,
            next_step="fix what fails, then build and verify it again",
        )
    row = row_in(folder, place)
    row = row if row is not None and row.gpu == lock.request.gpu else lock.request
    # the lock first: a promotion on record has its lock, whenever this is killed
    FollowedRow.of(row, folder, project_of(row, folder, home)).hold(name, lock)
    promotion = Promotion(
        stack=place.stack,
        gpu=place.gpu,
        base=place.base,
        variant=place.variant,
        channel=name,
        run=stand.run,
        lock=stand.lock,
        at=now(),
        by=promoter,
        why=f"by hand; the evidence says {stand.said!r}",
    )
    for gpu in lock.request.gpu:
        records.promote(promotion.model_copy(update={"gpu": gpu}))
    return promotion
