"""Which machine of a farm a step goes to, and when: once one that is fit for it has room."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rocwright.execution.estimate import most_jobs
from rocwright.execution.executor import Task
from rocwright.farm.handed import Place
from rocwright.farm.needs import fit_for

# The names of the machines that are fit, and the cores that can be used at most.
_Group = tuple[tuple[str, ...], int]


@dataclass(frozen=True, slots=True)
class Placed:
    """A task, the name of the machine that it goes to, and the cores that it takes there."""

    task: Task
    where: str
    cores: int


@dataclass(slots=True)
class Waiting:
    """Tasks that compile, until a machine that is fit has as many cores free as they can use of it.

    What is handed to a machine cannot go to another: behind a step of hours it would wait for hours, while
    other machines have nothing to do.
    """

    _groups: dict[_Group, list[tuple[int, int, Task]]] = field(default_factory=dict)
    _count: int = 0

    def __len__(self) -> int:
        return sum(map(len, self._groups.values()))

    def add(self, task: Task, places: Mapping[str, Place]) -> bool:
        """Have a task wait; not where no place is fit for it. Whether it waits."""
        fit = fit_for(task, places)
        if fit:
            self._count += 1
            group = self._groups.setdefault((tuple(fit), task.step.resources.cores), [])
            heapq.heappush(group, (task.priority, self._count, task))
        return bool(fit)

    def remove(self, task: Task) -> bool:
        """Let a task not wait any more; whether it did."""
        previous = len(self)
        for group in self._groups.values():
            group[:] = [item for item in group if item[2] != task]
            heapq.heapify(group)
        self._drop_empty()
        return len(self) < previous

    def fit(self) -> dict[str, tuple[str, ...]]:
        """The names of the places that are fit, by the id of each task."""
        return {item[2].id: fit for (fit, _), group in self._groups.items() for item in group}

    def renew(self, places: Mapping[str, Place]) -> None:
        """Look anew which places are fit; a task for which none of these is goes on waiting for its own."""
        groups, self._groups = self._groups, {}
        for (old_fit, cores), group in groups.items():
            for item in group:
                fit = tuple(fit_for(item[2], places)) or old_fit
                heapq.heappush(self._groups.setdefault((fit, cores), []), item)

    def _drop_empty(self) -> None:
        self._groups = {key: group for key, group in self._groups.items() if group}

    def place(
        self, places: Mapping[str, Place], busy: Mapping[str, int], foreign: Mapping[str, int]
    ) -> Iterator[Placed]:
        """Those that have a place now, by their priority; they do not wait any more.

        `busy` are the cores of each place that are taken, `foreign` those that other builds have: of several
        places with room, the one with most cores that nobody has is chosen.
        """
        free = {name: place.cores - busy.get(name, 0) for name, place in places.items()}
        while True:
            candidates = []
            for key, group in self._groups.items():
                name = _best(key[0], group[0][2], places, free, foreign)
                if name is not None:
                    candidates.append((group[0][:2], key, name))
            if not candidates:
                return
            _, key, name = min(candidates)
            _, _, task = heapq.heappop(self._groups[key])
            self._drop_empty()
            cores = most_jobs(task.step, places[name].cores)
            free[name] -= cores
            yield Placed(task, name, cores)


def _best(
    fit: Sequence[str],
    task: Task,
    places: Mapping[str, Place],
    free: Mapping[str, int],
    foreign: Mapping[str, int],
) -> str | None:
    """The place with most cores that nobody has, of those with room; None where none has room."""
    room = [name for name in fit if name in free and free[name] >= most_jobs(task.step, places[name].cores)]
    return max(room, key=lambda name: free[name] - foreign.get(name, 0), default=None)


def others_have(places: Mapping[str, Place], ours: set[str]) -> dict[str, int]:
    """The cores of each place that steps of other builds have, whose keys are not `ours`."""
    return {
        name: sum(run.jobs for run in place.runs if run.key not in ours) for name, place in places.items()
    }
