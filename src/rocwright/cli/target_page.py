"""What the catalog knows of one target: labels and texts, few or all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rocwright.catalog.load import Catalog
from rocwright.catalog.provider import EVERYWHERE
from rocwright.catalog.target import Quirk, Target, TheRock

# Columns of the labels.
LABELS = 10

Rows = Iterator[tuple[str, str]]


def short_rows(target: Target) -> Rows:
    """What one needs to know the card again."""
    yield from _rows("products", [", ".join(target.products)])
    yield from _rows("code names", [", ".join(target.codenames)])
    yield from _rows("override", [target.override.warning if target.override else ""])


def page_rows(target: Target, catalog: Catalog) -> Rows:
    """Identity, products, providers, quirks with reasons, failures, overrides and their warning, sources."""
    identity = f"{target.override.identity}, " if target.override else ""
    yield "identity", f"{identity}KFD gfx_target_version {target.kfd_version}"
    yield from _rows("wave", [f"{target.wave} lanes"] if target.wave else [])
    yield from _rows("products", [", ".join(target.products)])
    yield from _rows("also", [", ".join(target.also)])
    yield from _rows("code names", [", ".join(target.codenames)])
    yield from _rows("families", [", ".join(target.families)])
    yield from _rows("PCI ids", [" ".join(target.pci_ids)])
    yield from _rows("first in", [target.first_rocm])
    yield from _rows("dropped", [target.dropped])
    yield from _rows("providers", _providers(target, catalog))
    yield from _rows("TheRock", _therock(target.therock) if target.therock else [])
    yield from _rows("features", [f"{name}: {value}" for name, value in target.features.items()])
    for scope in ("build", "run"):
        quirks = [quirk for quirk in (*catalog.every, *target.quirk) if quirk.scope == scope]
        yield from _rows(f"env {scope}", [line for quirk in quirks for line in _quirk(quirk, target)])
    refused = (f"by ROCm {refusal.rocm}'s runtime: {refusal.reason}" for refusal in target.refused)
    yield from _rows("refused", refused)
    yield from _rows("override", _override(target))
    yield from _rows("kernel", _kernels(target))
    yield from _rows("host", target.host.notes)
    yield from _rows("takes", _takes(target))
    yield from _rows("failures", target.failures)
    yield from _rows("unverified", target.unverified)
    yield from _rows("sources", target.source)


def _rows(label: str, texts: Iterable[str]) -> Rows:
    yield from ((label, text) for text in texts if text)


def _providers(target: Target, catalog: Catalog) -> Iterator[str]:
    for provider in catalog.providers.values():
        for support in provider.serves:
            if target.name in support.targets:
                suffix = f" on {', '.join(support.bases)}" if support.bases else ""
                suffix += (
                    f" for {' and '.join(support.architectures)}"
                    if support.architectures != EVERYWHERE
                    else ""
                )
                rebuilt = f", with {', '.join(support.rebuilt)} built for it" if support.rebuilt else ""
                versions = support.versions or "any version"
                yield f"{provider.name} {versions}{suffix}{rebuilt}  [{support.source}]"


def _therock(rock: TheRock) -> Iterator[str]:
    states = [name for name in ("build", "sanity", "release") if getattr(rock, name)]
    yield f"{rock.label}: {', '.join(states) or 'no state given'}"
    if rock.excluded:
        yield "without " + ", ".join(f"{name} {issue}".strip() for name, issue in rock.excluded.items())


def _quirk(quirk: Quirk, target: Target) -> Iterator[str]:
    need = "" if quirk.need == "recommended" else f"  ({quirk.need})"
    yield f"{quirk.variable}={quirk.value.replace('{target}', target.name)}{need}"
    confidence = f"; confidence {quirk.confidence}" if quirk.confidence else ""
    yield f"    {quirk.reason}  [{quirk.source}{confidence}]"


def _override(target: Target) -> Iterator[str]:
    override = target.override
    if override is None:
        return
    yield f"{override.identity} is its own identity"
    if override.spoof:
        observed = ", ".join(override.values) or "none"
        yield f"made to pose as {', '.join(override.spoof)}; values seen: {observed}"
    if override.warning:
        yield f"warning: {override.warning}"


def _kernels(target: Target) -> Iterator[str]:
    if target.host.kernel_ok:
        yield f"works: {', '.join(target.host.kernel_ok)}"
    if target.host.kernel_bad:
        yield f"fails: {', '.join(target.host.kernel_bad)}"


def _takes(target: Target) -> Iterator[str]:
    takes = target.takes
    needs = [f"{takes.memory / 1024**3:.0f} GiB of memory"] if takes.memory else []
    needs += [f"{takes.disk / 1024**3:.0f} GiB of disk"] if takes.disk else []
    needs += [f"{takes.hours} h"] if takes.hours else []
    needs += [f"at most {takes.jobs} jobs"] if takes.jobs else []
    yield ", ".join(needs)
    yield takes.note
