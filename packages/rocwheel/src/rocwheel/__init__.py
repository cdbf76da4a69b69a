"""rocwheel: tools for Python wheels with machine code for AMD GPUs.

What Python programs call; the command line has more. Names are strings, paths are str or Path, sizes bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.version import __version__ as __version__

if TYPE_CHECKING:
    from rocwheel.api import (
        audit_override,
        canonicalize,
        diff,
        inspect,
        merge,
        repair,
        runs_on,
        slim,
        split,
        target,
    )

__all__ = [
    "audit_override",
    "canonicalize",
    "diff",
    "inspect",
    "merge",
    "repair",
    "runs_on",
    "slim",
    "split",
    "target",
]


def __getattr__(name: str) -> object:
    # what is not called is not loaded: the command starts fast
    if name in __all__:
        from rocwheel import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
