"""The command `rocwheel`, a file a verb, imported when it is used. `rocwright wheel` has the same verbs."""

from __future__ import annotations

import sys

import click

from rocwheel.cli.run import run
from rocwheel.cli.verbs import Verbs

VERBS = {
    "inspect": "Every piece of GPU code in a wheel, library, folder or environment, by target.",
    "check-gpu": "Whether it runs on a GPU, and why: natively, generically, with an override, or not.",
    "audit-override": "Is code for one target valid on another: kernel by kernel, from the machine code.",
    "slim": "The same wheel, library or folder with only the machine code that the GPUs need.",
    "split": "A wheel as a neutral one and one for each GPU target.",
    "merge": "The pieces that split made, put together for all targets or some.",
    "repair": "A wheel that needs ROCm, with all of it that it needs inside.",
    "canonicalize": "The same content as the same bytes: order, times, modes, compression, RECORD.",
    "diff": "What differs between two wheels, from the name down to the kernel.",
    "index": "A folder of wheels as a package index: pages, an object store, a server.",
    "targets": "GPUs by any name, and the ones in this machine.",
}
"""Every verb with a line of help."""

ALIASES = {"runs-on": "check-gpu", "bundle": "repair", "normalise": "canonicalize"}
"""What verbs were called before: they still work, and help does not name them."""

PACKAGE = "rocwheel.cli"
"""Where their modules lie."""


@click.group(
    cls=Verbs,
    verbs=VERBS,
    aliases=ALIASES,
    package=PACKAGE,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="rocwheel", prog_name="rocwheel")
@click.option("--debug", is_flag=True, help="Show tracebacks of failures.")
def cli(debug: bool) -> None:
    """The machine code in wheels and libraries: see it, judge it, trim it, serve it."""


def main() -> None:
    """Run the command line; every failure ends with its class's exit code, and no traceback."""
    run(cli, _failed)


def _failed(error: Exception) -> int:
    from rocwheel.cli.tell import tell_any
    from rocwheel.errors import as_known

    return tell_any(as_known(error), as_json="--json" in sys.argv)
