"""What a machine can do: stacks by GPU, native or by an override, and what each takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from rocbase.model import Frozen
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Component, Stack
from rocwright.catalog.target import Takes, Target
from rocwright.diagnosis.machine.model import Machine
from rocwright.doctor.needs import BuildNeed
from rocwright.plan.resolve.evidence import Evidence
from rocwright.records.model import SAID, Cell, Said

How = Literal["native", "override", "not served"]
_NAMED = 4


class Able(Frozen):
    """A stack on a GPU. `row` says that rocwright comes with a lock for it, `said` the most that was seen of
    it (nothing: nobody has tried it). `took` is what a whole build took on this machine, in wall seconds.

    `lacks` are components of it that the card has no code of, with the words of the facts. If its
    plan does not say how much disk it needs, `others` is what building for this target took others.
    """

    stack: str
    target: str
    how: How
    why: str = ""
    row: bool
    said: Said | Literal[""] = ""
    need: BuildNeed
    took: float | None = None
    jobs: int
    lacks: dict[str, str] = {}
    others: Takes | None = None


def able(
    machine: Machine,
    catalog: Catalog,
    stacks: Iterable[str],
    records: Iterable[Evidence],
    cells: Iterable[Cell],
    needs: Mapping[tuple[str, str], BuildNeed],
) -> tuple[Able, ...]:
    """Each stack on each kind of GPU that is here and known, with the `needs` by target and stack."""
    evidence = list(records)
    took = {(cell.stack, cell.gpu): cell.whole_seconds for cell in sorted(cells, key=lambda cell: cell.at)}
    return tuple(
        _able(
            machine,
            catalog,
            catalog.stack(name),
            target,
            evidence,
            took.get((name, target)),
            needs[target, name],
        )
        for target in targets_here(machine, catalog)
        for name in stacks
    )


def targets_here(machine: Machine, catalog: Catalog) -> tuple[str, ...]:
    """Return the targets of the machine's GPUs that the catalog has facts of, each once."""
    targets = (gpu.target for gpu in machine.gpus if gpu.target in catalog.targets)
    return tuple(dict.fromkeys(target for target in targets if target is not None))


def _able(
    machine: Machine,
    catalog: Catalog,
    stack: Stack,
    target: str,
    evidence: list[Evidence],
    took: float | None,
    need: BuildNeed,
) -> Able:
    card = catalog.targets[target]
    rows = [row for row in stack.row if row.gpu == target]
    how, reason = served(catalog, stack, target)
    lacks = lacking(stack, card)
    # a row says how it is done all the same
    if lacks and not rows and how != "not served":
        how, reason = "not served", "; ".join(f"{name} for {target}: {lack}" for name, lack in lacks.items())
    if need.reason and how != "not served":
        how, reason = "not served", need.reason
    levels = [
        record.said
        for record in evidence
        if record.stack == stack.name and (not record.gpu or target in record.gpu) and rows
    ]
    job_limit = need.outlook.jobs if need.outlook else machine.processors
    return Able(
        stack=stack.name,
        target=target,
        how=how,
        why=reason,
        row=bool(rows),
        said=max(levels, key=SAID.index, default=""),
        need=need,
        took=took,
        jobs=min(job_limit, card.takes.jobs or job_limit),
        lacks=lacks,
        others=None if need.disk or card.takes == Takes() else card.takes,
    )


def lacking(stack: Stack, target: Target) -> dict[str, str]:
    """The components of a stack that are, or are a kind of, what a target has not."""
    return {
        name: lack
        for name in stack.components
        for feature, lack in target.lacks.items()
        if name == feature or name.startswith(f"{feature}-")
    }


def served(catalog: Catalog, stack: Stack, target: str) -> tuple[How, str]:
    """Whether a stack is for a target, by code for it or by an override, and why not."""
    components = [catalog.component(name) for name in stack.components]
    if stack.targets and target not in stack.targets:
        return "not served", f"it is for {', '.join(stack.targets)}"
    for component in components:
        reason = _refused(component, target)
        if reason:
            return "not served", reason
    serves = [(component.name, component.serve.env) for component in components if component.serve]
    overrides = [name for name, env in serves if catalog.override_variable in env]
    if overrides:
        return "override", f"{overrides[0]} makes the card pose as another GPU"
    return "native", ""


def _refused(component: Component, target: str) -> str:
    """Why no release of a component serves a target; nothing where one does."""
    reasons = []
    for release in component.release:
        if target in release.without:
            reasons.append(release.without[target])
        elif release.targets and target not in release.targets:
            reasons.append(f"{component.name} {release.version} is for {_some(release.targets)}")
    return reasons[0] if reasons and len(reasons) == len(component.release) else ""


def _some(names: tuple[str, ...]) -> str:
    """The first of some names, and how many more there are."""
    remaining = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {remaining} more" if remaining > 0 else "")
