"""Which stack is run where none is named: the one of which most was seen on the card."""

from __future__ import annotations

from pathlib import Path, PurePath

from rocbase.errors import InputError
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Component, Serve, Stack
from rocwright.catalog.model_files import model_facts
from rocwright.catalog.server import GPU, Compute
from rocwright.home import Home
from rocwright.plan.resolve.evidence import Evidence, shipped_evidence
from rocwright.records.model import SAID
from rocwright.serving.models.tiny import is_tiny, maker_named
from rocwright.serving.words import compute_named
from rocwright.verify.small_models import LLAMA
from rocwright.verify.standing import local_evidence


def served_component(catalog: Catalog, stack: str) -> Component | None:
    """The component of a stack that is run as a server."""
    components = (catalog.component(name) for name in catalog.stack(stack).components)
    return next((component for component in components if component.server is not None), None)


def best_stack(catalog: Catalog, target: str, home: Home, model: str) -> str:
    """The stack with a server for `model` of which most was seen on `target`, here or by others; of equals
    that which asks less of the machine. One that likes the model's format best goes before others. Raises
    InputError where there is none."""
    evidence = [*shipped_evidence(catalog), *local_evidence(home)]
    able = [stack for stack in catalog.stacks.values() if _serves(catalog, stack, target, model)]
    if not able:
        raise InputError(
            f"nothing here serves {model or 'a model'} on {target}",
            cause="no stack for it has a server that takes it",
            next_step="rocwright stacks shows what there is",
        )
    return max(
        able,
        key=lambda stack: (-_liking(catalog, stack, model), *_standing(catalog, stack, target, evidence)),
    ).name


def _serves(catalog: Catalog, stack: Stack, target: str, model: str) -> bool:
    component = served_component(catalog, stack.name)
    if component is None or component.server is None or (stack.targets and target not in stack.targets):
        return False
    if component.kind != "archive" or all(target in release.without for release in component.release):
        return False
    kinds = component.server.models
    if not model or is_tiny(model):
        return component.server.tiny == maker_named(model, LLAMA)
    # a folder, or a repository of a hub, does not tell before it was looked into
    return bool(kinds) if not PurePath(model).suffix else _liking(catalog, stack, model) < len(kinds)


def _liking(catalog: Catalog, stack: Stack, model: str) -> int:
    """The place of a model's format, as its name tells it, among those that a stack's server takes; how many
    those are where it takes it not, 0 where the name tells nothing."""
    component = served_component(catalog, stack.name)
    assert component is not None and component.server is not None, "it was looked for by that"
    kinds, ending = component.server.models, PurePath(model).suffix
    if not ending or is_tiny(model):
        return 0
    endings = {kind.name: kind.names for kind in model_facts().format}
    return next(
        (position for position, kind in enumerate(kinds) if ending in endings.get(kind, ())), len(kinds)
    )


def _standing(
    catalog: Catalog, stack: Stack, target: str, evidence: list[Evidence]
) -> tuple[int, bool, bool]:
    """How much was seen, whether it needs no ROCm, whether it has a row. What ran without a card says as much
    in software as on an emulated one."""
    needs_rocm = any(catalog.component(name).system.rocm for name in stack.components)
    ranks = [
        1 + SAID.index("ran in software" if entry.said == "ran on an emulated GPU" else entry.said)
        for entry in evidence
        if entry.stack == stack.name and (not entry.gpu or target in entry.gpu)
    ]
    return max(ranks, default=0), not needs_rocm, any(row.gpu == target for row in stack.row)


def compute_for(component: Component, card: str, requested: str, *, dry: bool = False) -> Compute:
    """What a server computes on: what is asked for, else the `card` that is in this machine, else the first
    that its recipe has beside a GPU. A `dry` run starts nothing, and needs no card. Raises InputError."""
    server = component.server
    assert server is not None, "it was looked for by that"
    if requested and requested != GPU:
        return compute_named(server, requested)
    devices = (component.serve or Serve()).devices
    missing = [name for name in devices if not Path(name).exists()]
    if (card and not missing) or (dry and (requested == GPU or not server.compute)):
        return compute_named(server, GPU)
    if not requested and server.compute:
        return server.compute[0]
    raise InputError(
        f"{component.name} has no GPU here",
        cause=f"not there: {', '.join(missing)}" if missing else "no AMD GPU of that kind is in this machine",
        next_step=f"--on {server.compute[0].name}"
        if server.compute
        else "rocwright doctor tells why; rocwright run --model tiny takes a stack that needs no GPU",
    )
