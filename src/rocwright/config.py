"""`config.toml`: the settings of this machine, all of them optional."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args

from pydantic import ConfigDict, Field, SecretStr, field_validator, model_validator

from rocbase.errors import DiskError, InputError, OutOfDiskError
from rocbase.model import Frozen
from rocbase.toml.read import parse, read_toml
from rocwright.model.sizes import Size

if TYPE_CHECKING:
    from rocwright.home import Home
    from rocwright.store import Store


Kind = Literal["broken", "mended", "promoted", "needs-person", "overdue"]
# What can be told: a row broke; it passes again; a channel holds another lock; a person must decide; cycles
# stopped, or run again.
KINDS: tuple[Kind, ...] = get_args(Kind)


# What compiler caches may take where nothing is set.
CACHE_BYTES = 20 * 1024**3

# No traceback shows what stands in the file: an address may.
_SILENT = ConfigDict(hide_input_in_errors=True)


class SecretUrl(Frozen):
    """An address that holds secrets: as it is, in a variable of the environment, or in a file."""

    model_config = _SILENT

    url: SecretStr | None = None
    url_env: str = ""
    url_file: str = ""

    @model_validator(mode="after")
    def _is_given_once(self) -> Self:
        if sum((self.url is not None, bool(self.url_env), bool(self.url_file))) != 1:
            raise ValueError("exactly one of url, url_env and url_file must be given")
        return self

    def read(self, subject: str) -> str:
        """The address itself, never to be shown. InputError where there is none, for `subject`."""
        try:
            address = self._read().strip()
        except (OSError, UnicodeDecodeError) as error:
            # the path is the user's own word; nothing that was read is told
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise self._missing(subject, f"{self.url_file}: {reason}") from None
        if not address:
            raise self._missing(subject, f"{self.url_env or self.url_file or 'url'} is not set, or empty")
        return address

    def _read(self) -> str:
        if self.url is not None:
            return self.url.get_secret_value()
        if self.url_env:
            return os.environ.get(self.url_env, "")
        return Path(self.url_file).expanduser().read_text()

    def _missing(self, subject: str, reason: str) -> InputError:
        return InputError(
            f"the URL of {subject} cannot be read", cause=reason, next_step=f"see {config_file()}"
        )


class Destination(SecretUrl):
    """`[[notify]]`: somebody who is told, at a URL that apprise knows.

    `on` is what of, `rows` and `channels` are patterns (`*`, `?`) of which rows, and of promotions to which
    channels. Without a `name`: the variable or file that holds the URL, else the URL's scheme.
    """

    name: str = ""
    on: tuple[Kind, ...] = KINDS
    rows: tuple[str, ...] = ("*",)
    channels: tuple[str, ...] = ("*",)

    @property
    def called(self) -> str:
        """Its name; no secret is in it."""
        source = self.url_env or Path(self.url_file).stem if self.url is None else ""
        scheme = self.url.get_secret_value().partition("://")[0] if self.url is not None else ""
        return self.name or source or (scheme if scheme.isalnum() else "url")


class Cycles(Frozen):
    """`[cycle]`: every how many hours a cycle is expected here (0: nobody expects any), after how many it is
    overdue (0: twice that), and the address that is asked for after each good one."""

    every: float = Field(default=0, ge=0)
    overdue: float = Field(default=0, ge=0)
    ping: SecretUrl | None = None

    def limit(self, every: float = 0) -> float:
        """Hours without a cycle that are too long; `every` is expected where nothing is set here, and 0 says
        that none are."""
        return self.overdue or 2 * (self.every or every)


class FarmCluster(Frozen):
    """`[farm.cluster]`: a class of clusters that dask knows (`dask_jobqueue:SLURMCluster`), how many workers
    a build asks it for, the seconds that it waits for the first, and what the class is made with."""

    make: str = Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    workers: int = Field(default=1, ge=1, le=10_000)
    wait: float = Field(default=600, gt=0)
    options: dict[str, Any] = {}


class Farm(Frozen):
    """`[farm]`: the address of the coordinator (`tls://host:8786`; nothing: each build has its own, on this
    machine or in a `cluster`), the folder of the certificates that its machines share, and the folder of
    compiled objects that machines share, to which only those write that `compiler_cache_writes` trusts."""

    scheduler: str = Field(default="", pattern=r"^((tcp|tls)://\S+)?$")
    certificates: str = ""
    compiler_cache: str = ""
    compiler_cache_writes: bool = False
    cluster: FarmCluster | None = None


class Slurm(Frozen):
    """`[slurm]`: the partition that jobs go to (nothing: the cluster's own), more options for sbatch, and a
    folder that all machines of the cluster see (nothing: in the home folder)."""

    partition: str = Field(default="", pattern=r"^[A-Za-z0-9_.-]*$")
    options: tuple[Annotated[str, Field(pattern=r"^--[a-z][a-z-]*(=\S+)?$")], ...] = ()
    folder: str = ""


class Config(Frozen):
    """`mirrors` are prefixes of addresses and what stands in for each; `debian_snapshots` is the address of a
    mirror with Debian's past, in which {snapshot} is filled in; `records` is where the records are
    kept, a `postgresql://` URL or a file; nothing: a file in the home folder. `store` is where artifacts are
    kept, a folder or the URL of a store that is known (`rocwright.store`); nothing: the home folder.
    `compiler_cache_size` is what the compiler caches of all steps may take together, such as "50 GiB".
    `notify` are those who are told of changes, `cycle` says when cycles are expected, `farm`
    and `slurm` where other machines run steps."""

    model_config = _SILENT

    mirrors: dict[str, str] = {}
    debian_snapshots: str = Field(default="", pattern=r"^(https?://\S*\{snapshot\}\S*)?$")
    records: str = ""
    store: str = ""
    compiler_cache_size: Size = Field(default=CACHE_BYTES, ge=1024**2)
    notify: tuple[Destination, ...] = ()
    cycle: Cycles = Cycles()
    farm: Farm = Farm()
    slurm: Slurm = Slurm()

    @field_validator("notify")
    @classmethod
    def _have_names_of_their_own(cls, notify: tuple[Destination, ...]) -> tuple[Destination, ...]:
        names = [destination.called for destination in notify]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two [[notify]] tables are called {', '.join(twice)}: give each a name")
        return notify

    @field_validator("mirrors")
    @classmethod
    def _are_addresses(cls, mirrors: dict[str, str]) -> dict[str, str]:
        for prefix, replacement in mirrors.items():
            for text in (prefix, replacement):
                if not text or text.startswith("-") or any(sign.isspace() for sign in text):
                    raise ValueError(f"{text!r} is not the beginning of an address")
        return mirrors


def config_file() -> Path:
    """`$ROCWRIGHT_HOME/config.toml` where that is set, else `$XDG_CONFIG_HOME/rocwright/config.toml`."""
    home = os.environ.get("ROCWRIGHT_HOME")
    if home:
        return Path(home).absolute() / "config.toml"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "rocwright" / "config.toml"


def config() -> Config:
    """The settings, as the file says. Raises InputError where it does not say what it must."""
    path = config_file()
    return parse(Config, read_toml(path), path) if path.exists() else Config()


def store_of(home: Home) -> Store:
    """The store that goes with a home folder: the one that the settings of this machine name, else its own,
    and behind it the shared stores that are trusted.

    A home folder that is not this machine's, such as that of a second build, has its own in any case, and
    nothing behind it. Raises InputError for a URL of a scheme that no store has.
    """
    from rocwright.store import open_store
    from rocwright.store.trust import trust_file

    if home != home.default():
        return open_store(home.store)
    named, trust = config().store, trust_file()
    if "://" not in named:
        place = Path(named).expanduser() if named else home.store
        return _in_front(place, trust, trust.stat().st_mtime_ns) if trust.exists() else open_store(place)
    try:
        return _opened(named, trust.stat().st_mtime_ns if trust.exists() else 0)
    except InputError as error:
        error.detail = error.detail or f"it stands in {config_file()}"
        raise


@cache
def _opened(url: str, changed: int) -> Store:
    """The store at a URL, with whom this machine trusted then: what it answered, and which files go with
    that, is kept for the life of this process."""
    from rocwright.store import open_store

    return open_store(url)


@cache
def _in_front(place: Path, trust: Path, changed: int) -> Store:
    """The store of a folder in front of those that a file trusts, as it was then. What they answered is kept
    for the life of this process."""
    from rocwright.store.trust import read_trust

    trusted = read_trust(trust)
    if not trusted.store:
        from rocwright.store import open_store

        return open_store(place)
    from rocwright.store import open_sharing

    return open_sharing(place, trusted)


def store_folder(home: Home) -> Path:
    """Where the store takes room on this machine: its folder, or that of the home for what is elsewhere."""
    try:
        folder = Path(str(store_of(home)))
    except (OutOfDiskError, DiskError):
        return home.store
    return folder if folder.is_absolute() else home.store
