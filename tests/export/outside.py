"""Stand-ins for the programs outside that exported scripts start: each records its arguments and leaves what
a script needs of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

# Programs of this machine that a script must not find by chance.
HIDDEN = ("podman", "buildah", "docker", "dnf", "pacstrap")
PROGRAMS = (
    *("git", "curl", "python3", "apt-get", "mmdebstrap", "patch", "sha256sum", "sha512sum", "getent", "id"),
    *("systemd-nspawn", "sudo"),
)
HASH = "0" * 64

STAND_IN = f"#!{Path(sys.executable).resolve()} -IS\n" + Path(__file__).with_name("stand_in.py").read_text()


class Outside:
    """A folder of stand-ins, and the calls that they recorded."""

    def __init__(self, folder: Path, programs: Iterable[str] = PROGRAMS) -> None:
        self.folder, self.log = folder / "bin", folder / "bin/.calls"
        self.folder.mkdir(parents=True)
        for program in programs:
            (self.folder / program).write_text(STAND_IN)
            (self.folder / program).chmod(0o755)

    def run(self, *words: str | Path, cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a script that finds the stand-ins before every other program; the machine's own are the rest,
        without its engines."""
        machine = self.folder.with_name("machine")
        if not machine.is_dir():
            machine.mkdir()
            for place in ("/usr/bin", "/bin"):
                for path in Path(place).iterdir():
                    if path.name not in HIDDEN and not (machine / path.name).is_symlink():
                        (machine / path.name).symlink_to(path)
        own = {"PATH": f"{self.folder}:{machine}", "HOME": str(cwd)}
        return subprocess.run(
            [*map(str, words)], cwd=cwd, env=own | dict(env), capture_output=True, text=True, check=False
        )

    def calls(self, program: str) -> list[dict[str, Any]]:
        """Return what was recorded of one program."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [call for call in map(json.loads, lines) if call["program"] == program]

    def run_inside(self, root: Path, script: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a script of a stage with `root` as its root file system, to which the machine's programs are
        added, and the stand-ins before them."""
        words = ["bwrap", "--unshare-all", "--die-with-parent", "--clearenv", "--bind", str(root), "/"]
        for place in ("/usr", "/bin", "/sbin", "/lib", "/lib64"):
            path = Path(place)
            words += ["--symlink", str(path.readlink()), place] if path.is_symlink() else []
            words += ["--ro-bind", place, place] if path.is_dir() and not path.is_symlink() else []
        if not Path(sys.base_prefix).is_relative_to("/usr"):
            words += ["--ro-bind", sys.base_prefix, sys.base_prefix]
        words += ["--bind", str(self.folder), "/usr/local/bin", "--proc", "/proc", "--dev", "/dev"]
        for name, value in {"PATH": "/usr/local/bin:/usr/bin:/bin", **env}.items():
            words += ["--setenv", name, value]
        return subprocess.run([*words, "/bin/sh", script], capture_output=True, text=True, check=False)
