"""Where rocwright keeps things on this machine."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rocbase.files.atomic import make_private


@dataclass(frozen=True, slots=True)
class Home:
    """The folder of this machine's state: `$ROCWRIGHT_HOME`, else `$XDG_CACHE_HOME/rocwright`, else ~/.cache.

    Everything in it but the records and a key to sign with can be made again; deleting it loses time and
    history, never truth. It is its owner's alone.
    """

    path: Path

    @classmethod
    def default(cls) -> Self:
        named = os.environ.get("ROCWRIGHT_HOME")
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        home = cls(Path(named).absolute() if named else cache / "rocwright")
        home.make_private()
        return home

    def make_private(self) -> None:
        """Make the folder, and let nobody but its owner in; also where it was made open before.

        Left as it is where it is more than rocwright's: a folder of everybody's, or the user's own home.
        """
        with contextlib.suppress(OSError, RuntimeError):
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            shared = self.path.stat().st_mode & stat.S_ISVTX or self.path in (Path("/"), Path.home())
            if not shared:
                make_private(self.path, 0o700)
            for path in self.secrets():
                make_private(path, 0o600)

    def secrets(self) -> Iterable[Path]:
        """Return files in it that nobody else may read, whoever may look into the folder."""
        return self.records, *self.path.glob(f"{self.records.name}-*"), self.tokens

    @property
    def store(self) -> Path:
        """Content-addressed artifacts and records."""
        return self.path / "store"

    @property
    def roots(self) -> Path:
        """Root file systems, unpacked, by the digest of their archive."""
        return self.path / "roots"

    @property
    def indexes(self) -> Path:
        """What `rocwright serve` knows of the wheels of each folder that it serves."""
        return self.path / "indexes"

    @property
    def images(self) -> Path:
        """Which packed root each image was found to have, by the digest of its manifest."""
        return self.path / "images"

    @property
    def servers(self) -> Path:
        """Servers that were started: a folder each, with what it is, its log, and what it runs in."""
        return self.path / "servers"

    @property
    def programs(self) -> Path:
        """Unpacked archives that servers run, by their digest, and the caches that they keep."""
        return self.path / "programs"

    @property
    def environments(self) -> Path:
        """What programs of wheel stacks run in: a folder each, by what it is made of."""
        return self.path / "environments"

    @property
    def data(self) -> Path:
        """What servers keep for their users, by stack: pictures, models that they fetched. Nothing removes
        it."""
        return self.path / "data"

    @property
    def models(self) -> Path:
        """Models that rocwright makes or has fetched."""
        return self.path / "models"

    @property
    def work(self) -> Path:
        """Build folders of steps under way, and of those that failed."""
        return self.path / "work"

    @property
    def second(self) -> Path:
        """Home folders of second builds, by process: under way, kept, or left by kills."""
        return self.path / "reproduce"

    @property
    def rehearsals(self) -> Path:
        """What archives and indexes said when stand-ins and sources of rehearsals were looked for."""
        return self.path / "rehearsals"

    @property
    def carried(self) -> Path:
        """What verifications that were carried elsewhere were made of, and the keys of their results."""
        return self.path / "carried"

    @property
    def runs(self) -> Path:
        """One folder a run: the logs of its steps."""
        return self.path / "runs"

    @property
    def records(self) -> Path:
        """The database of what was done and seen, where no other place is set."""
        return self.path / "records.sqlite"

    @property
    def heal(self) -> Path:
        """Locks put aside while a remedy is on trial."""
        return self.path / "heal"

    @property
    def plans(self) -> Path:
        """The plan that was built last for each stack, GPU and base, and those that channels hold."""
        return self.path / "plans"

    @property
    def locks(self) -> Path:
        """Locks of builds without a project file."""
        return self.path / "locks"

    @property
    def proofs(self) -> Path:
        """How each file was built that was laid out here."""
        return self.path / "proofs"

    def statement(self, sha256: str) -> Path:
        """How a file was built that was laid out here, by its sha256."""
        return self.proofs / f"{sha256}.json"

    def statement_mark(self, sha256: str) -> Path:
        """What that statement's bytes are, and which checks it waits for before it is signed."""
        return self.proofs / f"{sha256}.mark.json"

    def check(self, key: str) -> Path:
        """How a check of an artifact went, by all that the check depends on."""
        return self.path / "checks" / f"{key}.json"

    @property
    def laid_out(self) -> Path:
        """Which artifacts were laid out and checked."""
        return self.path / "laid-out.json"

    @property
    def watched(self) -> Path:
        """What the last look at upstream found, a file for each lock."""
        return self.path / "watched"

    @property
    def watch_memory(self) -> Path:
        """What upstream said before, to see what it changes."""
        return self.path / "watch.json"

    @property
    def cycles(self) -> Path:
        """What the last cycle of each project did."""
        return self.path / "cycle"

    @property
    def notices(self) -> Path:
        """What changed, who was told of it, and who is still to be told."""
        return self.path / "notices.json"

    @property
    def bisects(self) -> Path:
        """Answers of searches that have not ended."""
        return self.path / "bisect"

    @property
    def tokens(self) -> Path:
        """Who may do what from a browser."""
        return self.path / "tokens.json"

    @property
    def apt(self) -> Path:
        """Private apt folders, one a suite."""
        return self.path / "apt"

    @property
    def compiler_caches(self) -> Path:
        """What compilers made, a folder for each trust domain; a step sees its own alone."""
        return self.path / "compiler-cache"

    def compiler_cache(self, domain: str) -> Path:
        """ccache's folder for the steps of a trust domain, kept outside every sandbox's life."""
        return self.compiler_caches / domain

    @property
    def job_memory(self) -> Path:
        """What jobs of each step were found to take in memory."""
        return self.path / "job-memory.json"

    @property
    def probes(self) -> Path:
        """What the sandbox engines of this machine were found to do."""
        return self.path / "sandboxes.json"
