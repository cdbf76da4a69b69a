"""An emulated GPU: the emulator that is installed, for one target, and how programs are run in it.

rocwright neither packages nor builds an emulator. What one shows is no GPU, and what ran on it is evidence of
its own kind, below that of a card.
"""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from rocbase.errors import InputError
from rocbase.files.atomic import sha256_bytes, sha256_file
from rocbase.toml.folders import holder
from rocwheel.wheels.emulators import Emulator, emulators
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import EmulatedCheck
from rocwright.records.model import EMULATED
from rocwright.sandbox.model import Mount

# The argument of a check that becomes how to run a program on the emulated GPU.
WORDS = "{emulated}"

# The program in the catalog's folder that tries an emulator; its kernels lie beside it.
SELF_TEST = "checks/emulator/selftest.py"

# Where a sandbox has the emulator, and the folder of that run alone.
INSIDE, FOLDER = "/emulator", "/trial/emulated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulation:
    """An emulator that is installed, set up for one target; `configuration` is the text of its file."""

    emulator: Emulator
    target: str
    program: Path
    library: Path
    configuration: str

    @property
    def device(self) -> str:
        """What evidence calls it."""
        return f"{EMULATED} {self.target} ({self.emulator.name})"

    @property
    def identity(self) -> str:
        """What it is, by hashes: two emulators of one version may differ."""
        return (
            f"{self.library.name} sha256 {sha256_file(self.library)}, "
            f"configuration sha256 {sha256_bytes(self.configuration.encode())}, {self.emulator.threads} 1"
        )

    @property
    def words(self) -> list[str]:
        """What a check is told of it: the target, where races are told of, and the words before a program."""
        races = self.emulator.races
        command = [f"{INSIDE}/bin/{self.program.name}"]
        command += [
            argument.format(configuration=f"{INSIDE}/configuration") for argument in self.emulator.arguments
        ]
        options = ["--target", self.target, "--races", f"{FOLDER}/{races.file}"]
        return [*options, "--lds-race", races.lds, "--race", races.race, "--", *command]

    @property
    def env(self) -> dict[str, str]:
        """The environment of what runs in it."""
        return {name: value.format(folder=FOLDER) for name, value in self.emulator.env.items()}

    def mounts(self, folder: Path) -> tuple[Mount, ...]:
        """What the sandbox is shown of it; its configuration is written into `folder`."""
        path = folder / "configuration"
        path.write_text(self.configuration)
        return (
            Mount(source=self.program, target=f"{INSIDE}/bin/{self.program.name}"),
            Mount(source=self.library, target=f"{INSIDE}/lib/{self.library.name}"),
            Mount(source=path, target=f"{INSIDE}/configuration"),
        )

    def self_test(self, catalog: Catalog) -> EmulatedCheck:
        """What must be right before anything is claimed: each kernel, its version, and no race."""
        kernels = [*(catalog.file(SELF_TEST).parent / "programs").glob("*.hip")]
        version = shlex.join([f"{INSIDE}/bin/{self.program.name}", *self.emulator.version])
        return EmulatedCheck(
            name=f"self-test-{self.target}",
            kind="script",
            script=SELF_TEST,
            arguments=("--version", version, WORDS),
            seconds=3600,
            least=len(kernels) + 2,
        )


def emulation(target: str, catalog: Catalog) -> Emulation:
    """The emulator of this machine for a GPU target.

    Raises InputError where none emulates it, none is installed, or what is installed is not whole.
    """
    candidates = [emulator for emulator in emulators() if target in emulator.configurations]
    if not candidates:
        reasons = [emulator.lacks[target] for emulator in emulators() if target in emulator.lacks]
        able = sorted({name for emulator in emulators() for name in emulator.configurations})
        raise InputError(
            f"no emulator is known for {target}",
            cause="; ".join(reasons) or f"emulated are {', '.join(able)}",
            next_step="rocwright verify, on a machine with the card",
        )
    installed = [(emulator, path) for emulator in candidates if (path := _program(emulator)) is not None]
    if not installed:
        raise InputError(
            f"no emulator of {target} is installed",
            cause="; ".join(
                f"{emulator.program} is not in PATH, nor in {', '.join(emulator.places)}"
                for emulator in candidates
            ),
            next_step=f"install {candidates[0].name} ({'; '.join(candidates[0].packages)})",
        )
    emulator, program = installed[0]
    paths = [program.parents[1] / folder / emulator.library for folder in ("lib", "lib64")]
    library = next((path for path in paths if path.is_file()), None)
    if library is None:
        raise InputError(
            f"{emulator.name} at {program} is not whole: {emulator.library} is missing",
            cause=f"looked for as {' and '.join(map(str, paths))}",
            next_step=f"install {emulator.name} again ({'; '.join(emulator.packages)})",
        )
    return Emulation(
        emulator=emulator,
        target=target,
        program=program,
        library=library,
        configuration=_configuration(emulator, target, program, catalog),
    )


def _program(emulator: Emulator) -> Path | None:
    path = shutil.which(emulator.program) or shutil.which(emulator.program, path=":".join(emulator.places))
    return Path(path).resolve() if path else None


def _configuration(emulator: Emulator, target: str, program: Path, catalog: Catalog) -> str:
    """The catalog's file, else the emulator's own, with one thread: more crash, and change the order."""
    name = emulator.configurations[target]
    folder = holder(name, catalog.folders)
    path = (folder or program.parents[1] / emulator.own) / name
    try:
        data = json.loads(path.read_bytes())
        if not isinstance(data, dict):
            raise ValueError("it is no JSON object")
    except (OSError, ValueError) as error:
        raise InputError(
            f"{emulator.name} has no configuration for {target} that can be read: {path}",
            cause=str(error),
            next_step=f"install {emulator.name} again ({'; '.join(emulator.packages)})",
        ) from error
    return json.dumps(data | {emulator.threads: 1}, indent=1) + "\n"
