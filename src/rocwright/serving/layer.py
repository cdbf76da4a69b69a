"""Wheels installed on a root file system, as an environment of Python's own: only read from then on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from rocbase.errors import CheckError
from rocbase.folders.temporary import temporary_folder
from rocbase.model import Frozen
from rocwright import sandbox
from rocwright.model.architecture import host_architecture
from rocwright.sandbox.model import Mount, SandboxJob
from rocwright.serving.environments import PLACE

_BEGIN = "rocwright "
_ABOUT_SCRIPT = """\
import importlib.metadata as m, json, os, platform, sys
there = {d.metadata["Name"]: d.version for d in m.distributions() if d.metadata["Name"]}
print("rocwright " + json.dumps({"there": there, "markers": {
    "implementation_name": sys.implementation.name,
    "implementation_version": platform.python_version(),
    "os_name": os.name,
    "platform_python_implementation": platform.python_implementation(),
    "platform_release": "",
    "platform_system": platform.system(),
    "platform_version": "",
    "python_full_version": platform.python_version(),
    "python_version": ".".join(platform.python_version_tuple()[:2]),
    "sys_platform": sys.platform,
}}))
"""

_INSTALL = f"""\
{{python}} -m venv --system-site-packages --without-pip {PLACE}
python={PLACE}/bin/python
$python -m pip --version >/dev/null 2>&1 || $python -m ensurepip >/dev/null
$python -m pip install --quiet --no-deps --no-index --ignore-installed --no-warn-script-location /wheels/*.whl
"""

_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108 - the sandbox's own
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONNOUSERSITE": "1",
    "PIP_NO_INDEX": "1",
    "PIP_NO_CACHE_DIR": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}

# For installing: some minutes are taken by the bytecode of large wheels.
SECONDS = 1800.0


class About(Frozen):
    """What a root's Python has installed (versions by name), and what it answers to markers."""

    there: Mapping[str, str]
    markers: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Makes environments on the root file system `root`, whose interpreter is the command `python`."""

    root: Path
    python: str
    engine: sandbox.Engine

    def about(self) -> About:
        """What the root brings. Raises CheckError if its Python does not run, or says something else."""
        from packaging.utils import canonicalize_name

        lines = self._run([self.python, "-I", "-c", _ABOUT_SCRIPT], (), 120)
        line = next((line for line in lines if line.startswith(_BEGIN)), "")
        try:
            facts = About.model_validate_json(line.removeprefix(_BEGIN))
        except ValidationError as error:
            raise CheckError(
                f"{self.python} of the root file system does not say what it has",
                cause=error.errors()[0]["msg"],
                detail="\n".join(lines[-20:]),
                next_step="rocwright verify shows whether the wheels install and import",
            ) from error
        versions = {str(canonicalize_name(name)): version for name, version in facts.there.items()}
        markers = {**facts.markers, "platform_machine": str(host_architecture())}
        return About(there=versions, markers=markers)

    def install(self, wheels: Mapping[str, Path], target: Path) -> None:
        """Install wheels, by their file names, into the new folder `target`, which is seen at PLACE in a run.

        Raises CheckError where that fails.
        """
        target.mkdir(parents=True)
        sandbox.make_writable(target)
        mounts = [Mount(source=path, target=f"/wheels/{name}") for name, path in wheels.items()]
        with temporary_folder("environment") as folder:
            script = Path(folder) / "install.sh"
            script.write_text(_INSTALL.format(python=self.python))
            mounts += [
                Mount(source=script, target="/install.sh"),
                Mount(source=target, target=PLACE, writable=True),
            ]
            self._run(["/bin/sh", "-eu", "/install.sh"], mounts, SECONDS)

    def _run(self, argv: Sequence[str], mounts: Sequence[Mount], seconds: float) -> list[str]:
        lines: list[str] = []
        job = SandboxJob(
            root=self.root, argv=tuple(argv), env=_ENVIRONMENT, mounts=tuple(mounts), seconds=seconds
        )
        outcome = sandbox.run(self.engine, job, lines.append)
        if not outcome.ok:
            raise CheckError(
                "the environment of the stack cannot be made",
                cause=next(
                    (line for line in reversed(lines) if line.strip()), f"{outcome.ended}, {outcome.code}"
                ),
                detail="\n".join(lines[-20:]),
                next_step="rocwright verify shows whether the wheels install and import",
            )
        return lines
