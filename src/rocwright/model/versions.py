"""Versions and ranges of them."""

from __future__ import annotations

import contextlib
import re
from typing import Annotated, Literal

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator

from rocwheel.wheels.names import read_version


def check_version(value: str) -> str:
    """Return a version as it is. Raises ValueError where it is none."""
    try:
        read_version(value)
    except InvalidVersion as error:
        raise ValueError(f"{value!r} is not a version such as 0.21.0 (PEP 440)") from error
    return value


# Digits of a number in a version that are read: Python converts no more than 4,300.
_MOST_DIGITS = 400

PythonVersion = Annotated[str, AfterValidator(check_version)]


def version_in(version: str, specifier: str) -> bool:
    """Whether a version lies in a range such as `<0.22`; every version lies in the empty one."""
    return not specifier or Version(version) in SpecifierSet(specifier, prereleases=True)


# How far one version is from another: by which of its first three numbers, or only in how it was built.
Step = Literal["major", "minor", "patch", "build", "older"]


def step_between(earlier: str, later: str) -> Step:
    """How far `later` is from `earlier`; of any kind: Python's, a distribution's, a build number."""
    if is_older(later, earlier):
        return "older"
    old, new = _numbers(earlier), _numbers(later)
    width = max(len(old), len(new))
    pairs = zip(old + (0,) * (width - len(old)), new + (0,) * (width - len(new)), strict=True)
    index = next((number for number, (first, second) in enumerate(pairs) if first != second), None)
    if index is None:
        return "build"
    return ("major", "minor")[index] if index < 2 else "patch"


def is_older(version: str, reference: str) -> bool:
    """Whether a version stands before another: as PEP 440 says where both are such, else as packages do."""
    with contextlib.suppress(InvalidVersion):
        return read_version(version) < read_version(reference)
    return package_order(version) < package_order(reference)


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of upstream's version: without epoch, revision, and what marks a build or pre-release."""
    with contextlib.suppress(InvalidVersion):
        return read_version(version).release
    upstream = re.split(r"[+~]", version.partition(":")[2] or version)[0]
    upstream = upstream.rpartition("-")[0] or upstream
    return tuple(int(digits[:_MOST_DIGITS]) for digits in re.findall(r"\d+", upstream)[:4])


Order = tuple[int, tuple[tuple[tuple[int, ...], int], ...], tuple[tuple[tuple[int, ...], int], ...]]


def package_order(version: str) -> Order:
    """A key by which versions of packages stand in order, as Debian's policy 5.6.12 says: `~` before all."""
    epoch, colon, remainder = version.partition(":")
    if not colon or not epoch.isdecimal():
        epoch, remainder = "0", version
    upstream, dash, revision = remainder.rpartition("-")
    if not dash:
        upstream, revision = remainder, ""
    return int(epoch[:_MOST_DIGITS]), _pieces(upstream), _pieces(revision or "0")


def _pieces(text: str) -> tuple[tuple[tuple[int, ...], int], ...]:
    pairs = re.findall(r"(\D*)(\d*)", text)[:-1]
    # the end of a text stands before every sign but the tilde
    return (*((_signs(signs), int(digits[:_MOST_DIGITS] or 0)) for signs, digits in pairs), ((0,), 0))


def _signs(signs: str) -> tuple[int, ...]:
    return (*(-1 if sign == "~" else ord(sign) + (0 if sign.isalpha() else 0x110000) for sign in signs), 0)
