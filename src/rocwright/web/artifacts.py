"""What builds gave: files, their evidence, how to install them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from rocbase.errors import ExplainedError
from rocbase.files.hashes import Hashes
from rocwright.config import store_of
from rocwright.provenance.check import SAYS_NOT
from rocwright.records.model import Artifact
from rocwright.store.model import Store, is_key
from rocwright.web.installing import Views, index_at, install_line
from rocwright.web.pages import Pages, once
from rocwright.web.proofs import Laid, check, has_key, laid_out
from rocwright.web.sent import sent
from rocwright.web.site import asked

T = TypeVar("T")

# Components on the page of an artifact; an SBOM may have a hundred thousand.
MOST_PARTS = 500

_PLAIN = re.compile(r"[A-Za-z0-9._+!~-]+")

FILE = {"cache-control": "private, no-cache"}

NOT_STORED = "it is no longer in the store: it was cleaned up"


class Artifacts:
    """Reads artifacts on record and in the store; each method answers one address."""

    def __init__(self, pages: Pages, views: Views = frozenset) -> None:
        self.pages, self.site, self._views = pages, pages.site, views
        self._limiter, self._downloads = CapacityLimiter(2), CapacityLimiter(8)
        self._hashes = Hashes()

    async def all(self, request: Request) -> Response:
        """The newest of each name."""
        self.site.need(request, "read")
        artifacts = await asked(lambda: self.site.records.artifacts(limit=500))
        newest = {
            (artifact.stack, artifact.gpu, artifact.base, artifact.filename): artifact
            for artifact in reversed(artifacts)
        }
        return self.pages.page(request, "artifacts.html", artifacts=[*newest.values()][::-1])

    async def one(self, request: Request) -> Response:
        """One file: where it came from, what is in it, what was shown of it; with `check` whether its
        statement is right, which reads all of it."""
        self.site.need(request, "read")
        artifact = await self._artifact(request)
        evidence = await asked(lambda: self.site.records.findings(sha256=artifact.sha256, standing=True))
        stored = await asked(lambda: self._store().has(artifact.sha256, artifact.size))
        laid = await asked(lambda: laid_out(self.site.folder, artifact))
        signable, checked = await asked(has_key), None
        if laid is not None and signable and "check" in request.query_params:
            checked = await self._heavy(partial(check, laid))
        index = index_at(request, self.site, self._views)
        return self.pages.page(
            request,
            "artifact.html",
            made=artifact,
            findings=once(evidence),
            there=stored,
            install=install_line(artifact, index) if laid is not None else "",
            is_wheel=bool(install_line(artifact, index)),
            token=index.token,
            laid=laid,
            signable=signable,
            checked=checked,
            wrong=checked if isinstance(checked, ExplainedError) else None,
            says_not=SAYS_NOT,
            most=MOST_PARTS,
        )

    async def proof(self, request: Request) -> Response:
        """The SBOM, the statement, or the file as it is laid out, which is the one that they are of."""
        self.site.need(request, "read")
        artifact = await self._artifact(request)
        laid = await asked(lambda: laid_out(self.site.folder, artifact))
        kind = request.path_params["what"]
        path = {"sbom": laid.bill, "provenance": laid.statements, "laid-out": laid.file} if laid else {}
        file = path.get(kind)
        if laid is None or file is None or not file.is_file():
            raise HTTPException(404, "it is no longer in the folder of this server")
        if kind == "laid-out":
            return await self._sent(request, partial(self._laid, laid), laid.sha256, file.name)
        return FileResponse(file, filename=file.name, media_type="application/octet-stream")

    async def _heavy(self, work: Callable[[], T]) -> T:
        """What reads whole artifacts: two at a time, whoever asks."""
        return await run_sync(work, limiter=self._limiter)

    async def file(self, request: Request) -> Response:
        """The file itself, as built; its bytes are checked before they are sent."""
        self.site.need(request, "read")
        artifact = await self._artifact(request)
        name = Path(artifact.filename).name
        return await self._sent(request, partial(self._stored, artifact), artifact.sha256, name)

    async def _sent(
        self, request: Request, opened: Callable[[], BufferedReader], sha256: str, name: str
    ) -> Response:
        file = await run_sync(opened, limiter=self._downloads)
        size = os.fstat(file.fileno()).st_size
        headers = {"content-disposition": f"attachment; filename{_quoted(name)}", **FILE}
        return sent(request, file, size, f'"{sha256}"', headers)

    def _laid(self, laid: Laid) -> BufferedReader:
        file = laid.file.open("rb")
        if self._hashes.of(file) != laid.sha256:
            file.close()
            raise HTTPException(409, "the file was changed: it no longer matches its statement")
        return file

    def _stored(self, artifact: Artifact) -> BufferedReader:
        try:
            return self._store().opened(artifact.sha256, self._hashes.of)
        except KeyError:
            raise HTTPException(404, NOT_STORED) from None

    def _store(self) -> Store:
        return store_of(self.site.home)

    async def _artifact(self, request: Request) -> Artifact:
        sha256 = request.path_params["sha256"]
        artifacts = (
            await asked(lambda: self.site.records.artifacts(sha256=sha256, limit=1)) if is_key(sha256) else []
        )
        if not artifacts:
            raise HTTPException(404, "no such artifact is on record")
        return artifacts[0]


def _quoted(name: str) -> str:
    """A file's name as a header can hold it (RFC 6266)."""
    return f'="{name}"' if _PLAIN.fullmatch(name) else f"*=utf-8''{quote(name)}"
