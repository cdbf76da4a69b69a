"""`inspect [--targets] PATH` answered without the library of command lines: that is most of its time."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rocbase.terminal import colours

_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


def answered(words: Sequence[str]) -> bool:
    """Whether these words were answered, as the command would have; all others are left to it, unanswered.

    Raises what reading the file raises.
    """
    heads = "--targets" in words
    arguments = [word for word in words if word != "--targets"]
    if len(arguments) != 2 or len(words) > 3 or arguments[0] != "inspect" or os.name != "posix":
        return False
    path = Path(arguments[1])
    if arguments[1].startswith("-") or not os.access(path, os.R_OK):
        return False

    if paths(path):
        return False
    return _print(path, heads)


def _print(path: Path, heads: bool) -> bool:
    from rocbase.cli.table import lines
    from rocwheel.cli.listing import listing
    from rocwheel.wheels.inspection import inspect

    bold = sys.stdout.isatty() and colours()
    rendered: list[str] = []
    for part in listing(inspect(path, heads=heads)):
        if isinstance(part, str):
            rendered.append(part)
            continue
        head, *rows = lines(part.header, part.rows, part.right)
        rendered += [f"{_BOLD}{head}{_PLAIN}" if bold else head, *rows]
    text = "".join(f"{line}\n" for line in rendered)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeError:
        return False
    sys.stdout.write(text)
    sys.stdout.flush()
    return True


def paths(wheel: Path) -> list[str]:
    """The files of a wheel that lie where SBOMs do (PEP 770)."""
    if wheel.suffix != ".whl" or not wheel.is_file():
        return []
    from rocbase.errors import ExplainedError
    from rocwheel.wheels.source import FileSource
    from rocwheel.wheels.zips import zip_members

    try:
        return [
            member.path for member in zip_members(FileSource(wheel)) if ".dist-info/sboms/" in member.path
        ]
    except ExplainedError:
        # no whole wheel: what is wrong with it is told by who judges it
        return []
