"""The command `rocwheel`, a file a verb, imported when it is used. `rocwright wheel` has the same verbs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rocbase.cli.start import start
from rocwheel.cli import quick

if TYPE_CHECKING:
    import click

    from rocwheel.cli.group import cli as cli

VERBS = {
    "inspect": "List the GPU code in a wheel, library, folder or environment, by target.",
    "check-gpu": "Say whether it runs on a GPU, and why: natively, generically, with an override, or not.",
    "audit-override": "Compare machine code, kernel by kernel: is code for one target valid on another?",
    "slim": "Write a wheel, library or folder with only the machine code that your GPUs need.",
    "split": "Split a wheel into a neutral one and one for each GPU target.",
    "merge": "Put pieces that split wrote together again, for all targets or some.",
    "lint": "Judge wheels before they are published: tags, RECORD, libraries, leftovers; SARIF, JUnit.",
    "repair": "Bundle into a wheel what it needs of ROCm.",
    "canonicalize": "Rewrite wheels so that the same content is the same bytes, whoever packed it.",
    "diff": "Show what differs between two wheels, from the name down to the kernel.",
    "index": "Make a package index of a folder of wheels: pages, an object store, a server.",
    "targets": "Find GPUs by any name, and those in this machine.",
}
"""Every verb with a line of help."""

ALIASES = {"runs-on": "check-gpu", "bundle": "repair", "normalise": "canonicalize"}
"""What verbs were called before: they still work, and help does not name them."""

PACKAGE = "rocwheel.cli"
"""Where their modules lie."""


def main() -> None:
    """Run the command line; every failure ends with its class's exit code, and no traceback."""
    start(_group, _failed, quick.answered)


def _group() -> click.Command:
    from rocwheel.cli.group import cli

    return cli


def __getattr__(name: str) -> object:
    # what is answered quickly does without it
    if name == "cli":
        return _group()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _failed(error: Exception) -> int:
    from rocbase.cli.tell import tell_any
    from rocbase.errors import as_known

    return tell_any(as_known(error, "rocwheel"), as_json="--json" in sys.argv)
