"""What is done from the pages: builds are started, cancelled and healed, locks promoted."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from rocbase.errors import ExplainedError
from rocwright import api
from rocwright.catalog.load import the_catalog
from rocwright.follow.cycle.by_hand import promote
from rocwright.follow.cycle.stands import ChannelPlace
from rocwright.plan.resolve.model import Request as Asked
from rocwright.records.model import Run, Which
from rocwright.web.buildable import Buildable
from rocwright.web.cycling import Cycling
from rocwright.web.pages import PAGE, Pages
from rocwright.web.queue import FullError, Queue
from rocwright.web.site import asked


class Doing:
    """Forms of a site; each needs a token with its scope."""

    def __init__(self, pages: Pages, queue: Queue, cycling: Cycling | None = None) -> None:
        self.pages, self.site = pages, pages.site
        self.queue, self.cycling, self.buildable = queue, cycling, Buildable()

    def routes(self) -> list[Route]:
        """Where they are sent."""
        return [
            Route("/queue", self.page),
            Route("/queue", self.start, methods=["POST"]),
            Route("/runs/{run}/again", self.again, methods=["POST"]),
            Route("/runs/{run}/cancel", self.cancel, methods=["POST"]),
            Route("/promote", self.promote, methods=["POST"]),
        ]

    async def page(self, request: Request) -> Response:
        """What waits, what runs, and a form for more."""
        self.site.need(request, "read")
        records = self.site.records
        going = await asked(
            lambda: [
                *records.runs(Which(state="running"), limit=PAGE, steps=False),
                *reversed(records.runs(Which(state="queued"), limit=PAGE, steps=False)),
            ]
        )
        return self.pages.page(
            request,
            "queue.html",
            going=going,
            own=await asked(self.site.own),
            rows=await asked(lambda: self.buildable.of(the_catalog())),
            cycling=self.cycling,
        )

    async def start(self, request: Request) -> Response:
        """Put a build in the queue."""
        session, fields = await self.site.need_form(request, "run")
        own = await asked(self.site.own)
        if "own" in fields:
            if own is None:
                raise HTTPException(400, "the folder that this server runs in has no project file")
            return await self._put(own.request, True, "heal" in fields, session.name)
        catalog = the_catalog()
        if "row" in fields:
            row = await asked(lambda: self.buildable.named(catalog, fields["row"]))
            if row is None:
                raise HTTPException(400, "that row cannot be built on this machine")
            return await self._put(row, False, "heal" in fields, session.name)
        stack, gpu, base = (fields.get(name, "") for name in ("stack", "gpu", "base"))
        bases = {name for known_base in catalog.bases.values() for name in known_base.names}
        if stack not in catalog.stacks or base not in bases:
            raise HTTPException(400, "the catalog does not know that stack, or that base")
        try:
            target = api.target(gpu).name
        except ExplainedError as error:
            raise HTTPException(400, f"{error.message}: {error.cause}; {error.next_step}") from error
        return await self._put(
            Asked(stack=stack, gpu=(target,), base=base), False, "heal" in fields, session.name
        )

    async def again(self, request: Request) -> Response:
        """Build once more what a run built; with `heal`, known failures are mended."""
        session, fields = await self.site.need_form(request, "run")
        run = await self.pages.known_run(request)
        build_request = await asked(lambda: self._request_of(run))
        own = await asked(self.site.own)
        mine = own is not None and own.request == build_request
        return await self._put(build_request, mine, "heal" in fields, session.name)

    async def cancel(self, request: Request) -> Response:
        """Take a run out of the queue, or stop it where it runs."""
        await self.site.need_form(request, "run")
        run = await self.pages.known_run(request)
        if not await asked(lambda: self.queue.cancel(run.id, run.origin)):
            raise HTTPException(
                409, "it is not in this server's queue: it has ended, or was started outside of this server"
            )
        return RedirectResponse(f"/runs/{run.id}", 303)

    async def promote(self, request: Request) -> Response:
        """Promote a cell's newest lock, where nothing speaks against it."""
        session, fields = await self.site.need_form(request, "promote")
        place = ChannelPlace(*(fields.get(name, "") for name in ChannelPlace._fields))
        site = self.site
        try:
            await asked(
                lambda: promote(
                    site.records,
                    site.folder,
                    site.home,
                    place,
                    fields.get("channel", ""),
                    site.channels(),
                    session.name,
                )
            )
        except ExplainedError as error:
            raise HTTPException(409, f"{error.message}: {error.cause}; {error.next_step}") from error
        return RedirectResponse(str(request.url_for("cell").include_query_params(**place._asdict())), 303)

    async def _put(self, build_request: Asked, own: bool, heal: bool, user: str) -> Response:
        if not own and build_request.stack not in the_catalog().stacks:
            # a run may have come from another machine's records, and its words go to a command line
            raise HTTPException(400, "the catalog does not know that stack")
        try:
            run = await asked(lambda: self.queue.put(build_request, own=own, heal=heal, user=user))
        except FullError:
            raise HTTPException(
                503, "the queue is full: wait, or cancel builds that are not needed"
            ) from None
        return RedirectResponse(f"/runs/{run}", 303)

    def _request_of(self, run: Run) -> Asked:
        """What a run was asked for, whole where its lock is on record."""
        lock = self.pages.lock_of(run)
        if lock is not None:
            return lock.request
        if not run.gpu:
            raise HTTPException(400, "that run was for no GPU")
        return Asked(stack=run.stack, gpu=run.gpu, base=run.base)
