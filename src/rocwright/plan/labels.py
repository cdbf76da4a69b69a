"""What an image says of itself: every version and commit in it, as labels.

Source: https://github.com/opencontainers/image-spec, annotations.md (pre-defined annotation keys).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rocwright.catalog.model import Component
from rocwright.plan.resolve.model import Lock, LockedComponent, LockedRoot

OCI = "org.opencontainers.image"


def image_labels(
    component: Component,
    locked: LockedComponent,
    lock: Lock,
    run: LockedRoot,
    inside: Iterable[LockedComponent],
) -> dict[str, str]:
    """The labels of an image of a component, in which what it takes in (`inside`) is too.

    They are part of the image's key: nothing of when and by what the lock was made is among them.
    """
    reference, _, digest = run.image.partition("@")
    labels = {
        f"{OCI}.title": f"{component.name} ({lock.request.stack})",
        f"{OCI}.description": component.summary,
        f"{OCI}.version": locked.version,
        f"{OCI}.revision": locked.commit,
        f"{OCI}.licenses": component.license,
        f"{OCI}.source": component.homepage,
        f"{OCI}.base.name": reference or f"{run.base}:{run.suite}",
        f"{OCI}.base.digest": digest,
        "rocwright.stack": lock.request.stack,
        "rocwright.base": f"{run.base}:{run.suite}",
        # of an image that is the same for every GPU none is told
        "rocwright.gpu": ",".join(lock.request.gpu) if component.targets_code else "",
    }
    return _without_empty(labels | version_labels(lock, (locked, *inside)))


def version_labels(lock: Lock, components: Iterable[LockedComponent]) -> dict[str, str]:
    """Version, place, commit and hash of components; the versions of what base or provider brings."""
    labels: dict[str, str] = {}
    for component in components:
        name = f"rocwright.{slug(component.name)}"
        labels |= {
            f"{name}.version": component.version,
            f"{name}.place": component.place,
            f"{name}.commit": component.commit,
            f"{name}.sha256": ",".join(pin.sha256 for pin in component.files),
        }
    labels |= {f"rocwright.{slug(name)}.version": version for name, version in lock.provided.items()}
    if lock.rocm is not None:
        labels["rocwright.rocm.version"] = f"{lock.rocm.version} ({lock.rocm.name})"
    return _without_empty(labels)


def slug(text: str) -> str:
    """Lower-case letters, digits and hyphens: a name for labels, images, units, files and volumes."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"


def _without_empty(labels: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if value}
