"""What a step needs of a machine, and whether one has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rocbase.errors import InputError
from rocbase.units import size
from rocwright.execution.executor import Task
from rocwright.farm.handed import Place
from rocwright.model.steps import FetchAction, Step

# The feature of a machine that may fetch from elsewhere; a step that builds never does.
NETWORK = "network"


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Bytes of memory for one job and of disk, the architecture ("" for any), and features."""

    memory: int
    disk: int
    machine: str
    features: frozenset[str]


def needs_of(step: Step) -> Needs:
    """What a step needs at least."""
    return Needs(
        memory=step.resources.memory,
        disk=step.resources.disk,
        machine=step.runs_on,
        features=frozenset({NETWORK}) if isinstance(step.action, FetchAction) else frozenset(),
    )


def short_of(needs: Needs, place: Place) -> list[str]:
    """What a place lacks of it, in words."""
    lacks = []
    if place.memory < needs.memory:
        lacks.append(f"{size(place.memory)} memory of {size(needs.memory)}")
    if place.disk < needs.disk:
        lacks.append(f"{size(place.disk)} disk of {size(needs.disk)}")
    if needs.machine and place.machine != needs.machine:
        lacks.append(f"it is {place.machine or 'of an unknown kind'}, not {needs.machine}")
    lacks += [f"no {feature}" for feature in sorted(needs.features - place.features)]
    return lacks


def fits(needs: Needs, place: Place) -> bool:
    """Whether a place has all of it."""
    return not short_of(needs, place)


def fit_for(task: Task, places: Mapping[str, Place]) -> list[str]:
    """The names of the places that are fit for a task: of these, those with the memory that its first try did
    not have, or, where nobody has so much, those with the most."""
    needs = needs_of(task.step)
    fit = {name: place for name, place in places.items() if fits(needs, place)}
    required = min(task.memory, max((place.memory for place in fit.values()), default=0))
    return [name for name, place in fit.items() if place.memory >= required]


def nobody_has(step: Step, places: Sequence[Place]) -> InputError:
    """The error of a step that no place of a farm is fit for, with the nearest."""
    needs = needs_of(step)
    nearest = min(places, key=lambda place: (len(short_of(needs, place)), -place.memory), default=None)
    return InputError(
        f"no machine of the farm can run {step.name}",
        cause=f"the nearest is {nearest.name}: {', '.join(short_of(needs, nearest))}"
        if nearest is not None
        else "there is none that takes anything now",
        next_step="start a worker on a machine that has it: rocwright farm worker",
    )
