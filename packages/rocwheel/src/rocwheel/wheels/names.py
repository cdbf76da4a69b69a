"""What strangers write of Python packages, parsed within bounds: file names, tags, versions, requirements.

The library multiplies tags out, descends into markers and converts any number of digits: a text of a few KB
would take gigabytes, or raise what no reader expects.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import Tag, parse_tag
from packaging.utils import BuildTag, InvalidWheelFilename, NormalizedName, parse_wheel_filename
from packaging.version import InvalidVersion, Version

LONGEST_FILE_NAME = 255
"""Characters of a file's name: no file system takes more bytes."""

LONGEST = 4000
"""Characters of a version or a requirement: Python converts up to 4,300 digits."""

MOST_TAGS = 50_000
"""Combinations of a wheel's compressed tags: the largest on PyPI have a few hundred."""


def read_wheel_name(file_name: str) -> tuple[NormalizedName, Version, BuildTag, frozenset[Tag]]:
    """Return project, version, build and tags. Raises InvalidWheelFilename, InvalidVersion."""
    if len(file_name) > LONGEST_FILE_NAME or "/" in file_name or not file_name.isprintable():
        raise InvalidWheelFilename(f"it is no file's name: {file_name[:LONGEST_FILE_NAME]!r}")
    return parse_wheel_filename(file_name)


def read_tags(texts: Iterable[str]) -> frozenset[Tag]:
    """Return each combination of compressed tags. Raises ValueError for more than any wheel has."""
    texts = tuple(texts)
    count = sum(prod(part.count(".") + 1 for part in text.split("-")) for text in texts)
    if count > MOST_TAGS:
        raise ValueError(f"its tags stand for {count:,} combinations; at most {MOST_TAGS:,} are read")
    return frozenset(tag for text in texts for tag in parse_tag(text))


def read_version(text: str) -> Version:
    """Return a version. Raises InvalidVersion."""
    if len(text) > LONGEST:
        raise InvalidVersion(f"a version has {len(text):,} characters: {text[:80]!r}")
    return Version(text)


def read_requirement(text: str) -> Requirement:
    """Return a requirement. Raises InvalidRequirement."""
    if len(text) > LONGEST:
        raise InvalidRequirement(f"a requirement has {len(text):,} characters: {text[:80]!r}")
    try:
        return Requirement(text)
    except RecursionError as error:
        raise InvalidRequirement(f"a requirement is nested too deeply: {text[:80]!r}") from error
