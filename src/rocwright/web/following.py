"""Following upstream as it was last told: what is new there, and what the last cycle did of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from rocwright.diagnosis.masking import masked
from rocwright.follow.cycle.model import CycleTold, RowTold
from rocwright.follow.cycle.row import LOCKS
from rocwright.follow.cycle.run import last_cycle
from rocwright.follow.watch.kept import kept
from rocwright.follow.watch.tell import KEPT
from rocwright.records.model import Run, Which
from rocwright.web.failures import culprit_of
from rocwright.web.pages import Pages
from rocwright.web.site import asked

# Of a culprit's report on the page.
MOST_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """A row of a cycle, with its culprit in a line and the report on it, "" where there is none."""

    row: RowTold
    report: str
    culprit: str


class Following:
    """Reads what `watch` and `cycle` left; each method answers one address."""

    def __init__(self, pages: Pages) -> None:
        self.pages, self.site = pages, pages.site

    async def watch(self, request: Request) -> Response:
        """What was new upstream when it was last looked at, lock by lock, those with an alarm first; asks
        nobody."""
        self.site.need(request, "read")
        looks = await asked(lambda: kept(self.site.home))
        looks.sort(key=lambda look: not look.report.alarms)
        return self.pages.page(request, "watch.html", looks=looks, kept=KEPT, mask=self._mask)

    async def cycle(self, request: Request) -> Response:
        """The last cycle of the project here, row by row, and one that is under way."""
        self.site.need(request, "read")
        cycle = await asked(lambda: last_cycle(self.site.folder, self.site.home))
        rows = await asked(lambda: self._turned(cycle))
        running = await asked(self._running)
        return self.pages.page(request, "cycle.html", told=cycle, rows=rows, running=running, mask=self._mask)

    def _turned(self, cycle: CycleTold | None) -> list[Turned]:
        return [
            Turned(
                row=row,
                report=self._report(row),
                culprit=culprit_of(row.culprit.says) if row.culprit else "",
            )
            for row in (cycle.rows if cycle else ())
        ]

    def _report(self, row: RowTold) -> str:
        if row.culprit is None or not row.culprit.report:
            return ""
        path = Path(row.culprit.report).resolve()
        if not path.is_relative_to((self.site.folder / LOCKS).resolve()):
            return ""
        try:
            with path.open("rb") as file:
                return file.read(MOST_BYTES).decode(errors="replace")
        except OSError:
            return ""

    def _mask(self, text: str) -> str:
        return masked(text, self.site.hidden)

    def _running(self) -> list[Run]:
        going = self.site.records.runs(Which(state="running"), limit=50, steps=False)
        return [run for run in going if run.origin.startswith("cycle ")]
