"""One step over two machines: each compiles a shard in a home of its own, and only a bucket joins them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.execution.conftest import Workshop, put_root
from tests.farm.machines import make_homes, running
from tests.real.standins import STANDINS
from tests.real.test_shards import pytestmark as compilers
from tests.real.test_shards import run, split_step
from tests.store.servers import reach, s3

from rocwright.catalog.load import builtin_catalog
from rocwright.execution.options import BuildOptions
from rocwright.execution.progress import PlainProgress
from rocwright.execution.shards import shards_of
from rocwright.farm.executors import run_steps
from rocwright.home import Home
from rocwright.model.steps import Plan
from rocwright.plan.decide import decide
from rocwright.store import open_store
from rocwright.store.local import LocalStore
from rocwright.store.signing.keys import key_of

pytestmark = [pytest.mark.real, *compilers]


@dataclass
class Farm:
    """Who asks, with a store in the bucket, and the homes by name."""

    shop: Workshop
    homes: dict[str, Path]

    def keyid(self, name: str) -> str:
        return str(key_of((self.homes[name] / "attest.pub").read_bytes(), name).keyid)


@pytest.fixture
def farm(engine: str, compiler_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Farm]:
    homes = make_homes(tmp_path / "homes")
    with ExitStack() as stack:
        reach(monkeypatch, stack.enter_context(s3()))
        monkeypatch.setenv("ROCWRIGHT_HOME", str(homes["asks"]))
        up = stack.enter_context(running(homes["asks"], "farm", "up", "--port", "0"))
        address = up.wait_for("coordinator at").split()[-1]
        (homes["asks"] / "config.toml").write_text(f'[farm]\nscheduler = "{address}"\n')
        for name in ("one", "two"):
            worker = stack.enter_context(running(homes[name], "farm", "worker", address, "--name", name))
            worker.wait_for("is a worker of")
        store = open_store(f"s3://lab/{tmp_path.name}")
        root = put_root(store, compiler_root)
        yield Farm(Workshop(Home(homes["asks"]), store, engine, tmp_path, root), homes)


def test_what_two_machines_compiled_apart_gives_the_bytes_of_one(
    farm: Farm, engine: str, compiler_root: Path, tmp_path: Path
) -> None:
    shop, recipe = farm.shop, builtin_catalog().component("llama.cpp")
    step = split_step(shop, recipe, STANDINS[recipe.name])
    plan = Plan(steps=(shop.root, *shop.trees.values(), step), artifacts=(step.name,))
    logs = tmp_path / "logs"
    logs.mkdir()
    options = BuildOptions(engine=engine, executor="dask", shards=2)
    outcome = run_steps(decide(plan, shop.store), shop.store, shop.home, options, logs, {}, PlainProgress())
    assert outcome.failures == []
    assert [one.outcome for one in outcome.steps] == ["built"] * 3
    record = shop.store.record(step.key)
    assert record is not None and record.origin is not None
    # one shard by the machine that ran the step, which does not name itself, and one by the other
    [other] = {farm.keyid("one"), farm.keyid("two")} - {record.origin.keyid}
    assert sorted(one.keyid for one in record.shards) == ["", other]
    assert [one.key for one in record.shards] == [one.key for one in shards_of(step, 2)]
    told = "".join(path.read_text() for path in logs.rglob("*.log"))
    counts = [int(count) for count in re.findall(r"shard ./2: (\d+) objects", told)]
    assert len(counts) == 2 and min(counts) > 0, "each has compiled a part"

    home = Home(tmp_path / "alone")
    store = LocalStore(home.store)
    lone = Workshop(home, store, engine, tmp_path / "lone", put_root(store, compiler_root))
    lone.folder.mkdir()
    alone = run(lone, split_step(lone, recipe, STANDINS[recipe.name]))
    assert alone.key == step.key
    assert alone.outputs == record.outputs
    assert alone.compiler_cache["miss"] > record.compiler_cache.get("miss", 0)
