"""Is all well? For a load balancer, a supervisor, or whoever calls a person."""

from __future__ import annotations

from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rocbase.errors import ExplainedError
from rocbase.units import duration
from rocwright.config import config
from rocwright.follow.notify.pace import Pace, pace
from rocwright.records.model import now
from rocwright.web.cycling import Cycling
from rocwright.web.site import Site, asked

OVERDUE = "cycles are overdue"
SETTINGS = "the settings of this machine cannot be read"
RECORDS = "the records do not answer"


@dataclass(slots=True)
class Health:
    """Of a site, whose cycles are expected as `cycling` makes them, or as the settings say."""

    site: Site
    cycling: Cycling | None = None
    since: str = field(default_factory=now)

    def pace(self) -> Pace:
        """How cycles come. Raises InputError where the settings cannot be read."""
        every = self.cycling.hours if self.cycling else 0
        return pace(self.site.home, self.site.folder, config().cycle, every, self.since)

    async def page(self, request: Request) -> Response:
        """200 where all is well, else 503 and why. Anybody may ask; details are for those who may read."""
        wrong, details = await asked(self._wrong)
        body: dict[str, object] = {"status": "failing" if wrong else "ok"}
        if wrong:
            body["reasons"] = wrong
        if details and self.site.still(request, "read"):
            body["details"] = details
        return JSONResponse(body, 503 if wrong else 200, {"cache-control": "no-store"})

    def _wrong(self) -> tuple[list[str], list[str]]:
        """What is wrong, in words that tell nothing of this machine, and in words that do."""
        wrong, details = list[str](), list[str]()
        try:
            pace = self.pace()
        except ExplainedError as error:
            wrong.append(SETTINGS)
            details.append(f"{error.message}: {error.cause}")
        else:
            if pace.late:
                wrong.append(OVERDUE)
                last = f"the last one ended {duration(pace.age)} ago" if pace.age else "none has ended yet"
                details.append(f"{last}; {pace.limit:g} h are allowed")
        try:
            self.site.records.changed()
        except ExplainedError as error:
            wrong.append(RECORDS)
            details.append(f"{error.message}: {error.cause}")
        return wrong, details
