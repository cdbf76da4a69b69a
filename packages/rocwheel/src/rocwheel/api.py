"""What `rocwheel.inspect(...)` and its like are: names of GPUs are strings, paths are str or Path.

All of them raise InputError for what is named wrongly or cannot be read, and CheckError for what is damaged
or not what it should be. `gpu` is any name of a GPU ("RX 580"), a target (gfx1151, gfx90a:xnack-), or "auto"
for this machine's. Files that are written get the time SOURCE_DATE_EPOCH, else 1980-01-01.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rocwheel.wheels.audit.run import AuditReport
    from rocwheel.wheels.canonicalize import Normalised
    from rocwheel.wheels.diff.model import WheelDifference
    from rocwheel.wheels.inspection import Inspection
    from rocwheel.wheels.repair import Made
    from rocwheel.wheels.runs_on import Judged
    from rocwheel.wheels.slim.report import SlimReport as SlimReport
    from rocwheel.wheels.split.merge import Merged
    from rocwheel.wheels.split.walk import Split


def target(gpu: str) -> str:
    """The target that a name means: "RX 580" is gfx803, "MI250X:xnack-" gfx90a:xnack-."""
    from rocwheel.wheels.asked import code_target

    return code_target(gpu)


def inspect(path: str | Path) -> Inspection:
    """Every piece of GPU code in a wheel, archive, image, folder, library or program; sizes are in bytes."""
    from rocwheel.wheels.inspection import inspect as read

    return read(Path(path))


def runs_on(path: str | Path, gpu: str) -> list[Judged]:
    """Whether what `path` holds runs on a GPU: a verdict and its reason for each library and set of kernels.

    Judged from the files: nothing is run. An empty list: nothing in it depends on a GPU, as far
    as was read.
    """
    from rocwheel.wheels.choose import targets
    from rocwheel.wheels.devicecode.gpu import machines
    from rocwheel.wheels.runs_on import runs_on as judge

    (gpu_target,) = targets([target(gpu)], machines().values())
    return judge(Path(path), gpu_target)


def slim(
    path: str | Path, gpu: str | Sequence[str], out: str | Path | None = None, *, allow_missing: bool = False
) -> SlimReport:
    """Write a wheel, library or folder again with only the machine code that these GPUs need.

    To `out`, a file, or for a wheel also a folder; without it, beside `path` under a name that tells the
    targets. That code for one of them is missing is an error unless `allow_missing`.
    """
    from rocwheel.wheels.asked import code_targets
    from rocwheel.wheels.slim import slim as write

    targets = code_targets([gpu] if isinstance(gpu, str) else gpu)
    return write(Path(path), targets, _path(out), allow_missing=allow_missing, epoch=_epoch())


def split(wheel: str | Path, out: str | Path, *, kpack: bool = False) -> Split:
    """Write a wheel as a neutral one and one for each target, into the folder `out`.

    With `kpack` as a host wheel and device wheels, which are installed together as they are.
    """
    from rocwheel.wheels.split.device_wheels import split_device_wheels
    from rocwheel.wheels.split.wheel import split_wheel

    return (split_device_wheels if kpack else split_wheel)(Path(wheel), Path(out), epoch=_epoch())


def merge(wheels: Iterable[str | Path], out: str | Path) -> Merged:
    """Write the wheel that pieces of `split` make, for all targets or some, into the folder `out`."""
    from rocwheel.wheels.split.merge import merge_wheels

    return merge_wheels([Path(wheel) for wheel in wheels], Path(out))


def repair(
    wheel: str | Path,
    out: str | Path,
    *,
    rocm: Iterable[str | Path],
    gpu: str | Sequence[str] = (),
    search: Iterable[str | Path] = (),
    exclude: Sequence[str] = (),
    include: Sequence[str] = (),
    only: Sequence[str] = (),
    system: bool = True,
    layout: Literal["", "linux", "windows"] = "",
) -> Made:
    """Write a wheel with all that it needs of ROCm inside to `out`, a folder or the file's path.

    `rocm` are folders that ROCm lies in, `search` further folders of libraries, and this machine's own where
    `system` says so; `gpu` the GPUs whose kernels are brought in, all without it. `exclude`, `include` and
    `only` are patterns: what stays out, what comes in though nothing names it, which of the wheel's libraries
    are looked at. Without `layout` the wheel's name says it.
    """
    from rocwheel.wheels.asked import chosen_targets
    from rocwheel.wheels.repair import Request
    from rocwheel.wheels.repair import bundle as write

    request = Request(
        roots=tuple(Path(folder) for folder in rocm),
        search=tuple(Path(folder) for folder in search),
        targets=chosen_targets([gpu] if isinstance(gpu, str) else gpu, lambda text: None),
        exclude=tuple(exclude),
        include=tuple(include),
        only=tuple(only),
        system=system,
        layout=layout,
    )
    return write(Path(wheel), request, Path(out), epoch=_epoch())


def audit_override(path: str | Path, code: str, on: str, *, llvm: str | Path | None = None) -> AuditReport:
    """Whether code for the GPU `code` in `path` is valid on the GPU `on`, kernel by kernel.

    Both are disassembled and compared; nothing is run. `llvm` is the folder of LLVM's tools, by default the
    newest here that knows both.
    """
    from rocwheel.wheels.audit.run import audit_override as judge

    return judge(Path(path), target(code), target(on), llvm=_path(llvm))


def canonicalize(wheel: str | Path, out: str | Path) -> Normalised:
    """Write a wheel, packed or not, to the file or into the folder `out`, as its content's one form."""
    from rocwheel.wheels.canonicalize import normalise as write

    return write(Path(wheel), Path(out), epoch=_epoch())


def diff(before: str | Path, after: str | Path) -> WheelDifference:
    """What differs between two wheels, unpacked wheels or libraries, from the name down to the kernel."""
    from rocwheel.wheels.diff.wheels import diff as compare

    return compare(Path(before), Path(after))


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)


def _epoch() -> int:
    from rocwheel.wheels.write import epoch_from_environment

    return epoch_from_environment()
