"""A known failure, from failing to built: what every case shows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real.stacks import rocwright

from rocwright.execution.exec_step import execute
from rocwright.home import Home
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.files import read_lock
from rocwright.plan.resolve.model import Lock
from rocwright.project import project_in
from rocwright.sources.bases.roots import unpacked_root

CATALOG = Path(__file__).parent / "heal_catalog"
"""Recipes of small parts of real sources, none of which builds as it is."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A stack of one component whose step fails; `around` is a command that runs another in its way,
    `options` are those of every build."""

    home: Home
    folder: Path
    stack: str
    base: str = "debian:sid"
    around: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def begin(self) -> None:
        self.folder.mkdir()
        words = ("--stack", self.stack, "--gpu", "gfx1151", "--base", self.base)
        rocwright(self.home, self.folder, "init", *words)
        rocwright(self.home, self.folder, "lock")

    def stands(self) -> None:
        """Make all that the component's step is made from, its root file system unpacked."""
        project = project_in(self.folder, self.home)
        steps = make_plan(self.lock, project.catalog).steps
        for step in steps:
            project.store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
        for step in steps:
            if step.name != self.stack:
                record = execute(step.key, project.store, self.home, print)
                if step.kind == "base":
                    unpacked_root(project.store, record.outputs[0].sha256, self.home.roots, print)

    @property
    def lock(self) -> Lock:
        return read_lock(self.folder / "rocwright.lock")

    def fails(self, *words: str) -> dict[str, Any]:
        """Build; gives the failure of the component's step, and how often that was tried."""
        code, told = self._build(self.folder, *words)
        (failure,) = told["failures"]
        assert (failure["step"], code != 0) == (self.stack, True), told
        tries = sum(one["name"] == self.stack for one in told["run"]["steps"])
        return {**failure, "tries": tries}

    def heals(self, *issues: str, useless: tuple[str, ...] = ()) -> Path:
        """Build with --heal; gives the artifact, with the remedies of these issues kept in the lock, and
        those of `useless` ones tried for nothing."""
        code, told = self._build(self.folder, "--heal")
        assert code == 0, told
        tried = sorted((one.outcome, one.issue) for one in self.lock.remedies)
        expected = [("helped", one) for one in issues] + [("useless", one) for one in useless]
        assert tried == sorted(expected), self.lock.remedies
        trail = rocwright(self.home, self.folder, "heal", "--explain")
        assert all(f"{issue} · {self.stack}" in trail for issue in issues), trail
        (artifact,) = told["artifacts"]
        return Path(artifact["path"])

    def fails_checks(self) -> list[dict[str, Any]]:
        """Build and verify; gives what was found wrong in the artifact."""
        _, told = self._build(self.folder, "--verify")
        assert told["findings"], told
        return [one for one in told["findings"] if not one["ok"]]

    def builds(self, *words: str) -> dict[str, Any]:
        """Build the component, also where the store has it; gives what `build --json` tells."""
        self.forget()
        code, told = self._build(self.folder, *words)
        assert code == 0, told
        return told

    def forget(self) -> None:
        """Leave the store as if the component had never been built."""
        for path in (self.home.store / "records").glob("??/*.json"):
            if json.loads(path.read_text())["step"] == self.stack:
                path.unlink()

    def builds_elsewhere(self) -> None:
        """From the lock alone, in a store that never saw the component built, it is built at once."""
        self.forget()
        elsewhere = self.folder.with_name(f"{self.folder.name}-elsewhere")
        elsewhere.mkdir()
        for name in ("rocwright.toml", "rocwright.lock"):
            shutil.copy(self.folder / name, elsewhere)
        code, told = self._build(elsewhere)
        assert code == 0, told
        outcomes = {one["name"]: one["outcome"] for one in told["run"]["steps"]}
        assert outcomes[self.stack] == "built", told
        assert read_lock(elsewhere / "rocwright.lock").remedies == self.lock.remedies

    def _build(self, folder: Path, *words: str) -> tuple[int, dict[str, Any]]:
        done = subprocess.run(
            [*self.around, sys.executable, "-m", "rocwright", "build", "--json", *self.options, *words],
            cwd=folder,
            env=os.environ | {"ROCWRIGHT_HOME": str(self.home.path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout, done.stderr[-4000:]
        return done.returncode, json.loads(done.stdout)
