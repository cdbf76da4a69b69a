"""Values of strangers in the syntax of others: each gives text that its reader takes as that value."""

from __future__ import annotations

import json
import shlex

from rocbase.errors import InputError

_CONTROL = {*map(chr, range(32)), "\x7f", "\x85", "\u2028", "\u2029"}


def comment(text: str) -> str:
    """Text for a comment: on one line, whatever it holds."""
    return " ".join("".join(" " if sign in _CONTROL else sign for sign in text).split())


def one_line(text: str, target: str) -> str:
    """The text, which may not break a line. Raises InputError."""
    if _CONTROL & set(text):
        raise InputError(
            f"{text!r} cannot be written into {target}",
            cause="it holds a line break or another control character",
            next_step="correct the recipe or the lock that has this value",
        )
    return text


def shell(text: str) -> str:
    """One word of sh. Raises InputError for a NUL."""
    if "\0" in text:
        raise InputError(
            f"{text!r} cannot be quoted for a shell",
            cause="it has a NUL character",
            next_step="correct the recipe or the lock that has this value",
        )
    return shlex.quote(text)


def docker(text: str) -> str:
    """A double-quoted value of a Containerfile's ENV, ARG or LABEL, where nothing is expanded."""
    inner = one_line(text, "a Containerfile")
    for sign in ("\\", '"', "$"):
        inner = inner.replace(sign, f"\\{sign}")
    return f'"{inner}"'


def unit(text: str) -> str:
    """A double-quoted word of a systemd unit: no specifier, no variable, no escape is left in it."""
    inner = one_line(text, "a systemd unit")
    for sign, safe in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$")):
        inner = inner.replace(sign, safe)
    return f'"{inner}"'


def unit_value(text: str) -> str:
    """The same where a unit's setting expands no variables (`Environment=`)."""
    return unit(text).replace("$$", "$")


def yaml(text: str) -> str:
    """A double-quoted scalar of YAML: JSON's, which YAML reads alike."""
    return json.dumps(text).replace("\x7f", "\\x7f")


def powershell(text: str) -> str:
    """A single-quoted string of PowerShell, in which nothing is expanded; it ends at any kind of quote."""
    inner = one_line(text, "a PowerShell script")
    for sign in "'\u2018\u2019\u201a\u201b":
        inner = inner.replace(sign, sign * 2)
    return f"'{inner}'"
