"""No sandbox: the job runs on the host as the caller. Only for those who ask for it by name."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

from rocwright.sandbox.engine import Launch, Scene


@dataclass(frozen=True, slots=True)
class HostEngine:
    """Hides nothing: root, mounts, devices and network are the host's, and paths must be the host's own.

    The environment, the limits and the reporting are those of every engine. Without a cgroup, a process that
    leaves the job's session survives it.
    """

    name: str = "host"
    isolates: bool = False
    keeps_images: bool = False

    def version(self) -> str:
        return f"{platform.system()} {os.uname().release}"

    def launch(self, scene: Scene) -> Launch:
        return Launch(argv=scene.command)
