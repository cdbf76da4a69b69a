"""What is known of the machines around the cards: what goes wrong there, why, and what helps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from rocbase.model import Frozen
from rocbase.toml.read import Reader, parse
from rocwright.catalog.folders import HOST, catalog_folders
from rocwright.model.sizes import Size

Grade = Literal["ok", "note", "warning", "error"]
Text = Annotated[str, Field(min_length=1)]


class Concern(Frozen):
    """Why something matters, to which stacks (globs; with "!" before it, not these), and what helps.

    `remedy` is a command with places to fill in such as {user}; a `safe` one harms nothing and can be taken
    back, so that `--fix` offers to run it.
    """

    why: Text
    stacks: tuple[str, ...] = ("*",)
    remedy: str = ""
    safe: bool = False
    source: Text

    def concerns(self, stack: str) -> bool:
        """Whether it matters to a stack: the last glob that fits decides."""
        fits = [glob for glob in self.stacks if fnmatchcase(stack, glob.removeprefix("!"))]
        return bool(fits) and not fits[-1].startswith("!")


class Advice(Concern):
    """What to say of something that rocwright itself finds, by name."""

    name: Text


class Driver(Frozen):
    """The kernel's driver of the cards, by the name of its module, and the known `issues` for which it, or
    the kernel, is blamed."""

    module: Text
    issues: tuple[str, ...] = ()
    source: Text


class SharesMemory(Frozen):
    """Families of targets that compute in the machine's memory, and the modules whose limit holds them."""

    families: tuple[str, ...]
    modules: tuple[str, ...]
    page: int
    keep: Size
    source: Text


class Setting(Concern):
    """A file of the kernel whose value is one of `bad`."""

    file: Text
    bad: tuple[int, ...]
    grade: Grade = "warning"


class BadFirmware(Concern):
    """A version, after `mask`, of one of the `blocks` of a target's firmware, that is known to be bad.

    `issues` are known issues that are blamed on it: whether it is there decides.
    """

    targets: tuple[str, ...]
    blocks: tuple[str, ...]
    mask: int = 0xFFFFFFFF
    bad: tuple[int, ...]
    issues: tuple[str, ...] = ()


class Parameter(Concern):
    """A setting of a kernel's module, as the command line has it (`amdgpu.mes`), with values as globs."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+\.[a-z0-9_]+$")]
    values: Annotated[tuple[str, ...], Field(min_length=1)] = ("*",)
    grade: Grade = "note"


class VendorKernel(Frozen):
    """Kernels into which their `vendor` takes changes of newer ones: globs of their releases."""

    vendor: Text
    releases: Annotated[tuple[str, ...], Field(min_length=1)]
    source: Text


class KernelLog(Frozen):
    """Where the kernel's log lies as text where the kernel itself does not give it, and how a boot begins."""

    files: tuple[str, ...]
    begins: Text
    source: Text


class Dkms(Frozen):
    """Where modules that are built apart from the kernel lie, and the names of those that matter."""

    folder: Text
    modules: tuple[str, ...]
    source: Text


class SecureBoot(Frozen):
    """The variable of the firmware whose last byte is 1 where only signed kernels and modules are loaded."""

    file: Text
    source: Text


class Marker(Frozen):
    """A file by which a container tells whose it is; `rootless` is the line of one without root's rights."""

    engine: Text
    file: Text
    rootless: str = ""
    source: Text


class Leak(Concern):
    """A variable, as a glob, that gets into builds or programs without anybody's asking."""

    variable: Text
    value: str = "*"
    grade: Grade = "note"


class Configured(Concern):
    """Lines in configuration files that change what is installed; `files` with ~ for the user's folder."""

    files: tuple[str, ...]
    keys: tuple[str, ...]
    grade: Grade = "note"


class Folder(Concern):
    """A folder that programs look into by themselves."""

    path: Text


class Wants(Frozen):
    """The memory that a stack wants the GPU to reach."""

    stack: str
    memory: Size
    why: Text
    source: Text


class VersionedTool(Frozen):
    """A program and how it tells its version."""

    program: Text
    arguments: tuple[str, ...] = ("--version",)
    why: Text
    source: Text


class Installer(Frozen):
    """How the distributions with one of these `ids` (os-release(5)) install packages.

    `packages` names those that are not called like their program; "" is none in the archive.
    """

    ids: tuple[Text, ...]
    command: Text
    packages: dict[str, str] = {}
    source: Text


class Storage(Frozen):
    """Where an engine keeps images: the first of `folders` that is there, or what `key` in `files` says."""

    engine: str
    folders: tuple[str, ...]
    files: tuple[str, ...] = ()
    key: str = ""
    source: Text


class Link(Concern):
    """A feature of the bus that targets need which say so: `feature` is its name among theirs."""

    feature: Text
    needed: Text


class ToolsRoot(Frozen):
    """The Debian that makes and reads roots of Debian: its suite, an image of it, and what it has to have.

    `sources` are the programs by which it can be had, in their order, each with those that it needs.
    """

    suite: Text
    image: Text
    packages: Annotated[tuple[str, ...], Field(min_length=1)]
    sources: dict[str, tuple[str, ...]]
    source: Text


class HostFile(Frozen):
    """host.toml."""

    driver: Driver | None = None
    tools_root: ToolsRoot | None = None
    shares_memory: SharesMemory | None = None
    kernel_log: KernelLog | None = None
    dkms: Dkms | None = None
    secure_boot: SecureBoot | None = None
    advice: tuple[Advice, ...] = ()
    setting: tuple[Setting, ...] = ()
    firmware: tuple[BadFirmware, ...] = ()
    leak: tuple[Leak, ...] = ()
    configured: tuple[Configured, ...] = ()
    folder: tuple[Folder, ...] = ()
    wants: tuple[Wants, ...] = ()
    tool: tuple[VersionedTool, ...] = ()
    installer: tuple[Installer, ...] = ()
    storage: tuple[Storage, ...] = ()
    link: tuple[Link, ...] = ()
    parameter: tuple[Parameter, ...] = ()
    vendor_kernel: tuple[VendorKernel, ...] = ()
    container: tuple[Marker, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """host.toml of all folders of the catalog, what the topmost says first."""

    driver: Driver
    tools_root: ToolsRoot
    shares_memory: SharesMemory
    kernel_log: KernelLog
    dkms: Dkms
    secure_boot: SecureBoot
    advice: Mapping[str, Advice]
    setting: Sequence[Setting]
    firmware: Sequence[BadFirmware]
    leak: Sequence[Leak]
    configured: Sequence[Configured]
    folder: Sequence[Folder]
    wants: Sequence[Wants]
    tool: Sequence[VersionedTool]
    installer: Sequence[Installer]
    storage: Sequence[Storage]
    link: Sequence[Link]
    parameter: Sequence[Parameter]
    vendor_kernel: Sequence[VendorKernel]
    container: Sequence[Marker]

    def vendor_of(self, kernel: str) -> str:
        """Who takes changes of newer kernels into this release, or ""."""
        rules = (
            rule for rule in self.vendor_kernel if any(fnmatchcase(kernel, glob) for glob in rule.releases)
        )
        return next((rule.vendor for rule in rules), "")


def host_facts() -> HostFacts:
    """Of the catalog in use. Raises InputError where it is at fault."""
    return load_host_facts(*catalog_folders())


@cache
def load_host_facts(*folders: Path) -> HostFacts:
    """Of folders, the topmost first. Raises InputError that names the file and what is wrong in it."""
    reader = Reader(folders)
    files = [parse(HostFile, reader.data(path), path) for path in reversed(reader.layers(HOST))]
    return HostFacts(
        driver=next(file.driver for file in files if file.driver),
        tools_root=next(file.tools_root for file in files if file.tools_root),
        shares_memory=next(file.shares_memory for file in files if file.shares_memory),
        kernel_log=next(file.kernel_log for file in files if file.kernel_log),
        dkms=next(file.dkms for file in files if file.dkms),
        secure_boot=next(file.secure_boot for file in files if file.secure_boot),
        advice={advice.name: advice for file in reversed(files) for advice in file.advice},
        setting=[entry for file in files for entry in file.setting],
        firmware=[entry for file in files for entry in file.firmware],
        leak=[entry for file in files for entry in file.leak],
        configured=[entry for file in files for entry in file.configured],
        folder=[entry for file in files for entry in file.folder],
        wants=[entry for file in files for entry in file.wants],
        tool=[entry for file in files for entry in file.tool],
        installer=[entry for file in files for entry in file.installer],
        storage=[entry for file in files for entry in file.storage],
        link=[entry for file in files for entry in file.link],
        parameter=[entry for file in files for entry in file.parameter],
        vendor_kernel=[entry for file in files for entry in file.vendor_kernel],
        container=[entry for file in files for entry in file.container],
    )
