"""Versions and ranges of them."""

from __future__ import annotations

from packaging.specifiers import SpecifierSet
from packaging.version import Version


def version_in(version: str, specifier: str) -> bool:
    """Whether a version lies in a range such as `<0.22`; every version lies in the empty one."""
    return not specifier or Version(version) in SpecifierSet(specifier, prereleases=True)
