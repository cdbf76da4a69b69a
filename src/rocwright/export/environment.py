"""The image of a wheel stack that serves: its component, its root file system, and how it is run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rocwright.catalog.environment import environment as quirks_of
from rocwright.catalog.model import Component, Serve
from rocwright.catalog.server import Server
from rocwright.export.arguments import root_arguments
from rocwright.export.model import Argument, ExportSubject, slug, variable
from rocwright.plan.resolve.aliases import base_of
from rocwright.plan.resolve.model import LockedComponent, LockedPython, LockedRoot

# Kinds of components whose server runs in an environment of the stack's wheels.
INSTALLED = ("wheel", "wheels", "application")

# The root file system of the lock that has the packages of a run, and pip.
ROLE = "check"

# The folder of an export with the packages that the wheels require and the lock does not name.
REQUIRED = "required"

# Folders of the image: the environment, the application, the files that it shows, its models, its data and
# what it compiles for the GPU.
PLACE, ARTIFACT, PAGE = "/opt/rocwright", "/artifact", "/page"
MODELS, DATA, CACHE = "/models", "/data", "/cache"

# The program that the image starts.
ENTRY = f"{PLACE}/serve"
# The folder or file that is served if no other is named.
MODEL = f"{MODELS}/model"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentImage:
    """An image with the environment of a stack, which serves one of its components."""

    component: Component
    locked: LockedComponent
    server: Server
    root: LockedRoot
    stack: str

    @property
    def reference(self) -> str:
        """The name and tag that an engine gives it: a tag has no `+`."""
        return f"rocwright/{self.stack}:{re.sub(r'[^A-Za-z0-9_.-]', '-', self.locked.version)}"

    @property
    def stage(self) -> str:
        return slug(f"image/{self.component.name}")

    @property
    def serve(self) -> Serve:
        """How the image is run: its entry point is its own, its models and data lie outside."""
        folders = {CACHE: "cache"}
        if self.server.models:
            folders[MODELS] = "models"
        if self.server.keeps:
            folders[DATA] = "data"
        like = self.component.serve or Serve()
        return like.model_copy(
            update={"entrypoint": (), "command": (), "ports": (self.server.port,), "folders": folders}
        )


def environment_image(subject: ExportSubject) -> EnvironmentImage | None:
    """The image of a lock whose server runs in an environment of wheels; None if it has no such server, or
    no root file system for one."""
    root = next((root for root in subject.lock.roots if root.role == ROLE), None)
    for locked in subject.lock.components:
        component = subject.catalog.component(locked.name)
        if root is not None and component.server is not None and component.kind in INSTALLED:
            return EnvironmentImage(
                component=component,
                locked=locked,
                server=component.server,
                root=root,
                stack=subject.lock.request.stack,
            )
    return None


def interpreter_of(subject: ExportSubject) -> str:
    """The command of Python in the root file systems of a lock."""
    return base_of(subject.lock, subject.catalog)[1].interpreter or "python3"


def gpu_env(subject: ExportSubject) -> Iterator[tuple[str, str]]:
    """The variables that the GPUs of a lock need of a run."""
    for gpu in subject.lock.request.gpu:
        for quirk in quirks_of(subject.catalog, subject.catalog.target(gpu), "run"):
            if quirk.need != "optional":
                yield quirk.variable, quirk.value


def required(subject: ExportSubject) -> LockedPython | None:
    """The packages that the wheels require and nothing else of the lock brings, as they were locked next to
    it; None for a stack whose wheels were all resolved with what they require."""
    kinds = {subject.catalog.component(locked.name).kind for locked in subject.lock.components}
    if "wheel" not in kinds:
        return None
    words = f"the packages that the wheels of {subject.lock.request.stack} require: rocwright run locks them"
    return subject.required or LockedPython(version="", pending=words)


def image_arguments(subject: ExportSubject) -> tuple[Argument, ...]:
    """The values that the image needs besides those of the artifacts."""
    image = environment_image(subject)
    if image is None:
        return ()
    arguments = [*root_arguments(image.root)]
    packages = required(subject)
    if packages is not None and packages.pending:
        arguments.append(
            Argument(
                name=variable(REQUIRED, "requirements", "sha256"),
                value="",
                about=f"the sha256 of {REQUIRED}/requirements.lock",
                pending=packages.pending,
            )
        )
    return tuple(arguments)
