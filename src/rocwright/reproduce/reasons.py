"""Why two files with one path differ: another time, another folder, another order, or more than that."""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence

from rocbase.units import count, printable
from rocwheel.wheels.metadata import DIST_INFO, RECORD

LARGEST = 16 * 1024**2
"""Bytes of a file up to which it is searched for reasons."""
MOST_PLACES = 3
_LONGEST = 120

_TIME = re.compile(
    rb"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?"
    rb"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]?\d,? \d{4}"
    rb"|\b\d\d:\d\d:\d\d\b"
    rb"|\b1[5-9]\d{8}(?:\.?\d{1,9})?\b"
)
"""Dates, times, and seconds since 1970 of the years 2017 to 2033, as programs and compilers write them."""

_PATH = re.compile(rb"(?<![\w./:-])(?:/[\w.+@%~-]{1,255}){2,64}/?")
"""Absolute paths of two parts or more."""

_PYC_CODE = 16
"""Where the code of a .pyc begins: behind a magic number, flags, and time and size of its source."""


def reasons(path: str, before: bytes, after: bytes) -> Iterator[str]:
    """Why the contents differ, in words, each with the first places; at least one."""
    if path.endswith(".pyc") and before[_PYC_CODE:] == after[_PYC_CODE:] and before[:8] == after[:8]:
        yield "time: that of the source in the header of the .pyc"
        return
    if sorted(before.splitlines()) == sorted(after.splitlines()):
        yield "order: the same lines in another order"
        return
    found = {
        word: told
        for word, pattern in (("time", _TIME), ("path", _PATH))
        if (told := _only(pattern, before, after))
    }
    if not found:
        yield f"content: {_first_line(before, after)}"
        return
    alone = _without(found, before) == _without(found, after)
    yield from (f"{word}: {told}" for word, told in found.items())
    if not alone:
        yield "content: something else differs too"


def zip_reasons(before: Sequence[zipfile.ZipInfo], after: Sequence[zipfile.ZipInfo]) -> Iterator[str]:
    """How the zips of two wheels differ, by their directories; what lies in the files is not looked at."""
    one, two = ({info.filename: info for info in infos} for infos in (before, after))
    if [name for name in one if name in two] != [name for name in two if name in one]:
        yield "order: the files are in another order"
    both = [(one[name], two[name]) for name in one if name in two]
    if times := [(a, b) for a, b in both if a.date_time != b.date_time]:
        a, b = times[0]
        yield f"time: {count(len(times), 'file')}, {_when(a)} -> {_when(b)} ({_plain(a.filename.encode())})"
    if modes := [a for a, b in both if a.external_attr != b.external_attr]:
        yield f"modes: of {count(len(modes), 'file')} ({_plain(modes[0].filename.encode())})"
    same = [(a, b) for a, b in both if a.CRC == b.CRC]
    if packed := [
        a for a, b in same if (a.compress_type, a.compress_size) != (b.compress_type, b.compress_size)
    ]:
        yield f"compression: of {count(len(packed), 'file')} ({_plain(packed[0].filename.encode())})"
    if [a.filename for a, b in both if a.CRC != b.CRC] == [a.filename for a, _ in both if _is_record(a)]:
        yield "RECORD: it is another one for the same files"


def _is_record(info: zipfile.ZipInfo) -> bool:
    return info.filename.endswith(f"{DIST_INFO}/{RECORD}")


def _when(info: zipfile.ZipInfo) -> str:
    year, month, day, hour, minute, second = info.date_time
    return f"{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"


def _only(pattern: re.Pattern[bytes], before: bytes, after: bytes) -> str:
    """What the pattern finds in one of them alone: the first of each side. "" where there is nothing."""
    one, two = (Counter(pattern.findall(content)) for content in (before, after))
    gone, come = list(one - two), list(two - one)
    if not gone and not come:
        return ""
    pairs = [
        f"{_plain(a)} -> {_plain(b)}" for a, b in zip(gone[:MOST_PLACES], come[:MOST_PLACES], strict=False)
    ]
    pairs += [f"- {_plain(a)}" for a in gone[len(pairs) : MOST_PLACES]]
    pairs += [f"+ {_plain(b)}" for b in come[len(pairs) : MOST_PLACES]]
    more = max(len(gone), len(come)) - len(pairs)
    return ", ".join(pairs) + (f", and {more:,} more" if more > 0 else "")


def _without(found: dict[str, str], content: bytes) -> bytes:
    """The content without what was found; a time may stand in a path, so paths go first."""
    if "path" in found:
        content = _PATH.sub(b"", content)
    return _TIME.sub(b"", content) if "time" in found else content


def _first_line(before: bytes, after: bytes) -> str:
    if b"\0" in before or b"\0" in after:
        at = next((at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), None)
        return f"from byte {min(len(before), len(after)) if at is None else at:,} on"
    one, two = before.splitlines(), after.splitlines()
    for number, (a, b) in enumerate(zip(one, two, strict=False), 1):
        if a != b:
            return f"line {number:,}: {_plain(a)} -> {_plain(b)}"
    if len(one) != len(two):
        return f"{count(len(one), 'line')} -> {len(two):,}"
    return "the ends of lines"


def _plain(text: bytes) -> str:
    """A stranger's bytes on one line of a terminal, shortened."""
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + b"..."
    return printable(short.decode(errors="replace"))
