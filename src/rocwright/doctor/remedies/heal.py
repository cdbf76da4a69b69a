"""Builds that mend what fails and is known."""

from __future__ import annotations

from dataclasses import replace

from rocwright.doctor.remedies.aside import LockSnapshots, Unshared
from rocwright.doctor.remedies.rounds import HealContext, healed, offers
from rocwright.doctor.remedies.words import offered, refusal
from rocwright.execution.options import BuildOptions
from rocwright.execution.outcome import Built
from rocwright.execution.progress import Progress
from rocwright.flow import build, lock_again
from rocwright.model.architecture import host_architecture
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.model import Lock
from rocwright.project import Project
from rocwright.sources.bases.tools import Tools
from rocwright.sources.file_index import index_of


def heal(
    project: Project,
    locked: Lock,
    options: BuildOptions,
    progress: Progress,
    *,
    run_id: str = "",
    origin: str = "",
) -> tuple[Lock, Built]:
    """Build; mend what fails and is known by the catalog's actions, and remember in the lock what helped.

    `run_id` is that of the first build, `origin` that of all. Raises what `build` raises; what was tried
    until then is in the lock. Raises InputError where somebody else writes the lock meanwhile.
    """

    ids = [run_id] if run_id else []

    def build_once(lock: Lock) -> Built:
        return build(project, lock, options, progress, run_id=ids.pop() if ids else "", origin=origin)

    world = HealContext(
        catalog=project.catalog,
        plan=lambda lock: make_plan(lock, project.catalog),
        build=build_once,
        save=Unshared(project.lock_path).write,
        relock=lambda lock: lock_again(project, lock, progress.say),
        aside=LockSnapshots(project.home.heal),
        say=progress.say,
        packages_with=lambda header: _packages_with(project, locked.request.base, header, progress),
    )
    last, built = healed(locked, world)
    return last, replace(built, lock=last)


def _packages_with(project: Project, base: str, header: str, progress: Progress) -> tuple[str, ...]:
    """What the base's index of files tells of a header; it is fetched. Raises InputError, NetworkError."""
    index = index_of(base, project.catalog, Tools(project.home), host_architecture())
    progress.say(f"heal: the index of files of {base}: looking for {header}")
    index.refresh()
    return index.packages_with(header)


def add_offers(project: Project, locked: Lock, built: Built) -> None:
    """Tell in each failure what `build --heal` would do about it, or why it can do nothing."""
    if not built.failures:
        return

    failures = dict(built.failures)
    named_offers = offers(locked, built, project.catalog, lambda lock: make_plan(lock, project.catalog))
    for name, offer in named_offers:
        failures[name].heal, failures[name].remedy_unavailable = (
            offered(offer.remedy),
            refusal(offer.remedy, offer.why),
        )
