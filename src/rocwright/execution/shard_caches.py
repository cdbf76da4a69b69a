"""The compiler caches of shards, as the step sees them that reads them: read-only, and all in one folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from rocbase import units
from rocwright import sandbox
from rocwright.execution.context import Context
from rocwright.model.step_environment import BUILD
from rocwright.model.steps import OutputSpec
from rocwright.sandbox.model import Mount, SandboxJob
from rocwright.store.model import DamagedBlobError, Shard, verified

# What a shard leaves: its compiler cache, packed.
OUTPUT = OutputSpec(name="cache", pattern="shard.tar")

# The variable by which ccache knows a second cache.
READS = "CCACHE_REMOTE_STORAGE"

_UNION = f"{BUILD}/shards"
_PACKED = "/shards"


def mounts(context: Context) -> Iterator[Mount]:
    """What each shard has packed; a step goes on without one that is damaged or gone."""
    for record in context.shards:
        with contextlib.suppress(DamagedBlobError, KeyError):
            path = verified(context.store, record.output(OUTPUT.name).sha256)
            yield Mount(source=path, target=f"{_PACKED}/{record.key}.tar")


def storages(context: Context) -> list[str]:
    """Return them as ccache's CCACHE_REMOTE_STORAGE names them."""
    return [f"file:{_UNION}|read-only"] if context.shards else []


def unpack(engine: sandbox.Engine, job: SandboxJob, context: Context) -> None:
    """Unpack them in the sandbox of the step, which goes on without those that cannot be."""
    if not context.shards:
        return
    context.on_line(f"reads the compiler caches of {units.count(len(context.shards), 'shard')}")
    script = f"""mkdir -p {_UNION}
for one in {_PACKED}/*.tar; do
  tar -C {_UNION} --skip-old-files -xf "$one" || echo "shard $one: cannot be unpacked"
done"""
    sandbox.run(engine, replace(job, argv=("/bin/sh", "-u", "-c", script)), context.on_line)


def named(context: Context) -> tuple[Shard, ...]:
    """As the record of the step names them."""
    return tuple(
        Shard(key=shard.key, step=shard.step, keyid=shard.origin.keyid if shard.origin else "")
        for shard in context.shards
    )
