"""Where benchmarks work: a home whose stacks are built once, and scratch homes that share its files."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import BenchError, Took, timed
from rocwheel.tables import OVERLAY
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import load_catalog
from rocwright.home import Home
from rocwright.model.steps import Plan, Step
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.files import read_lock
from rocwright.plan.resolve.model import Lock, Request
from rocwright.project import project_of
from rocwright.sources.bases.roots import remove_tree
from rocwright.store.local import LocalStore
from rocwright.store.model import verified

BIN = Path(sys.executable).parent
# The sandbox of every row; the commands typed by hand use it too.
ENGINE = "bubblewrap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A stack as it is asked for on the command line, and the folder of a catalog that has it, where the
    shipped one does not."""

    name: str
    gpu: tuple[str, ...]
    base: str
    catalog: Path | None = None

    @property
    def words(self) -> list[str]:
        return [self.name, "--gpu", ",".join(self.gpu), "--base", self.base]

    @property
    def env(self) -> dict[str, str]:
        """The variables by which rocwright finds it."""
        return {OVERLAY: str(self.catalog)} if self.catalog else {}

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of its catalog."""
        return (*([self.catalog] if self.catalog else []), DATA)

    def lock_path(self, home: Home) -> Path:
        """Where its lock is kept in a home."""
        request = Request(stack=self.name, gpu=self.gpu, base=self.base)
        return project_of(request, home.path, home).lock_path


GFX_SMOKE = Stack(name="gfx-smoke", gpu=("gfx803", "gfx1103", "gfx1151"), base="debian:sid")
TORCH = Stack(name="torch-extensions", gpu=("gfx1151",), base="debian:trixie")
LLAMA = Stack(name="llama-vulkan", gpu=("gfx1151",), base="debian:sid")


def bench_home() -> Home:
    """`$ROCWRIGHT_BENCH_HOME`, else ~/.cache/rocwright-bench."""
    named = os.environ.get("ROCWRIGHT_BENCH_HOME")
    return Home(Path(named).absolute() if named else Path.home() / ".cache" / "rocwright-bench")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scratch:
    """A home of a row's own, removed after it: what it forgets or builds is lost nowhere else."""

    path: Path

    @property
    def home(self) -> Home:
        return Home(self.path / "home")

    @property
    def store(self) -> LocalStore:
        return LocalStore(self.home.store)

    @property
    def folder(self) -> Path:
        """Where commands are typed; artifacts are laid out below it."""
        return self.path / "project"

    @property
    def log(self) -> Path:
        return self.path / "log"

    def rocwright(self, *words: str | Path) -> Took:
        """A rocwright command with this home."""
        env = {"ROCWRIGHT_HOME": str(self.home.path)}
        return timed([BIN / "rocwright", *words], log=self.log, env=env, cwd=self.folder)

    def build(self, stack: Stack) -> Took:
        """`rocwright build`."""
        return self.rocwright("build", *stack.words, "--engine", ENGINE)

    def plan(self, stack: Stack) -> Plan:
        return make_plan(self.lock(stack), load_catalog(*stack.folders))

    def lock(self, stack: Stack) -> Lock:
        return read_lock(stack.lock_path(self.home))

    def step(self, stack: Stack, name: str) -> Step:
        found = [step for step in self.plan(stack).steps if step.name == name]
        if not found:
            raise BenchError(f"the plan of {stack.name} has no step {name}")
        return found[0]

    def input_of(self, step: Step, name: str) -> Path:
        """The stored file behind an input of a step."""
        item = next(item for item in step.inputs if item.name == name)
        record = self.store.record(item.key)
        if record is None:
            raise BenchError(f"{step.name}: its input {name} is not in the store")
        return verified(self.store, record.output(item.output).sha256)

    def root_of(self, step: Step) -> Path:
        """The unpacked root file system of a step."""
        return (self.home.roots / self.input_of(step, "root").name).resolve()

    def unbuild(self, step: Step) -> None:
        """Forget that a step was ever built, and drop what it made; its inputs stay."""
        record = self.store.record(step.key)
        for key in {step.key, *([record.content_key] if record else [])}:
            self.store.local.remove("record", key)
        for output in record.outputs if record else ():
            self.store.local.remove("file", output.sha256)
        self.drop(self.folder / "rocwright-out")

    def empty_compiler_cache(self) -> None:
        self.drop(self.home.compiler_caches)

    def drop(self, path: Path) -> None:
        remove_tree(path)


@contextmanager
def scratch(*stacks: Stack) -> Iterator[Scratch]:
    """A scratch home with the stacks built: files of the store are hard links, roots are shared.

    What is not built in the benchmarks' home is built there first.
    """
    base = bench_home()
    for stack in stacks:
        _ensure(base, stack)
    with bare() as made:
        _share(base, made.home)
        yield made


@contextmanager
def bare() -> Iterator[Scratch]:
    """A scratch home with nothing in it."""
    made = Scratch(path=bench_home().path / "bench" / f"scratch-{os.getpid()}")
    remove_tree(made.path)
    try:
        made.folder.mkdir(parents=True)
        yield made
    finally:
        remove_tree(made.path)


def _ensure(base: Home, stack: Stack) -> None:
    """Build the stack in the benchmarks' home: an instant where it is there.

    A lock that no longer matches the recipes is made again.
    """
    folder = base.path / "bench" / "project"
    folder.mkdir(parents=True, exist_ok=True)
    log = base.path / "bench" / f"{stack.name}.log"
    words: list[str | Path] = [BIN / "rocwright", "build", *stack.words, "--engine", ENGINE]
    env = {"ROCWRIGHT_HOME": str(base.path), **stack.env}
    try:
        took = timed(words, log=log, env=env, cwd=folder)
    except BenchError:
        lock = stack.lock_path(base)
        if "rocwright lock" not in log.read_text() or not lock.exists():
            raise
        print(f"  {stack.name}: the lock does not match the recipes, made again", flush=True)
        lock.unlink()
        took = timed(words, log=log, env=env, cwd=folder)
    if took.wall > 10:
        print(f"  {stack.name} was not built yet: built in {took.wall:.0f} s", flush=True)


def _share(base: Home, home: Home) -> None:
    """A home like `base`, whose changes stay its own: stored files are never edited, so links are safe."""
    home.path.mkdir(parents=True)
    LocalStore(base.store)
    shutil.copytree(base.store / "blobs", home.store / "blobs", copy_function=os.link)
    for name in ("records", "steps"):
        shutil.copytree(base.store / name, home.store / name)
    for name in ("tmp", "damaged", "locks"):
        (home.store / name).mkdir()
    shutil.copy(base.store / "format.json", home.store / "format.json")
    for name in ("plans", "locks"):
        shutil.copytree(base.path / name, home.path / name)
    if base.probes.exists():
        shutil.copy(base.probes, home.probes)
    home.roots.symlink_to(base.roots)
    home.apt.symlink_to(base.apt)
