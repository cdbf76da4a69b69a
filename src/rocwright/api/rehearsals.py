"""Rows rehearsed, from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocwright.execution.options import BuildOptions
    from rocwright.execution.progress import Progress
    from rocwright.rehearsal.result import RowRehearsed


def rehearse(
    *rows: str,
    every: bool = False,
    seed: str = "1",
    anew: bool = False,
    options: BuildOptions | None = None,
    progress: Progress | None = None,
) -> list[RowRehearsed]:
    """Try rows, by name or by stack, on bases that can be had; all rows where none is named.

    `every` tries all files instead of a sample by `seed`, `anew` asks archives and indexes again. What fails
    is told in the result, and not an error. Raises InputError for a row that is not there.
    """
    from rocwright.catalog.load import the_catalog
    from rocwright.execution.options import BuildOptions
    from rocwright.execution.progress import PlainProgress
    from rocwright.home import Home
    from rocwright.rehearsal.rows import asked_rows
    from rocwright.rehearsal.run import How, Rehearser

    catalog = the_catalog()
    chosen = asked_rows(catalog, rows)
    how = How(every=every, seed=seed, anew=anew)
    with progress or PlainProgress() as shown:
        rehearser = Rehearser(catalog, Home.default(), options or BuildOptions(), how, shown)
        return [rehearser.row(row) for row in chosen]
