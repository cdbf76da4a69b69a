"""The packages that have what a failed step misses, where its base's index of files is here already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocbase.errors import ExplainedError

if TYPE_CHECKING:
    from rocwright.diagnosis.diagnose import Diagnosis
    from rocwright.execution.context import Context


def looked_up(diagnosis: Diagnosis, context: Context) -> Diagnosis:
    """The diagnosis with the packages of the step's base, as far as its index is here."""
    base = context.step.about.base if context.step is not None else ""
    if not base:
        return diagnosis
    # what a step that does not fail has no use for
    from rocwright.catalog.load import the_catalog
    from rocwright.diagnosis.missing import with_packages
    from rocwright.model.architecture import host_architecture
    from rocwright.sources.bases.tools import Tools
    from rocwright.sources.file_index import index_of

    def packages_with(header: str) -> tuple[str, ...]:
        # a failure is told without what would have helped, rather than not at all
        try:
            index = index_of(base, the_catalog(), Tools(context.home), host_architecture())
            return index.packages_with(header) if index.here else ()
        except ExplainedError:
            return ()

    return with_packages(diagnosis, base, packages_with)
