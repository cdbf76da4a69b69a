"""What an export is made of: files by their path, and the values that may be given in place of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rocwright.catalog.load import Catalog
from rocwright.model.steps import ImageAction, Plan, RunAction, Step
from rocwright.plan.labels import slug as slug
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.aliases import PYTHON, base_of
from rocwright.plan.resolve.model import Lock, LockedComponent, LockedProvider, LockedPython, LockedRoot


@dataclass(frozen=True, slots=True)
class ExportFile:
    """A file of an export."""

    data: bytes
    executable: bool = False

    @property
    def text(self) -> str:
        return self.data.decode()


# By path, with `/`, below the folder that an export is written to.
Files = dict[str, ExportFile]


def lines_of(lines: Iterable[str], *, executable: bool = False) -> ExportFile:
    """A text file of these lines."""
    return ExportFile("".join(f"{line}\n" for line in lines).encode(), executable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """A value that may be given when an export is used; `value` is the lock's.

    Where the lock does not know it, `value` is empty and `pending` says in words what must be given.
    """

    name: str
    value: str
    about: str
    pending: str = ""


@dataclass(frozen=True, slots=True)
class ExportSubject:
    """What is exported: a lock, the catalog it was made with, and its plan."""

    lock: Lock
    catalog: Catalog
    plan: Plan
    sources: Mapping[str, bytes] = field(default_factory=dict)
    """The packed trees that rocwright carries, by the name of their builtin source."""
    required: LockedPython | None = None
    """The packages that the wheels require besides those of the lock, if they were locked."""

    @classmethod
    def of(
        cls,
        lock: Lock,
        catalog: Catalog,
        sources: Mapping[str, bytes] | None = None,
        required: LockedPython | None = None,
    ) -> ExportSubject:
        """What a lock that it stands on builds is built with the rest.

        Raises InputError where the lock does not match the recipes."""
        return cls(lock, catalog, make_plan(lock, catalog, alone=True), sources or {}, required)

    @property
    def roots(self) -> tuple[LockedRoot, ...]:
        """The root file systems that something is built or packed in; checks are not exported."""
        used = {
            item.key
            for step in self.plan.steps
            if isinstance(step.action, RunAction | ImageAction)
            for item in step.inputs
        }
        names = {step.name for step in self.plan.steps if step.key in used}
        return tuple(root for root in self.lock.roots if f"root/{root.role}" in names)

    @property
    def packages(self) -> tuple[tuple[str, LockedPython | LockedProvider], ...]:
        """What is installed as Python packages, by the folder of an export that holds them."""
        parts = (("python", self.lock.python), ("rocm", self.lock.rocm))
        return (
            *(
                (folder, part)
                for folder, part in parts
                if part is not None and not (folder == "rocm" and self.tarballs is part)
            ),
            *self.published,
        )

    @property
    def published(self) -> tuple[tuple[str, LockedPython], ...]:
        """The wheels that are taken as others published them, by the folder of an export that holds them."""
        version = self.lock.provided.get(PYTHON, "") or base_of(self.lock, self.catalog)[1].python
        return tuple(
            (
                slug(f"wheels-{component.name}"),
                LockedPython(
                    version=version,
                    wanted=(component.place,),
                    files=component.files,
                    pending=component.pending,
                ),
            )
            for component in self.lock.components
            if component.kind == "wheels"
        )

    @property
    def tarballs(self) -> LockedProvider | None:
        """The provider whose files are tarballs, where ROCm comes as such."""
        rocm = self.lock.rocm
        return rocm if rocm is not None and self.catalog.provider(rocm.name).kind == "archive" else None

    def locked(self, step: Step) -> LockedComponent | None:
        """The component that a step is of; None where it is of a Python package."""
        matches = (component for component in self.lock.components if component.name == step.component)
        return next(matches, None) if step.name in (step.component, f"prepare/{step.component}") else None

    @property
    def name(self) -> str:
        """A name for what is built, that fits everywhere: stack, GPUs, base."""
        request = self.lock.request
        return slug("-".join([request.stack, *request.gpu, request.base]))


def variable(*words: str) -> str:
    """A shell variable's name: `gfx-smoke`, `version` -> GFX_SMOKE_VERSION."""
    name = re.sub(r"[^A-Z0-9]+", "_", "_".join(words).upper()).strip("_")
    return f"_{name}" if not name or name[0].isdigit() else name
