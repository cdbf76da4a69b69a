"""Commands in messages, completed with the stack that the user named in the place of a project file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocbase.cli.options import say as say_plainly
from rocbase.errors import ExplainedError

# Verbs whose first argument is the stack.
FIRST = (
    *("bench", "bisect", "build", "farm verify", "heal", "install", "lock", "plan", "reproduce", "sbom of"),
    *("store pull", "store push", "verify"),
)
# Verbs with one argument before the stack.
SECOND = ("export", "farm explain", "patch save", "shell", "why")

_COMMAND = re.compile(
    rf"\brocwright (?:(?:{'|'.join(FIRST)})|(?:{'|'.join(SECOND)}) [\w.][\w./+-]*+)\b(?! --suite| --help)"
    r"(?=(?: (?P<next>[\w.-]+))?)"
)

_asked: list[str] = []


@contextmanager
def completed() -> Iterator[None]:
    """Complete the next step of a failure, and forget the stack once the verb has ended."""
    try:
        yield
    except ExplainedError as error:
        error.next_step = in_place(error.next_step)
        raise
    finally:
        _asked.clear()


def remember(words: Sequence[str]) -> None:
    """Remember how the user named a stack: the words behind a verb."""
    _asked[:] = words


def in_place(text: str) -> str:
    """Return a message whose commands can be typed here: without a project they name a stack."""
    return _COMMAND.sub(
        lambda match: f"{match[0]}{'' if _is_stack(match['next']) else _missing_words()}", text
    )


def _missing_words() -> str:
    """Return what a verb needs behind it in this folder: what the user named, or a place for it."""
    from rocwright.plan.resolve.folder import PROJECT, project_folder

    if _asked:
        return f" {shlex.join(_asked)}"
    return "" if (project_folder(Path.cwd()) / PROJECT).exists() else " STACK"


def _is_stack(word: str | None) -> bool:
    """Return whether a command names a stack already, or has a place for it."""
    from rocwright.catalog.load import the_catalog

    return word is not None and (word.isupper() or word in the_catalog().stacks)


def say(text: str) -> None:
    """Print progress or a hint on standard error."""
    say_plainly(in_place(text))
