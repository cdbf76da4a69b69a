"""The step that packs what was built, on the root file system that runs it, as an image."""

from __future__ import annotations

from rocwright.catalog.model import Component, Image
from rocwright.model.steps import ImageAction, Input, Resources, Step
from rocwright.plan.resolve.model import Lock, LockedComponent, LockedRoot


def image_step(
    image: Image,
    component: Component,
    locked: LockedComponent,
    lock: Lock,
    run: LockedRoot,
    built: Step,
    root: Step,
    labels: dict[str, str],
) -> Step:
    """The image of a component's archive, `built`, unpacked on `root`, as `image` says."""
    return Step(
        name=f"image/{component.name}",
        component=component.name,
        action=ImageAction(
            name=f"{component.name}-{lock.request.stack}",
            reference=f"rocwright/{lock.request.stack}:{locked.version}",
            prefix=image.prefix,
            entrypoint=image.entrypoint,
            env=image.env,
            architecture=run.architecture,
            labels=labels,
        ),
        inputs=(
            Input(name="root", key=root.key, output="root"),
            Input(name="archive", key=built.key, output="archive"),
        ),
        resources=Resources(disk=1024**3, seconds=10, limit=3600),
    )
