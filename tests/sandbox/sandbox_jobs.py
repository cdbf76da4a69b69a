"""Jobs that see the host's own programs."""

from collections.abc import Callable
from pathlib import Path

from rocwright.sandbox import SandboxJob, SandboxOutcome

ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "XYZ-05:30"}

Run = Callable[..., tuple[SandboxOutcome, list[str]]]


def job(*argv: str, root: Path = Path("/"), env: dict[str, str] | None = None, **rest: object) -> SandboxJob:
    return SandboxJob(root=root, argv=argv, env=ENV if env is None else env, **rest)  # type: ignore[arg-type]


def shell(script: str, **rest: object) -> SandboxJob:
    return job("sh", "-c", script, **rest)  # type: ignore[arg-type]
