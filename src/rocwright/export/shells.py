"""Setting environment variables in the words of each shell."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import assert_never


class Shell(StrEnum):
    """Shells whose quoting is known here; `bash` holds for every POSIX shell."""

    BASH = "bash"
    FISH = "fish"
    NU = "nu"
    POWERSHELL = "powershell"


# PowerShell takes typographic quotes for the plain one.
POWERSHELL_QUOTES = "'\u2018\u2019\u201a\u201b"


def quoted(text: str, shell: Shell) -> str:
    """`text` as one literal word: nothing in it is expanded or run.

    Raises ValueError for control characters, which not every shell can write down.
    """
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise ValueError(f"{text!r} holds a control character")
    match shell:
        case Shell.BASH:
            return "'" + text.replace("'", "'\\''") + "'"
        case Shell.FISH:
            return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case Shell.NU:
            if "'" not in text:
                return f"'{text}'"
            return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case Shell.POWERSHELL:
            return "'" + re.sub(f"([{POWERSHELL_QUOTES}])", r"\1\1", text) + "'"
        case _:
            assert_never(shell)


def assignment(name: str, value: str, shell: Shell) -> str:
    """The line that sets a variable for this shell and the commands that it starts."""
    word = quoted(value, shell)
    match shell:
        case Shell.BASH:
            return f"export {name}={word}"
        case Shell.FISH:
            return f"set --export --global {name} {word}"
        case Shell.NU:
            return f"$env.{name} = {word}"
        case Shell.POWERSHELL:
            return f"$env:{name} = {word}"
        case _:
            assert_never(shell)


def comment(text: str) -> str:
    """`text` as one comment line; every shell here begins one with #."""
    return f"# {' '.join(text.split())}"
