"""What patches of others meet in a source tree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocwright.sources.patching.offered import Offered


def check_offered(
    component: str,
    source: str | Path,
    patches: Sequence[str | Path],
    gpu: Sequence[str] = (),
    *,
    version: str = "",
) -> Offered:
    """What patches meet in the source tree of a component, a folder, and in its recipe's edits there.

    `patches` are files, a file named `series`, or folders with one, one on top of the other. `gpu` are
    the GPUs that edits are filled in for, any name of them; `version` leaves out edits for other versions.
    Nothing is written. Raises InputError for a component or GPU that is not known, and for a patch that
    cannot be read.
    """
    from rocwright.api.gpus import target
    from rocwright.catalog.load import the_catalog
    from rocwright.sources.patching.foreign import read_patches
    from rocwright.sources.patching.offered import check_offered as check

    edits = the_catalog().component(component).edit
    parsed = read_patches([Path(path) for path in patches])
    targets = [target(name).name for name in gpu]
    return check(Path(source), parsed, edits, targets, version=version)
