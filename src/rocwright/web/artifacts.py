"""What builds gave: files, their anatomy, their evidence, how to install them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from rocwright.errors import RocwrightError
from rocwright.records.model import Artifact
from rocwright.store.local import LocalStore, is_key
from rocwright.web.pages import Pages
from rocwright.web.site import asked

PICTURE = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'",
    "cache-control": "private, max-age=86400",
}
"""A picture styles itself; it is shown as an image, in which nothing runs."""


class Artifacts:
    """Reads artifacts on record and in the store; each method answers one address."""

    def __init__(self, pages: Pages) -> None:
        self.pages, self.site = pages, pages.site

    async def all(self, request: Request) -> Response:
        """The newest of each name."""
        self.site.need(request, "read")
        found = await asked(lambda: self.site.records.artifacts(limit=500))
        newest = {(one.stack, one.gpu, one.base, one.filename): one for one in reversed(found)}
        return self.pages.page(request, "artifacts.html", artifacts=[*newest.values()][::-1])

    async def one(self, request: Request) -> Response:
        """One file: where it came from, what is in it, what was shown of it."""
        self.site.need(request, "read")
        made = await self._known(request)
        evidence = await asked(lambda: self.site.records.findings(sha256=made.sha256, limit=200))
        there = await asked(lambda: self._store().has(made.sha256, made.size))
        return self.pages.page(
            request,
            "artifact.html",
            made=made,
            findings=evidence,
            there=there,
            wheel=made.filename.endswith(".whl"),
            index=f"{request.url.scheme}://{request.url.netloc}/simple/",
        )

    async def anatomy(self, request: Request) -> Response:
        """What is in a wheel, drawn."""
        self.site.need(request, "read")
        made = await self._known(request)
        picture = await asked(partial(self._drawn, made))
        return Response(picture, media_type="image/svg+xml", headers=PICTURE)

    def _drawn(self, made: Artifact) -> str:
        import tempfile

        from rocwright.wheels.picture import draw
        from rocwright.wheels.picture.anatomy import anatomy

        with tempfile.TemporaryDirectory(prefix="rocwright-page-") as folder:
            # the store knows files by their sha256, and an anatomy by their names
            named = Path(folder) / Path(made.filename).name
            named.symlink_to(self._file(made))
            try:
                return draw.svg(anatomy(named))
            except RocwrightError as error:
                raise HTTPException(404, f"it cannot be drawn: {error.what}") from error

    async def file(self, request: Request) -> Response:
        """The file itself, as the step made it; its bytes are checked before they are sent."""
        self.site.need(request, "read")
        made = await self._known(request)
        path = await asked(partial(self._file, made))
        return FileResponse(path, filename=Path(made.filename).name, media_type="application/octet-stream")

    def _file(self, made: Artifact) -> Path:
        try:
            return self._store().verified(made.sha256)
        except KeyError:
            raise HTTPException(404, "the store has it no more: it was cleaned up") from None

    def _store(self) -> LocalStore:
        return LocalStore(self.site.home.store)

    async def _known(self, request: Request) -> Artifact:
        sha256 = request.path_params["sha256"]
        found = (
            await asked(lambda: self.site.records.artifacts(sha256=sha256, limit=1)) if is_key(sha256) else []
        )
        if not found:
            raise HTTPException(404, "no such artifact is on record")
        return found[0]
