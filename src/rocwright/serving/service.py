"""What is the same of every server that is made ready: its name, key and model, and what is kept of it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rocbase.errors import InputError
from rocbase.files.atomic import write_atomic
from rocbase.processes.outlive import boot_id
from rocbase.toml.folders import holder
from rocwright.catalog.load import Catalog
from rocwright.catalog.server import Compute, Server
from rocwright.home import Home
from rocwright.records.model import now
from rocwright.sandbox.model import Mount
from rocwright.sandbox.untrusted import Untrusted
from rocwright.serving import state
from rocwright.serving.model import RunRequest, ServerState, address
from rocwright.serving.models.model import Model
from rocwright.serving.words import words_of

# Where a server sees its program, its model and what belongs to that.
ARTIFACT, MODELS, BESIDE = "/artifact", "/models", "/beside"

# Where it sees its key, the page that it shows, and the folder that it keeps for its users.
KEY, PAGE, DATA = "/run/key", "/page", "/data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What is started: which version of which component of which stack, for which GPUs, on which base, what
    it computes on and what it serves; `options` and `env` are the user's own."""

    stack: str
    component: str
    version: str
    gpu: tuple[str, ...]
    base: str
    server: Server
    on: Compute
    model: Model | None = None
    options: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def beside(self) -> dict[str, str]:
        """The files that belong to its model, by name, as it sees them."""
        companions = self.model.companions if self.model is not None else {}
        return {name: f"{BESIDE}/{name}/{path.name}" for name, path in companions.items()}

    @property
    def model_mounts(self) -> tuple[Mount, ...]:
        """The files of its model as it sees them: they are read, and not written."""
        if self.model is None:
            return ()
        targets = self.beside
        own = [Mount(source=file.resolve(), target=f"{MODELS}/{file.name}") for file in self.model.paths]
        companions = [
            Mount(source=path.resolve(), target=targets[name]) for name, path in self.model.companions.items()
        ]
        return (*own, *companions)

    def places(self, host: str, port: int, artifact: str) -> dict[str, str]:
        """What is filled in in its words and variables."""
        return {
            "artifact": artifact,
            "model": f"{MODELS}/{self.model.path.name}" if self.model is not None else "",
            "host": host,
            "port": str(port),
            "listen": f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
            "key_file": KEY,
            "page": PAGE,
            "data": DATA,
        }

    def shown_of_catalog(self, catalog: Catalog) -> tuple[Mount, ...]:
        """The folder of the catalog that it shows or reads. Raises InputError where the catalog has none."""
        name = self.server.page
        if not name:
            return ()
        folder = holder(name, catalog.folders)
        if folder is None:
            raise InputError(
                f"the catalog has no {name}",
                cause=f"the server of {self.component} wants that folder",
                next_step="rocwright catalog check",
            )
        return (Mount(source=folder / name, target=PAGE),)

    def folder(self, home: Home) -> Path:
        """The folder that it keeps for its users."""
        return home.data / self.stack

    def kept(self, home: Home) -> tuple[Mount, ...]:
        """The folder that it keeps."""
        if not self.server.keeps:
            return ()
        return (Mount(source=self.folder(home), target=DATA, writable=True),)

    def make_kept(self, home: Home) -> None:
        """Make the folder that it keeps, with all that it wants to find there; what is there stays."""
        folder = self.folder(home)
        for name in self.server.keeps:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            Untrusted(folder, f"the server of {self.component}").make_folders(name)

    def variables(self, places: dict[str, str]) -> dict[str, str]:
        """What its recipe sets for every run, what it computes on wants, and what the user sets."""
        own = {name: template.format_map(places) for name, template in self.server.env.items()}
        return own | self.on.env | dict(self.env)

    def words(self, places: dict[str, str], *, keyed: bool) -> tuple[str, ...]:
        """Its whole command line."""
        own = words_of(self.server, places, self.gpu, self.on, keyed=keyed, companion_paths=self.beside)
        return (*own, *self.options)

    def state(
        self, home: Home, request: RunRequest, port: int, *, keyed: bool, mark: str, command: tuple[str, ...]
    ) -> ServerState:
        """What is kept of it before it is started."""
        return ServerState(
            name=request.name,
            stack=self.stack,
            component=self.component,
            version=self.version,
            gpu=self.gpu,
            base=self.base,
            on=self.on.name,
            model=str(self.model.path) if self.model is not None else "",
            place=request.place,
            host=request.host,
            port=port,
            key=keyed,
            health=self.server.health,
            addresses={
                endpoint.name: f"{address(request.host, port)}{endpoint.path}"
                for endpoint in self.server.address
            },
            keeps=str(self.folder(home)) if self.server.keeps else "",
            mark=mark,
            boot=boot_id(),
            begun=now(),
            command=command,
        )


@contextmanager
def claimed(home: Home, name: str) -> Iterator[None]:
    """A folder of its own for what is laid out under that name: what an ended server has left there goes, and
    all of it where making ready fails. Raises InputError for a name that is taken."""
    previous = state.read(home, name)
    if previous is not None and state.runs(previous):
        raise state.name_in_use(name)
    state.forget(home, name)
    state.claim(home, name)
    try:
        yield
    except BaseException:
        state.forget(home, name)
        raise


def make_key(home: Home, name: str) -> tuple[str, Path]:
    """A new key, and the file that it is in, which its owner alone can read."""
    key, path = secrets.token_urlsafe(24), state.key_of(home, name)
    write_atomic(path, key, mode=0o600)
    return key, path
