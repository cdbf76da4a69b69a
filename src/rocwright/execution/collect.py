"""What a step left in its folders, taken out: its outputs, and what ccache counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from rocbase.errors import CheckError, SandboxError
from rocbase.folders.listing import FolderEntry, shown
from rocwright.model.steps import OutputSpec
from rocwright.sandbox.untrusted import MOST_OUTPUT, MOST_TEXT, Untrusted

# Where ccache writes one line a compiler run, in the build folder.
LOG = "ccache.log"

_NAMED = 20
_LINE = 64 * 1024
_CACHE_OUTCOMES = {
    b"direct_cache_hit": "hit",
    b"preprocessed_cache_hit": "hit",
    b"cache_miss": "miss",
    b"uncacheable": "uncacheable",
}


def collect(
    out: Untrusted, specs: Iterable[OutputSpec], into: Path, limit: int = MOST_OUTPUT
) -> dict[str, Path]:
    """The one file of at most `limit` bytes that each output's pattern matches, moved below `into`, by name.

    Raises CheckError where there is none or more than one, SandboxError for what is no plain file.
    """
    return {spec.name: _take(out, spec, into / str(number), limit) for number, spec in enumerate(specs)}


def _take(out: Untrusted, spec: OutputSpec, into: Path, limit: int) -> Path:
    matches = out.matches(spec.pattern)
    files = [entry for entry in matches if entry.is_file]
    if len(files) != 1:
        _refuse_odd(out, matches)
        raise CheckError(
            f"the build made {len(files)} files that match {spec.pattern}, one expected",
            cause=f"in the output folder: {_names(out)}",
            next_step="correct the recipe's commands or its output pattern",
        )
    into.mkdir(parents=True)
    return out.take(files[0].path, into / files[0].name, limit)


def _refuse_odd(out: Untrusted, matches: Iterable[FolderEntry]) -> None:
    """Where something else than a file has an output's name, that is what is wrong."""
    for entry in matches:
        if not entry.is_file:
            raise SandboxError(
                f"{out.by} left {entry.kind} as its output {shown(entry.path)}",
                cause="only regular files are copied out of a sandbox",
                next_step="correct the recipe's commands; if the source does this on purpose, do not "
                "trust it",
                subject=out.by,
            )


def _names(out: Untrusted) -> str:
    entries = out.matches("*")
    suffix = f" and {len(entries) - _NAMED} more" if len(entries) > _NAMED else ""
    return ", ".join(shown(entry.name) for entry in entries[:_NAMED]) + suffix if entries else "nothing"


def cache_statistics(build: Untrusted) -> dict[str, int]:
    """How often ccache had what a compiler would make, and how often not. Raises SandboxError."""
    counts: Counter[str] = Counter()
    try:
        with build.open(LOG, MOST_TEXT) as log:
            # piece by piece: nothing says that a line of it has an end
            while piece := log.readline(_LINE):
                if outcome := _CACHE_OUTCOMES.get(piece.strip()):
                    counts[outcome] += 1
    except FileNotFoundError:
        return {}
    return dict(counts)
