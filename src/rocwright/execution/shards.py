"""One step over many machines: shards, each of which compiles a part of it into a compiler cache.

A shard is a step of its own: the same root, tree and commands up to those that ninja runs in, where a
stand-in compiles every Nth object and no more. Its output is what ccache kept of that. The step itself reads
the caches of its shards and compiles what is not in them: without a shard it takes longer, and its bytes are
the same either way, so shards are no part of its key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rocwright.execution.estimate import Expected
from rocwright.execution.executor import ExecutorOffer
from rocwright.execution.shard_caches import OUTPUT
from rocwright.model.step_environment import BUILD, FIXED
from rocwright.model.steps import RunAction, Step
from rocwright.plan.decide import Decision, State
from rocwright.store.model import Store, finished

FOLDER = f"{BUILD}/shard"

# How the names of shards begin.
PREFIX = "shard/"

# Seconds of work on one core below which a step is not split unasked: configuring is done by every shard.
WORTH_SHARDS = 20 * 60

_STAND_IN = f"""\
for name in ninja ninja-build; do
  ! command -v $name > /dev/null || install -D -m755 /rocwright/shard_ninja.sh {FOLDER}/bin/$name
done
# the shell has found them behind by now
hash -r
mkdir -p {FOLDER}/cache"""

_PACK = f"""\
export ROCWRIGHT_SHARD_ACTIVE=1
trap 'code=$?
[ ! -e {FOLDER}/done ] || code=0
[ $code != 0 ] || tar -C {FOLDER}/cache -cf "$OUT/shard.tar" .
exit $code' EXIT"""


def shards_of(step: Step, count: int) -> tuple[Step, ...]:
    """The shards of a step, so many; none where its recipe does not say that it can be split."""
    action = step.action
    if count < 2 or not isinstance(action, RunAction) or not action.split:
        return ()
    last = action.split - 1
    commands = [*action.commands[:last], f"{_PACK}\n{action.commands[last]}"]
    commands[0] = f"{_STAND_IN}\n{commands[0]}"
    shards = []
    for part in range(1, count + 1):
        env = action.env | {
            "ROCWRIGHT_SHARD": f"{part}/{count}",
            "PATH": f"{FOLDER}/bin:{action.env.get('PATH', FIXED['PATH'])}",
            # what the local cache has goes into the shard too
            "CCACHE_REMOTE_STORAGE": f"file:{FOLDER}/cache",
            "CCACHE_RESHARE": "true",
        }
        split = {"commands": tuple(commands), "env": env, "outputs": (OUTPUT,), "split": 0}
        resources = step.resources.model_copy(update={"seconds": step.resources.seconds / count})
        shards.append(
            step.model_copy(
                update={
                    "name": f"{PREFIX}{step.name}/{part}-of-{count}",
                    "action": action.model_copy(update=split),
                    "resources": resources,
                }
            )
        )
    return tuple(shards)


def with_shards(
    decisions: Sequence[Decision],
    count: int | None,
    offers: Sequence[ExecutorOffer],
    expected: Mapping[str, Expected],
    store: Store,
) -> tuple[list[Decision], dict[str, tuple[str, ...]]]:
    """The decisions with the shards of each step that runs, before it; and their keys, by that of their step.

    `count` is how many were asked for; None has as many as there are places, where these are more than one
    and the step is long.
    """
    expanded: list[Decision] = []
    shards: dict[str, tuple[str, ...]] = {}
    for decision in decisions:
        if decision.state is State.RUN:
            parts = count if count is not None else _unasked(decision.step, len(offers), expected)
            split = shards_of(decision.step, parts)
            expanded += [_decided(shard, decision.step, store) for shard in split]
            if split:
                shards[decision.step.key] = tuple(shard.key for shard in split)
        expanded.append(decision)
    return expanded, shards


def _unasked(step: Step, places: int, expected: Mapping[str, Expected]) -> int:
    return places if expected.get(step.name, Expected()).work >= WORTH_SHARDS else 1


def _decided(shard: Step, step: Step, store: Store) -> Decision:
    state = State.CACHED if finished(store, shard.key) else State.RUN
    return Decision(step=shard, state=state, reasons=(f"a part of {step.name}",))
