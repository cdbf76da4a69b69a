"""What an action needs besides its step: the store, the machine's folders, the sandbox, how many jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rocwright.execution.kept_tree import TreeNote
from rocwright.execution.options import STEP_DEFAULTS, StepOptions
from rocwright.execution.workspace import Workspace
from rocwright.home import Home
from rocwright.model.steps import Step
from rocwright.store.model import CacheUse, Output, Record, Shard, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """`inputs` maps each input's name to the outputs behind it; `options` are those of every step;
    `parent` is the git commit that the tree of this step stands on, "" for none; `step` is the one
    that runs; `server` is the folder of the job server that the step shares with others, None for
    none; `compiler_cache` says whether it may have one; `kept` is what is noted of the tree that it goes on
    in, None where it starts clean; `content_key` is the key over what the inputs really are; `shards` are the
    records of the shards whose compiler caches it reads."""

    store: Store
    home: Home
    workspace: Workspace
    inputs: Mapping[str, Sequence[Output]]
    on_line: Callable[[str], None]
    jobs: int = 1
    memory: int | None = None
    limit: float | None = None
    options: StepOptions = STEP_DEFAULTS
    parent: str = ""
    step: Step | None = None
    server: Path | None = None
    kept: TreeNote | None = None
    content_key: str = ""
    shards: Sequence[Record] = ()

    @property
    def component(self) -> str:
        """Whose step it is."""
        return self.step.component if self.step is not None else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionResult:
    """What an action gives: files to keep by output name, and how it went. `contents` are the hex sha256 of
    the tars in those of the files that were packed here, uncompressed. `tools` is that of the tools root."""

    outputs: Mapping[str, Path]
    contents: Mapping[str, str] = field(default_factory=dict)
    engine: str = ""
    tools: str = ""
    peak_memory: int | None = None
    compiler_cache: Mapping[str, int] | None = None
    cache: CacheUse | None = None
    notes: tuple[str, ...] = ()
    commits: Mapping[str, str] | None = None
    resumed: int = 0
    shards: tuple[Shard, ...] = ()
    cache_signers: tuple[str, ...] = ()
