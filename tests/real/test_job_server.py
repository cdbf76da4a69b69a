"""Steps that run at once share the jobs: real make and ninja, compilers that only take time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.execution.conftest import DOMAIN, Workshop, put_root
from tests.making import EPOCH, make_tiny_root

from rocwright.execution.estimate import Expected
from rocwright.execution.options import BuildOptions
from rocwright.execution.outcome import StepsOutcome
from rocwright.execution.progress import PlainProgress
from rocwright.farm.executors import run_steps
from rocwright.home import Home
from rocwright.model.steps import Plan, Resources, Step
from rocwright.plan.decide import decide
from rocwright.sources.archive import pack
from rocwright.store.local import LocalStore

pytestmark = pytest.mark.real

NEEDS = Resources(cores=64, memory=2**20, limit=100)
FIFO = "/run/rocwright/tokens"

MAKEFILE = """all: $(addprefix o,$(shell seq 1 $(N)))
o%:
\t@echo + >> /ccache/$(LOG); ./cc1plus $(T); echo - >> /ccache/$(LOG)
"""
"""N compilations of T seconds each, whose begins and ends are written down."""

COMPILER = "cp /usr/bin/sleep ./cc1plus"
"""It takes time by the name of a compiler."""


@pytest.fixture(scope="module")
def make_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("make-root")
    make_tiny_root(folder / "root.tar.zst", folder, more=("make", "seq"))
    return folder / "root.tar.zst"


@pytest.fixture
def shop(home: Home, engine: str, make_root: Path, tmp_path: Path) -> Workshop:
    store = LocalStore(home.store)
    return Workshop(home, store, engine, tmp_path, put_root(store, make_root))


def make(count: int, seconds: float, log: str, words: str = "make") -> str:
    return f"{words} --no-print-directory N={count} T={seconds} LOG={log}"


def builds(shop: Workshop, name: str, *commands: str) -> Step:
    """A step that compiles."""
    tree = shop.tree(name, Makefile=MAKEFILE)
    return shop.step(COMPILER, *commands, "touch $OUT/result", name=name, tree=tree, resources=NEEDS)


def run(shop: Workshop, *steps: Step, jobs: int = 4, sharing: bool = True) -> StepsOutcome:
    plan = Plan(steps=(shop.root, *shop.trees.values(), *steps), artifacts=tuple(one.name for one in steps))
    options = BuildOptions(jobs=jobs, engine=shop.engine, sharing=sharing)
    expected: Mapping[str, Expected] = {}
    logs = shop.home.runs / "run"
    decisions = decide(plan, shop.store)
    told = run_steps(decisions, shop.store, shop.home, options, logs, expected, PlainProgress())
    assert [one.outcome for one in told.steps] == ["built"] * len(steps), [
        (name, error.cause, error.detail) for name, error in told.failures
    ]
    return told


def at_once(shop: Workshop, log: str) -> list[int]:
    """How many compiled at once, after each begin and end."""
    counts, now = [], 0
    for word in (shop.home.compiler_cache(DOMAIN) / log).read_text().split():
        now += 1 if word == "+" else -1
        counts.append(now)
    return counts


def said(shop: Workshop, name: str) -> str:
    return (shop.home.runs / "run" / f"{name}.log").read_text()


def test_two_steps_share_the_jobs_and_when_one_ends_the_other_grows(shop: Workshop) -> None:
    one = builds(shop, "short", make(6, 0.3, "both"))
    two = builds(shop, "long", make(10, 0.3, "both"), make(12, 0.3, "alone"))
    told = run(shop, one, two)
    assert max(at_once(shop, "both")) == 4
    assert max(at_once(shop, "alone")) == 4
    assert {one.jobs for one in told.steps} == {2}
    assert all((one.most_jobs, one.paused) == (4, 0) for one in told.steps)
    assert "shares jobs with the steps that run at the same time: make (here: make 4." in said(shop, "long")


@pytest.mark.nightly
def test_without_the_job_server_each_keeps_the_number_that_it_began_with(shop: Workshop) -> None:
    run(shop, builds(shop, "a", make(1, 0.1, "a")), builds(shop, "b", make(9, 0.2, "b")), sharing=False)
    assert max(at_once(shop, "b")) == 2


@pytest.mark.nightly
def test_one_that_is_given_a_number_leaves_less_for_the_others(shop: Workshop) -> None:
    """-j on make's command line switches the job server off; the server sees what runs all the same."""
    rude = builds(shop, "rude", make(24, 0.8, "rude", "make -j4"))
    kind = builds(shop, "kind", make(1, 3.5, "waits"), make(12, 0.2, "kind"))
    run(shop, rude, kind, jobs=4)
    assert max(at_once(shop, "rude")) == 4
    # three without: its first, and the two tokens that there are
    assert max(at_once(shop, "kind")) <= 2


def test_tokens_of_a_client_that_was_killed_come_back(shop: Workshop) -> None:
    step = builds(
        shop,
        "killed",
        "exec 5>&1; " + make(40, 0.4, "dying") + " & sleep 1; kill -9 $!; sleep 4",
        make(12, 0.3, "after"),
    )
    run(shop, step)
    assert max(at_once(shop, "dying")) == 4
    assert max(at_once(shop, "after")) == 4


@pytest.mark.nightly
def test_a_step_that_drains_the_fifo_takes_jobs_from_nobody_for_ever(shop: Workshop) -> None:
    drains = f"cat <{FIFO} >/dev/null & drain=$!; sleep 1"
    step = builds(
        shop, "drains", f"{drains}; {make(3, 0.1, 'during')}; kill $drain; sleep 4", make(12, 0.3, "later")
    )
    run(shop, step)
    assert max(at_once(shop, "during")) == 1
    assert max(at_once(shop, "later")) == 4


@pytest.mark.nightly
def test_ten_megabytes_of_tokens_make_no_more_jobs(shop: Workshop) -> None:
    flood = f"head -c 10000000 /dev/zero >{FIFO}; sleep 1"
    run(shop, builds(shop, "floods", flood, make(12, 0.3, "flooded")))
    assert max(at_once(shop, "flooded")) <= 5


BUILD_NINJA = """time = 0.3
rule cc
  command = echo + >> /ccache/$log; ./cc1plus $time; echo - >> /ccache/$log
"""


@pytest.fixture(scope="module")
def sid_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Debian's newest make and ninja, and what they need."""
    folder = tmp_path_factory.mktemp("sid-root")
    names = "--include=make,ninja-build,dash,coreutils,libc-bin"
    old = '--aptopt=Acquire::Check-Valid-Until "false"'
    subprocess.run(
        ["mmdebstrap", "--variant=extract", "--quiet", old, names, "sid", folder / "root.tar"], check=True
    )
    root = folder / "root"
    root.mkdir()
    subprocess.run(["tar", "-C", root, "--exclude=./dev/*", "-xf", folder / "root.tar"], check=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        if not (root / name).exists():
            (root / name).symlink_to(f"usr/{name}")
    pack(root, folder / "root.tar.zst", epoch=EPOCH)
    return folder / "root.tar.zst"


def test_new_make_and_ninja_take_tokens_by_the_path_of_the_fifo(shop: Workshop, sid_root: Path) -> None:
    """By itself ninja would start as many as there are processors and one or two."""
    shop.root = put_root(shop.store, sid_root, "sid")
    jobs = (os.cpu_count() or 1) + 4
    lines = "".join(f"build {number}: cc\n  log = ninja\n" for number in range(3 * jobs))
    tree = shop.tree("new", Makefile=MAKEFILE, **{"build.ninja": BUILD_NINJA + lines})
    commands = (COMPILER, make(3 * jobs, 0.3, "new"), "ninja --quiet $NINJAFLAGS", "touch $OUT/result")
    run(shop, shop.step(*commands, name="new", tree=tree, resources=NEEDS), jobs=jobs)
    assert max(at_once(shop, "new")) == jobs
    assert max(at_once(shop, "ninja")) == jobs
    assert "shares jobs with the steps that run at the same time: make, ninja (here: make 4." in said(
        shop, "new"
    )


@pytest.mark.nightly
def test_a_long_link_that_goes_on_alone_makes_no_more_jobs(shop: Workshop, sid_root: Path) -> None:
    """ninja starts two, by the place that needs no token and by a token, and the first ends long before."""
    shop.root = put_root(shop.store, sid_root, "sid")
    alone = "".join(
        f"build {name}: cc\n  log = link\n  time = {time}\n" for name, time in (("a", 0.3), ("b", 5))
    )
    after = "".join(f"build {number}: cc | a b\n  log = link\n  time = 1\n" for number in range(6))
    tree = shop.tree("link", **{"build.ninja": BUILD_NINJA + alone + after})
    commands = (COMPILER, "ninja --quiet $NINJAFLAGS", "touch $OUT/result")
    run(shop, shop.step(*commands, name="link", tree=tree, resources=NEEDS), jobs=2)
    assert at_once(shop, "link")[:3] == [1, 2, 1]
    assert max(at_once(shop, "link")) == 2
