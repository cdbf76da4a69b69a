"""What is in a wheel, and whether it runs on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rocwright.api.gpus import AUTO, code_target, code_targets, silent, target

if TYPE_CHECKING:
    from rocwheel.wheels.audit.run import AuditReport as Audit
    from rocwheel.wheels.inspection import Inspection
    from rocwheel.wheels.runs_on import Judged
    from rocwheel.wheels.slim.report import SlimReport
    from rocwright.doctor.requirements.check import CheckedList
    from rocwright.execution.options import BuildOptions
    from rocwright.execution.progress import Progress
    from rocwright.model.steps import Step
    from rocwright.verify.reproduce.from_lock import FromLock


def inspect(path: str | Path) -> Inspection:
    """Every piece of GPU code in a wheel, archive, folder, library or program; sizes are in bytes.

    Raises InputError where `path` cannot be read, CheckError where something in it is damaged.
    """
    from rocwheel.wheels.inspection import inspect as read

    return read(Path(path))


def runs_on(path: str | Path, gpu: str) -> list[Judged]:
    """Whether what `path` holds runs on a GPU: a verdict and its reason for each library and set of kernels.

    `gpu` is any name of it, or a target with features (gfx90a:xnack-); "auto" is this machine's. Judged from
    the files: no GPU is needed, nothing is run. An empty list: nothing in it
    depends on a GPU, as far as was read. Raises InputError for a name that means no GPU or several and where
    `path` cannot be read, CheckError for damage.
    """
    from rocwheel.wheels.choose import targets
    from rocwheel.wheels.devicecode.gpu import machines
    from rocwheel.wheels.runs_on import runs_on as judge
    from rocwright.catalog.load import the_catalog

    (target,) = targets([code_target(gpu)], machines().values())
    return judge(Path(path), target, the_catalog().overrides)


def check(
    path: str | Path, gpu: str = "", *, python: str = "", say: Callable[[str], None] = silent
) -> CheckedList:
    """Check a list of Python packages, or an environment's folder, for a GPU by any of its names.

    Without `gpu` it is that of the project, else this machine's; `say` hears which. `python` is the version
    that installs the list, by default the running one. The package index is asked. Raises InputError for what
    is no list and for a GPU that is not known.
    """
    import platform

    from rocwright.catalog.load import the_catalog
    from rocwright.doctor.requirements.check import check_list
    from rocwright.model.architecture import host_architecture
    from rocwright.plan.resolve.own import own_gpus
    from rocwright.sources.python_resolver import Interpreter

    own = own_gpus(Path.cwd()) if not gpu else ()
    gpu_target = target(gpu or (own[0] if len(own) == 1 else AUTO), say)
    version = python or ".".join(platform.python_version_tuple()[:2])
    interpreter = Interpreter(version, host_architecture())
    return check_list(Path(path), gpu_target.name, interpreter, the_catalog())


def slim(
    path: str | Path, gpu: str | Sequence[str], out: str | Path | None = None, *, allow_missing: bool = False
) -> SlimReport:
    """Write a wheel, library or folder again with only the machine code that these GPUs need.

    To `out`, a file, or for a wheel also a folder; without it, beside `path` under a name that tells the
    targets. The report has sizes in bytes. Raises InputError for a GPU that is not known and where `out` is
    there already, CheckError where code for one of them is missing (unless `allow_missing`) or nothing would
    become smaller.
    """
    from rocwheel.wheels.slim import slim as write
    from rocwheel.wheels.write import epoch_from_environment

    return write(
        Path(path),
        code_targets(gpu),
        Path(out) if out is not None else None,
        allow_missing=allow_missing,
        epoch=epoch_from_environment(),
    )


def audit_override(path: str | Path, code: str, on: str, *, llvm: str | Path | None = None) -> Audit:
    """Whether code for the GPU `code` in `path` is valid on the GPU `on`, kernel by kernel.

    Both are any name of a GPU. The machine code is disassembled as both and compared; nothing is run. `llvm`
    is the folder of LLVM's tools, by default the newest here that knows both. Raises InputError where a GPU
    is not known, there is no code for it or no LLVM, CheckError where `path` is damaged.
    """
    from rocwheel.wheels.audit.run import audit_override as judge

    return judge(Path(path), code_target(code), code_target(on), llvm=Path(llvm) if llvm else None)


def wheel_sbom(path: str | Path) -> bytes:
    """The SBOM of a wheel that somebody else built, as CycloneDX JSON, made from the file alone.

    Raises InputError where `path` is no wheel, CheckError where it is damaged or made to deceive.
    """
    from rocwright.provenance.wheel_sbom import wheel_sbom as make

    return make(Path(path))


def reproduce_wheel(
    path: str | Path,
    lock: str | Path,
    *,
    options: BuildOptions | None = None,
    progress: Progress | None = None,
) -> FromLock:
    """A wheel that somebody else built against what its lock gives here: its component is built, unless it is
    in the store, and nothing of the wheel is run.

    Gives whether both are the `same`, and each file that differs with the reason. Raises InputError where the
    lock has no such component, or another version of it, CheckError where the wheel is damaged, and what
    building raises.
    """
    from rocwright.execution.options import BuildOptions
    from rocwright.execution.progress import PlainProgress
    from rocwright.flow import build
    from rocwright.plan.resolve.files import read_lock
    from rocwright.project import project_of
    from rocwright.verify.reproduce.from_lock import reproduce_wheel as compare

    locked = read_lock(Path(lock))
    project = project_of(locked.request, Path.cwd())

    def build_step(step: Step) -> bool:
        built = build(project, locked, options or BuildOptions(), shown, lay=False, step_names=(step.name,))
        if built.failures:
            raise built.failures[0][1]
        return any(entry.name == step.name for entry in built.run.steps)

    with progress or PlainProgress() as shown:
        return compare(Path(path), project, locked, build_step, shown.say)
