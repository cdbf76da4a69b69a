"""Why two files with one path differ: another time, another folder, another order, or more than that."""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence

from rocbase.units import count, printable
from rocwheel.wheels.metadata import DIST_INFO, RECORD

# Bytes of a file up to which it is searched for reasons.
LARGEST = 16 * 1024**2
MOST_PLACES = 3
_LONGEST = 120

# Dates, times, and seconds since 1970 of the years 2017 to 2033, as programs and compilers write them.
_TIME = re.compile(
    rb"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?"
    rb"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]?\d,? \d{4}"
    rb"|\b\d\d:\d\d:\d\d\b"
    rb"|\b1[5-9]\d{8}(?:\.?\d{1,9})?\b"
)

# Absolute paths of two parts or more.
_PATH = re.compile(rb"(?<![\w./:-])(?:/[\w.+@%~-]{1,255}){2,64}/?")

# Where the code of a .pyc begins: behind a magic number, flags, and time and size of its source.
_PYC_CODE = 16


def reasons(path: str, first: bytes, second: bytes) -> Iterator[str]:
    """Why the contents differ, in words, each with the first places; at least one."""
    if path.endswith(".pyc") and first[_PYC_CODE:] == second[_PYC_CODE:] and first[:8] == second[:8]:
        yield "time: that of the source in the header of the .pyc"
        return
    if sorted(first.splitlines()) == sorted(second.splitlines()):
        yield "order: the same lines in another order"
        return
    clues = {
        word: clue
        for word, pattern in (("time", _TIME), ("path", _PATH))
        if (clue := _only(pattern, first, second))
    }
    if not clues:
        yield f"content: {_first_line(first, second)}"
        return
    alone = _without(clues, first) == _without(clues, second)
    yield from (f"{word}: {clue}" for word, clue in clues.items())
    if not alone:
        yield "content: something else differs too"


def zip_reasons(first: Sequence[zipfile.ZipInfo], second: Sequence[zipfile.ZipInfo]) -> Iterator[str]:
    """How the zips of two wheels differ, by their directories; what lies in the files is not looked at."""
    first_infos, second_infos = ({info.filename: info for info in infos} for infos in (first, second))
    if [name for name in first_infos if name in second_infos] != [
        name for name in second_infos if name in first_infos
    ]:
        yield "order: the files are in another order"
    both = [(first_infos[name], second_infos[name]) for name in first_infos if name in second_infos]
    if times := [(a, b) for a, b in both if a.date_time != b.date_time]:
        a, b = times[0]
        yield f"time: {count(len(times), 'file')}, {_when(a)} -> {_when(b)} ({_plain(a.filename.encode())})"
    if modes := [a for a, b in both if a.external_attr != b.external_attr]:
        yield f"modes: of {count(len(modes), 'file')} ({_plain(modes[0].filename.encode())})"
    unchanged = [(a, b) for a, b in both if a.CRC == b.CRC]
    if packed := [
        a for a, b in unchanged if (a.compress_type, a.compress_size) != (b.compress_type, b.compress_size)
    ]:
        yield f"compression: of {count(len(packed), 'file')} ({_plain(packed[0].filename.encode())})"
    if [a.filename for a, b in both if a.CRC != b.CRC] == [a.filename for a, _ in both if _is_record(a)]:
        yield "RECORD: it is another one for the same files"


def _is_record(info: zipfile.ZipInfo) -> bool:
    return info.filename.endswith(f"{DIST_INFO}/{RECORD}")


def _when(info: zipfile.ZipInfo) -> str:
    year, month, day, hour, minute, second = info.date_time
    return f"{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"


def _only(pattern: re.Pattern[bytes], first: bytes, second: bytes) -> str:
    """What the pattern finds in one of them alone: the first of each side. "" where there is nothing."""
    first_counts, second_counts = (Counter(pattern.findall(content)) for content in (first, second))
    removed, come = list(first_counts - second_counts), list(second_counts - first_counts)
    if not removed and not come:
        return ""
    pairs = [
        f"{_plain(a)} -> {_plain(b)}" for a, b in zip(removed[:MOST_PLACES], come[:MOST_PLACES], strict=False)
    ]
    pairs += [f"- {_plain(a)}" for a in removed[len(pairs) : MOST_PLACES]]
    pairs += [f"+ {_plain(b)}" for b in come[len(pairs) : MOST_PLACES]]
    remaining = max(len(removed), len(come)) - len(pairs)
    return ", ".join(pairs) + (f", and {remaining:,} more" if remaining > 0 else "")


def _without(clues: dict[str, str], content: bytes) -> bytes:
    """The content without what was found; a time may stand in a path, so paths go first."""
    if "path" in clues:
        content = _PATH.sub(b"", content)
    return _TIME.sub(b"", content) if "time" in clues else content


def _first_line(first: bytes, second: bytes) -> str:
    if b"\0" in first or b"\0" in second:
        offset = next(
            (offset for offset, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None
        )
        return f"from byte {min(len(first), len(second)) if offset is None else offset:,} on"
    first_lines, second_lines = first.splitlines(), second.splitlines()
    for number, (a, b) in enumerate(zip(first_lines, second_lines, strict=False), 1):
        if a != b:
            return f"line {number:,}: {_plain(a)} -> {_plain(b)}"
    if len(first_lines) != len(second_lines):
        return f"{count(len(first_lines), 'line')} -> {len(second_lines):,}"
    return "the ends of lines"


def _plain(text: bytes) -> str:
    """A stranger's bytes on one line of a terminal, shortened."""
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + b"..."
    return printable(short.decode(errors="replace"))
