"""A cell of the matrix, and all of a GPU: what stands there, and the line that installs it."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from rocbase.errors import ExplainedError, InputError
from rocwright import api
from rocwright.catalog.load import the_catalog
from rocwright.diagnosis.masking import masked
from rocwright.follow.cycle.run import last_cycle
from rocwright.follow.cycle.stands import ChannelPlace, Stand, stands
from rocwright.plan.resolve.model import Request as Asked
from rocwright.records.model import Artifact, Cell, NewestEvidence, Run, Which
from rocwright.records.read import Records
from rocwright.serving.choose import served_component
from rocwright.web.failures import broken
from rocwright.web.installing import IndexAt, Views, index_at, install_line
from rocwright.web.matrix import highest, was_built, with_rows
from rocwright.web.pages import PAGE, Pages, once
from rocwright.web.proofs import laid_out
from rocwright.web.site import asked

MOST_FILES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CellOffer:
    """What there is of a cell: the highest channel that holds something of it ("" for none: then it is the
    newest run), since when, the run that showed it, its files, the lines that install its wheels, and the
    one that starts its server."""

    cell: Cell
    channel: str
    held: NewestEvidence
    run: Run
    files: tuple[Artifact, ...]
    lines: tuple[str, ...]
    start: str = ""


class Cells:
    """Each method answers one address."""

    def __init__(self, pages: Pages, views: Views = frozenset) -> None:
        self.pages, self.site, self._views = pages, pages.site, views

    async def cell(self, request: Request) -> Response:
        """One stack on one GPU and base, as it was asked for: its evidence, its channels, its runs."""
        self.site.need(request, "read")
        place = ChannelPlace(*(request.query_params.get(name, "")[:200] for name in ChannelPlace._fields))
        records, criteria = self.site.records, place._asdict()
        cells = await asked(lambda: with_rows(records.matrix(**criteria), self.site, **criteria))
        cells = [cell for cell in cells if cell.variant == place.variant]
        if len(cells) != 1:
            raise HTTPException(404, "there is no record for that stack, GPU and base")
        runs = await asked(lambda: records.runs(Which(**criteria), limit=PAGE, steps=False))
        promotions = await asked(lambda: records.promotions(**criteria))
        checked = next((run for run in runs if run.command == "verify"), None)
        findings = await asked(lambda: records.findings(run=checked.id)) if checked else []
        channels, wrong = await asked(lambda: self._stands(place))
        return self.pages.page(
            request,
            "cell.html",
            cell=cells[0],
            command=await asked(lambda: self._command(cells[0], runs)),
            offer=await asked(lambda: self.offer(cells[0], request)),
            token=not self.site.access.open_,
            broken=await asked(lambda: broken(records, cells, last_cycle(self.site.folder, self.site.home))),
            linked=True,
            mask=lambda text: masked(text, self.site.hidden),
            runs=runs,
            promotions=promotions,
            findings=once(findings),
            checked=checked,
            stands=channels,
            wrong=wrong,
        )

    def _stands(self, place: ChannelPlace) -> tuple[tuple[Stand, ...], InputError | None]:
        """Return how the cell stands to each channel, or what is wrong with the project file."""
        try:
            return stands(self.site.records, self.site.folder, place, self.site.channels()), None
        except InputError as error:
            return (), error

    async def gpu(self, request: Request) -> Response:
        """Every stack that was built for a GPU."""
        self.site.need(request, "read")
        gpu = request.path_params["gpu"][:100]
        cells = await asked(lambda: with_rows(self.site.records.matrix(gpu=gpu), self.site, gpu=gpu))
        if not cells:
            return self._by_another_name(gpu, request)
        offers = await asked(lambda: [self.offer(cell, request) for cell in cells])
        return self.pages.page(
            request,
            "gpu.html",
            gpu=gpu,
            token=not self.site.access.open_,
            offers=sorted((offer for offer in offers if offer is not None), key=self._rank),
            without=[cell for cell, offer in zip(cells, offers, strict=True) if offer is None],
        )

    def _by_another_name(self, gpu: str, request: Request) -> Response:
        """The page of the target that a name such as "RX 580" means."""
        try:
            target = api.target(gpu).name
        except ExplainedError as error:
            raise HTTPException(404, f"{error.message}: {error.cause}") from error
        if target == gpu:
            raise HTTPException(404, "there is no record for that GPU")
        return RedirectResponse(str(request.url_for("gpu", gpu=target)), 303)

    def _rank(self, offer: CellOffer) -> tuple[str, int, str, str]:
        order = self.site.order()
        rank = order.index(offer.channel) if offer.channel in order else -1
        return offer.cell.stack, -rank, offer.cell.base, offer.cell.variant

    def _command(self, cell: Cell, runs: Sequence[Run]) -> str:
        """Return the line that builds a cell, "" where nothing says what its variant stands for."""
        project = None
        with contextlib.suppress(InputError):
            project = self.site.own()
        requests = [Asked(stack=cell.stack, gpu=(cell.gpu,), base=cell.base)]
        requests += project.rows if project else ()
        requests += [lock.request for run in runs[:1] if (lock := self.pages.lock_of(run))]
        place = (cell.stack, cell.base, cell.variant)
        for request in requests:
            if (request.stack, request.base, request.variant) == place and cell.gpu in request.gpu:
                return shlex.join(["rocwright", "build", *request.words])
        return ""

    def offer(self, cell: Cell, request: Request) -> CellOffer | None:
        """The best that stands of a cell, None where nothing was built of it."""
        index = index_at(request, self.site, self._views)
        return offer(self.site.records, cell, self.site.order(), self.site.folder, index)


def offer(
    records: Records, cell: Cell, order: Sequence[str], folder: Path, index: IndexAt
) -> CellOffer | None:
    """The best that stands of a cell by the order of channels, as laid out below a folder."""
    channel = highest(order, cell.channels)
    newest = cell.channels[channel] if channel else cell.seen.get(cell.said) if cell.said else None
    run = records.run(newest.run) if newest else None
    if newest is None or run is None or not was_built(cell):
        return None
    # a verification makes no files: those are of the build with the same lock
    which = Which(stack=cell.stack, gpu=cell.gpu, base=cell.base, variant=cell.variant, lock=run.lock)
    files = {artifact.filename: artifact for artifact in reversed(records.artifacts(which, limit=MOST_FILES))}
    laid = [artifact for artifact in files.values() if laid_out(folder, artifact) is not None]
    lines = tuple(filter(None, (install_line(artifact, index) for artifact in laid)))
    return CellOffer(
        cell=cell,
        channel=channel,
        held=newest,
        run=run,
        files=tuple(files.values()),
        lines=lines,
        start="" if cell.variant else _start(cell),
    )


def _start(cell: Cell) -> str:
    """Return the line that starts the server of a cell, "" for what is no server. FILE in it is to be
    replaced."""
    catalog = the_catalog()
    component = served_component(catalog, cell.stack) if cell.stack in catalog.stacks else None
    if component is None or component.server is None:
        return ""
    model = ["--model", "FILE"] if component.server.models else []
    return shlex.join(["rocwright", "run", cell.stack, "--base", cell.base, "--gpu", cell.gpu, *model])
