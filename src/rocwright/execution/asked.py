"""The words of the one command that runs a step, here or on another machine."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Self

from rocwright.execution.options import STEP_DEFAULTS, StepOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A step by its key, the store's URL, and the options of `rocwright exec-step`; `memory` is in bytes,
    `shards` are the keys of its shards, `report` the file for the record or the error."""

    key: str
    store: str
    jobs: int = 1
    memory: int | None = None
    server: str | None = None
    options: StepOptions = STEP_DEFAULTS
    shards: tuple[str, ...] = ()
    report: str | None = None

    @classmethod
    def read(cls, key: str, text: str) -> Self:
        """Return the step of that key, with what `words` wrote of it."""
        given: dict[str, Any] = json.loads(text)
        return cls(key=key, **given | {"options": StepOptions(**given["options"])})

    def words(self) -> list[str]:
        """For `python -m rocwright.execution`."""
        return ["exec-step", self.key, json.dumps({k: v for k, v in asdict(self).items() if k != "key"})]
