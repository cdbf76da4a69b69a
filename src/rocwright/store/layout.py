"""Where things lie in the folder of a local store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from rocbase.errors import InternalError
from rocwright.store.model import is_key

FOLDERS = ("blobs", "records", "steps", "tmp", "damaged", "locks")


@dataclass(frozen=True, slots=True)
class StoreLayout:
    """`blobs/ab/<sha256>`, `records/ab/<key>.json`, `steps/ab/<key>.json`, `damaged/`, `tmp/`, `locks/`,
    `builds/`. Raises InternalError for what is no sha256."""

    path: Path

    @property
    def mark(self) -> Path:
        return self.path / "format.json"

    def blob(self, sha256: str) -> Path:
        return self.path / "blobs" / _checked(sha256)[:2] / sha256

    def record(self, key: str) -> Path:
        return self.path / "records" / _checked(key)[:2] / f"{key}.json"

    def step(self, key: str) -> Path:
        return self.path / "steps" / _checked(key)[:2] / f"{key}.json"

    @property
    def builds(self) -> Path:
        """What running builds hold; it is made when it is first asked for."""
        folder = self.path / "builds"
        folder.mkdir(exist_ok=True)
        return folder

    def lock(self, name: str) -> FileLock:
        """A lock between processes; the name may hold letters, digits and dashes."""
        return FileLock(self.path / "locks" / f"{name}.lock")

    def locks(self, prefix: str = "") -> list[str]:
        """The names of locks that somebody asked for, of those that begin so."""
        return [path.stem for path in (self.path / "locks").glob(f"{prefix}*.lock")]


def _checked(name: str) -> str:
    if not is_key(name):
        raise InternalError(
            f"{name!r} is not a sha256",
            cause="a fault of rocwright",
            next_step="report this as a bug of rocwright",
        )
    return name
