"""Where rocwheel keeps things on this machine: rocwright's folder, which has much more in it."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rocwheel.files.atomic import make_private


@dataclass(frozen=True, slots=True)
class Home:
    """The folder of this machine's state: `$ROCWRIGHT_HOME`, else `$XDG_CACHE_HOME/rocwright`, else ~/.cache.

    It is its owner's alone.
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
        """Files in it that nobody else may read, whoever may look into the folder."""
        return ()

    @property
    def indexes(self) -> Path:
        """What is known of the wheels of each folder that is a package index."""
        return self.path / "indexes"
