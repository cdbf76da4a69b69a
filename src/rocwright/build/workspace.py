"""A step's folder while it runs: kept where it failed, so that one can look; removed where it is done."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rocwright.bases.roots import remove_tree
from rocwright.home import Home

CCACHE = "/ccache"


@dataclass(frozen=True, slots=True)
class Workspace:
    """Folders on the host; in the sandbox they are /build (with src, home, tmp) and /out."""

    path: Path

    @classmethod
    def of(cls, home: Home, key: str) -> Workspace:
        return cls(home.work / key[:16])

    @property
    def build(self) -> Path:
        return self.path / "build"

    @property
    def source(self) -> Path:
        return self.path / "build" / "src"

    @property
    def out(self) -> Path:
        return self.path / "out"

    @property
    def inputs(self) -> Path:
        return self.path / "in"

    @property
    def scratch(self) -> Path:
        return self.path / "scratch"

    def create(self) -> None:
        """Make the folders empty."""
        self.remove()
        for folder in (
            self.source,
            self.build / "home",
            self.build / "tmp",
            self.out,
            self.inputs,
            self.scratch,
        ):
            folder.mkdir(parents=True)

    def remove(self) -> None:
        remove_tree(self.path)
