"""How is said that a file is no whole model: one message, with what is missing where that is known."""

from __future__ import annotations

from pathlib import Path

from rocbase.errors import CheckError, InputError
from rocbase.units import count, printable, size

# Characters of a stranger's text that a message shows.
MOST_SHOWN = 80

# Below this a size is told in bytes alone.
BYTES = 4096


def shown(text: str) -> str:
    """A stranger's text, as a message may have it."""
    return printable(text[:MOST_SHOWN])


def not_here(words: str) -> InputError:
    """Return the refusal of a dry run: a model that would have to be downloaded or made."""
    return InputError(
        f"the model {shown(words)} is not on this machine yet",
        cause="--dry-run downloads and makes nothing",
        next_step="leave --dry-run out, or name a file or a folder with --model",
    )


def damaged(path: Path, reason: str) -> CheckError:
    """The error for a file that says something which cannot be."""
    return CheckError(
        f"{printable(str(path))} is damaged",
        cause=reason,
        next_step="bring the file again, and compare its sha256 with that of the place it is from",
        subject=str(path),
    )


def cut_short(path: Path, missing: int, part: str = "its tensors") -> CheckError:
    """The error for a file that ends too early: at least so many bytes are missing."""
    amount = count(missing, "byte") + (f" ({size(missing)})" if missing >= BYTES else "")
    return CheckError(
        f"{path.name} is cut short: at least {amount} {'is' if missing == 1 else 'are'} missing",
        cause=f"it ends within {part}; the download was probably interrupted",
        next_step="bring the file again: hf: addresses are taken up where they stopped",
        subject=str(path),
    )


def unsuited(path: Path, reason: str, next_step: str) -> CheckError:
    """The error for a whole file that programs here cannot load."""
    return CheckError(f"{path.name} cannot be loaded", cause=reason, next_step=next_step, subject=str(path))
