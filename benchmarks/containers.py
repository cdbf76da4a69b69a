"""The same stacks as Containerfiles, built by buildah in a storage folder of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.by_hand import job_of
from benchmarks.measure import BenchError, Took, timed
from benchmarks.place import Scratch, Stack
from rocwright.model.steps import ImageAction, RunAction, Step
from rocwright.sandbox.model import Job

CHANGE = "ROCWRIGHT_BENCH"
"""The environment variable whose line is changed."""


@dataclass(slots=True)
class Containers:
    """buildah's images of one benchmark; root file systems are imported once and shared by all builds."""

    scratch: Scratch
    roots: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if shutil.which("buildah") is None:
            raise BenchError("buildah is not installed")

    @property
    def folder(self) -> Path:
        return self.scratch.path / "containers"

    def prepare(self, stack: Stack) -> None:
        """Import the roots, lay out the sources, and keep what each step's sandbox is."""
        context = self._context(stack)
        for step in self._steps(stack):
            if isinstance(step.action, RunAction):
                source = context / step.name
                source.mkdir(parents=True)
                archive = self.scratch.input_of(step, "src")
                self._run(["tar", "--zstd", "-xf", archive, "-C", source])
            self._import(self.scratch.input_of(step, "root"))

    def build(self, stack: Stack, cache: Path, *, jobs: int, change: Mapping[str, str] | None = None) -> Took:
        """`buildah build --layers`; `change` gives a step's name another value of CHANGE."""
        file = self.folder / f"{stack.name}.Containerfile"
        file.write_text(self._containerfile(stack, jobs, change or {}))
        cache.mkdir(parents=True, exist_ok=True)
        argv = [*self._buildah("build"), "--layers", "--isolation", "chroot", "--pull=never"]
        argv += ["--volume", f"{cache}:/ccache:rw", "--file", str(file), "--tag", f"bench/{stack.name}"]
        return timed([*argv, self._context(stack)], log=self.scratch.log)

    def close(self) -> None:
        """Remove every image and the storage."""
        if self.folder.exists():
            for words in (["rm", "--all"], ["rmi", "--all", "--force"]):
                subprocess.run(self._buildah(*words), capture_output=True, check=False)
            for line in reversed(Path("/proc/self/mountinfo").read_text().splitlines()):
                if line.split()[4].startswith(f"{self.folder}/"):
                    subprocess.run(["umount", "--lazy", line.split()[4]], capture_output=True, check=False)
            self.scratch.drop(self.folder)

    def _context(self, stack: Stack) -> Path:
        return self.folder / f"{stack.name}.context"

    def _steps(self, stack: Stack) -> list[Step]:
        steps = self.scratch.plan(stack).steps
        return [step for step in steps if isinstance(step.action, RunAction | ImageAction)]

    def _containerfile(self, stack: Stack, jobs: int, change: Mapping[str, str]) -> str:
        """A stage a root file system; in it each component's sources are copied and its commands run."""
        lines: list[str] = []
        stage = ""
        for step in self._steps(stack):
            root = self.scratch.input_of(step, "root").name
            match step.action:
                case RunAction():
                    if stage != root:
                        lines += [f"FROM {_image(root)} AS build", "RUN mkdir -p /build/home /out /ccache"]
                        stage = root
                    job = job_of(self.scratch, step, jobs)
                    lines += _component(step.name, job, change.get(step.name, "0"))
                case ImageAction():
                    stage = ""
                    lines += [f"FROM {_image(root)}", f"COPY --from=build /unpacked {step.action.prefix}"]
                    lines += [f"ENTRYPOINT {json.dumps(list(step.action.entrypoint))}"]
        if any(isinstance(step.action, ImageAction) for step in self._steps(stack)):
            at = max(at for at, line in enumerate(lines) if line.startswith("RUN"))
            unpack = 'mkdir /unpacked && tar -C /unpacked --strip-components=1 -xf "$OUT"/*.tar.*'
            lines.insert(at + 1, f"RUN {unpack}")
        return "\n".join([*lines, ""])

    def _import(self, archive: Path) -> None:
        if archive.name in self.roots:
            return
        self.roots.add(archive.name)
        plain = self.folder / "root.tar"
        self._run(["zstd", "-q", "-d", "-f", archive, "-o", plain])
        name = "importing"
        self._run(self._buildah("from", "--name", name, "scratch"))
        self._run(self._buildah("add", "--quiet", name, str(plain), "/"))
        plain.unlink()
        self._run(self._buildah("commit", "--quiet", "--rm", name, _image(archive.name)))

    def _buildah(self, verb: str, *words: str) -> list[str]:
        folders = ["--root", str(self.folder / "storage"), "--runroot", str(self.folder / "run")]
        return ["buildah", *folders, verb, *words]

    def _run(self, argv: Sequence[str | Path]) -> None:
        timed(argv, log=self.scratch.log)


def _image(root: str) -> str:
    return f"localhost/root-{root[:12]}"


def _component(name: str, job: Job, change: str) -> list[str]:
    env = {**job.env, CHANGE: change}
    words = " ".join(f"{key}={json.dumps(value)}" for key, value in env.items())
    *shell, commands = job.argv
    typed = [*shell, f"mkdir -p {job.workdir}\ncd {job.workdir}\n{commands}\ncd /\nrm -rf {job.workdir}"]
    return [f"COPY {name} {job.workdir}", f"ENV {words}", f"RUN {json.dumps(typed)}"]
