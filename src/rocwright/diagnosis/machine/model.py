"""What was read of a machine. Sizes are bytes; None is unknown, never zero."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rocbase.model import Frozen
from rocwright.diagnosis.machine.tree import Unread

Atomics = Literal["yes", "no", "unknown"]


class Gpu(Frozen):
    """An AMD GPU, of all that the kernel tells of it.

    `told_by` are the places that know it (kfd, drm, pci); `simds` is the strength that the compute driver
    tells; `shared` says that it computes in the machine's memory; `firmware` is version by block.
    """

    target: str | None
    pci_id: str
    address: str = ""
    told_by: tuple[str, ...]
    node: int | None = None
    simds: int = 0
    driver: str = ""
    render: str = ""
    shared: bool = False
    vram: int | None = None
    gtt: int | None = None
    firmware: dict[str, int] = {}
    atomics: Atomics = "unknown"


class Graphics(Frozen):
    """Another maker's display device: PCI id and driver."""

    pci_id: str
    driver: str


class Topology(Frozen):
    """The compute driver's topology: whether it is there, its nodes, and those that say too little."""

    there: bool
    nodes: int = 0
    partial: tuple[int, ...] = ()


class Group(Frozen):
    """A group by number, and by name where the machine has one for it."""

    gid: int
    name: str = ""


class Right(Frozen):
    """A device file: its owners and mode, and whether the user may read and write it."""

    path: str
    there: bool
    uid: int = 0
    group: Group | None = None
    mode: int = 0
    may: bool = False


class User(Frozen):
    """Who asks: numbers and names."""

    uid: int
    name: str
    groups: tuple[Group, ...]


class Driver(Frozen):
    """The kernel and its graphics driver. `version` is that of a driver built apart (DKMS), else empty.

    `settings` are what somebody set of modules, by `module.name`: on the kernel's command line, else in
    modprobe's files.
    """

    kernel: str
    module: bool
    version: str = ""
    command_line: str = ""
    settings: dict[str, str] = {}


class KernelLog(Frozen):
    """The kernel's log since it was booted, and the file it is from; "" where this user may not read it."""

    file: str
    text: Annotated[str, Field(exclude=True)] = ""


class DkmsModule(Frozen):
    """A version of a module that is built apart from the kernel: the kernels it was built for, and what is
    left of an attempt that failed."""

    module: str
    version: str
    kernels: tuple[str, ...] = ()
    failed_log: str = ""
    failed_text: Annotated[str, Field(exclude=True)] = ""


class Container(Frozen):
    """The container that this runs in, and whether it is one without root's rights."""

    engine: str
    rootless: bool = False


class PageLimit(Frozen):
    """What graphics may take of the machine's memory, in pages, and whose module says so."""

    module: str
    pages_limit: int | None
    page_pool_size: int | None


class Memory(Frozen):
    """Memory and swap of the machine, the least that a cgroup allows, and where that is said.

    `pressure` is the share of the last ten seconds, in percent, in which something waited for memory.
    `delegated` says whether this process may make cgroups (None: another machine, or none to look at).
    """

    total: int
    available: int
    swap: int = 0
    swap_free: int = 0
    limit: int | None = None
    limited_by: str = ""
    cgroups: Literal["none", "v1", "v2", "hybrid"] = "none"
    pressure: float | None = None
    delegated: bool | None = None


class FreeSpace(Frozen):
    """What is free where something lies: bytes and inodes (None: as many as there is room for)."""

    what: str
    path: str
    total: int
    free: int
    inodes: int | None
    inodes_free: int | None
    device: int


class Machine(Frozen):
    """All of it. `emulator` is the library that makes up GPUs for this process: it has none then.

    `nobodys_group` is the number that stands for each group which a container does not map.
    """

    gpus: tuple[Gpu, ...]
    others: tuple[Graphics, ...] = ()
    topology: Topology
    user: User
    rights: tuple[Right, ...]
    driver: Driver
    page_limit: PageLimit | None = None
    kernel_log: KernelLog | None = None
    dkms: tuple[DkmsModule, ...] = ()
    secure_boot: bool | None = None
    container: Container | None = None
    nobodys_group: int = 65534
    memory: Memory | None
    rooms: tuple[FreeSpace, ...] = ()
    processors: int = 1
    sub_ids: bool = True
    settings: dict[str, int] = {}
    iommu: tuple[str, ...] = ()
    engines: dict[str, str] | None = None
    tools: dict[str, str] = {}
    variables: dict[str, str] = {}
    configured: dict[str, str] = {}
    folders: tuple[str, ...] = ()
    leftovers: tuple[str, ...] = ()
    unread: tuple[Unread, ...] = ()
    emulator: str = ""
