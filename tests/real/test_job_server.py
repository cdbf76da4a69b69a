"""Steps that run at once share the jobs: real make, real sandboxes, compilers that only take time."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.build.conftest import Workshop, put_root
from tests.making import make_tiny_root

from rocwright.build.expect import Expected
from rocwright.build.progress import PlainProgress
from rocwright.build.scheduler import Options, Outcome, run_steps
from rocwright.home import Home
from rocwright.plan.decide import decide
from rocwright.plan.model import Needs, Plan, Step
from rocwright.store.local import LocalStore

NEEDS = Needs(cores=64, memory=2**20, limit=60)

MAKEFILE = """all: $(addprefix o,$(shell seq 1 $(N)))
o%:
\t@echo + >> /ccache/$(LOG); $(CC) $(T); echo - >> /ccache/$(LOG)
"""
"""N compilations of T seconds each, whose begins and ends are written down."""


@pytest.fixture(scope="session")
def make_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("make-root")
    make_tiny_root(folder / "root.tar.zst", folder, more=("make", "seq", "kill"))
    return folder / "root.tar.zst"


@pytest.fixture
def shop(home: Home, store: LocalStore, engine: str, make_root: Path, tmp_path: Path) -> Workshop:
    return Workshop(home, store, engine, tmp_path, put_root(store, make_root))


def builds(
    shop: Workshop, name: str, count: int, seconds: float, make: str = "make", log: str = "log"
) -> Step:
    """A step that compiles: its compiler is `sleep` by the name of one."""
    return shop.step(
        "cp /usr/bin/sleep ./cc1plus",
        f"{make} --no-print-directory N={count} T={seconds} CC=./cc1plus LOG={log}",
        "touch $OUT/result",
        name=name,
        tree=shop.tree(name, Makefile=MAKEFILE),
        needs=NEEDS,
    )


def run(shop: Workshop, *steps: Step, jobs: int = 4, sharing: bool = True) -> Outcome:
    plan = Plan(steps=(shop.root, *shop.trees.values(), *steps), artifacts=tuple(one.name for one in steps))
    options = Options(jobs=jobs, engine=shop.engine, sharing=sharing)
    expected: dict[str, Expected] = {}
    return run_steps(
        decide(plan, shop.store),
        shop.store,
        shop.home,
        options,
        shop.home.runs / "run",
        expected,
        PlainProgress(),
    )


def at_once(shop: Workshop, log: str = "log") -> list[int]:
    """How many compiled at once, after each begin and end."""
    counts, now = [], 0
    for word in (shop.home.compiler_cache / log).read_text().split():
        now += 1 if word == "+" else -1
        counts.append(now)
    return counts


def said(shop: Workshop, name: str) -> str:
    return (shop.home.runs / "run" / f"{name}.log").read_text()


def test_a_step_has_all_the_jobs_and_two_share_them(shop: Workshop) -> None:
    told = run(shop, builds(shop, "one", 12, 0.3), builds(shop, "two", 24, 0.3), jobs=4)
    assert [one.outcome for one in told.steps] == ["built", "built"]
    print(at_once(shop), said(shop, "one"))
    assert max(at_once(shop)) <= 5
