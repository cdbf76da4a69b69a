"""A product made of libraries with histories, in which a change upstream breaks it: built for real."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rocwright.execution.options import BuildOptions
from rocwright.execution.progress import PlainProgress
from rocwright.follow.bisection.trial import LockTrials
from rocwright.model.steps import GitOrigin
from rocwright.plan.resolve.files import write_lock
from rocwright.plan.resolve.model import Lock, LockedComponent
from rocwright.sources.git import pack_commit
from samples.making import lock_of
from samples.project import TinyProject, open_project, put_roots, write_catalog
from samples.repository import Repository, make_repository

PRODUCT = "product"


@dataclass
class World:
    """Repositories of the libraries and of the product; `lock` pins each at a commit.

    The product's build fails where the first lines of its libraries hold all the words of `fatal`.
    """

    folder: Path
    home: Path
    engine: str
    root: Path
    libraries: tuple[str, ...]
    fatal: tuple[str, ...] = ("broken",)
    repositories: dict[str, Repository] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        for name in (*self.libraries, PRODUCT):
            self.repositories[name] = make_repository(self.folder / f"{name}.git")
        self.catalog = write_catalog(self.folder / "catalog", self._recipes())
        write_lock(self.folder / "rocwright.lock", self.lock({}))
        self.project: TinyProject = open_project(self.folder, self.home)
        put_roots(self.project, self.root)

    def _recipes(self) -> dict[str, dict[str, object]]:
        recipes: dict[str, dict[str, object]] = {}
        for name in self.libraries:
            recipes[name] = {
                "kind": "archive",
                "run": ["if grep -q syntax-error file; then exit 1; fi", f"cat file > $OUT/{name}.txt"],
                "output": [{"name": "archive", "pattern": f"{name}.txt"}],
            }
        tests = " && ".join(f"grep -q {word} all" for word in self.fatal)
        recipes[PRODUCT] = {
            "kind": "archive",
            "run": [
                "cat $IN/*/*.txt file > all",
                f"if {tests}; then echo 'file.c:3: error: the product does not compile' >&2; exit 1; fi",
                "cat all > $OUT/product.txt",
            ],
            "output": [{"name": "archive", "pattern": "product.txt"}],
            "release": [
                {
                    "version": "1.0",
                    "places": [{"builtin": PRODUCT}],
                    "source": "x",
                    "needs": dict.fromkeys(self.libraries, ""),
                }
            ],
        }
        return recipes

    def mend(self, *fatal: str) -> None:
        """The product's recipe changes: other words break it from now on."""
        self.fatal = fatal
        self.catalog = write_catalog(self.folder / "mended", self._recipes())

    def commits(self, name: str, *texts: str) -> list[str]:
        """Commits of a repository that give its file these contents; their ids."""
        return [self.repositories[name].commit("file", f"{text}\n") for text in texts]

    def lock(self, at: dict[str, str]) -> Lock:
        """Every component at its newest commit, or at the one named."""
        made = lock_of("tiny", catalog=self.catalog)
        return made.model_copy(
            update={
                "components": tuple(self._locked(one, at.get(one.name, "HEAD")) for one in made.components)
            }
        )

    def _locked(self, component: LockedComponent, commit: str) -> LockedComponent:
        repository = self.repositories[component.name]
        found = repository.git("rev-parse", commit)
        pin = pack_commit(GitOrigin(url=repository.url, commit=found), self.folder)
        return component.model_copy(update={"kind": "git", "commit": found, "files": (pin,)})

    def trials(self) -> LockTrials:
        return LockTrials(
            project=self.project,
            options=BuildOptions(jobs=2, engine=self.engine),
            progress=PlainProgress(),
            say=self.said.append,
            checks=False,
        )
