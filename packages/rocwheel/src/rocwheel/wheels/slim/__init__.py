"""The same wheel, library or folder with only the GPU code that is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rocbase.errors import InputError
from rocwheel.wheels.choose import Target, targets
from rocwheel.wheels.devicecode.generic import generic_targets
from rocwheel.wheels.devicecode.gpu import machines
from rocwheel.wheels.slim.folder import slim_file, slim_folder
from rocwheel.wheels.slim.report import SlimReport
from rocwheel.wheels.slim.wheel import SUFFIX, slim_wheel
from rocwheel.wheels.slim.wish import Compress, Wish


def slim(
    path: Path,
    gpus: Sequence[str],
    out: Path | None = None,
    *,
    compress: Compress = "keep",
    strip: bool = False,
    allow_missing: bool = False,
    epoch: int,
    tell: Callable[[str], None] = lambda text: None,
) -> SlimReport:
    """Write `path` without the code that none of `gpus` (gfx1151, gfx90a:xnack-) needs, whole or not at all.

    To `out`, a file or (for a wheel) a folder; without it, beside `path` under a name that tells the targets.
    Raises InputError for targets that are none and for an `out` that is there already; CheckError where code
    for a wanted target is missing (unless `allow_missing`), where nothing would change, or where something
    is damaged. `epoch`: the time of files in a wheel, in seconds since 1970.
    """
    names = frozenset(machines().values())
    wish = Wish(
        targets=targets(gpus, names),
        covered=generic_targets(),
        compress=compress,
        strip=strip,
        allow_missing=allow_missing,
    )
    if path.suffix == SUFFIX:
        return slim_wheel(path, out or path.parent, wish, names=names, epoch=epoch, tell=tell)
    target = out or path.with_name(_named(path, wish.targets))
    if target.exists() or target.is_symlink():
        raise InputError(
            f"{target} already exists",
            cause="existing files are never overwritten",
            next_step="give another name with -o",
        )
    return (slim_folder if path.is_dir() else slim_file)(path, target, wish, tell)


def _named(path: Path, gpus: Sequence[Target]) -> str:
    """liba.so.1 and gfx1151 give liba.gfx1151.so.1."""
    stem, dot, suffixes = path.name.partition(".")
    return ".".join([stem, *(target.in_version for target in gpus)]) + dot + suffixes
