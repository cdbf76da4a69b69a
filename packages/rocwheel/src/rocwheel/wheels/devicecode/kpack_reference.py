"""What a library says of its code where that lies in kpack archives: under which name, and where to look.

The section `.rocm_kpack_ref` (`.kpackrf` in a DLL) holds it in MessagePack, and the wrappers of the bundles
that were there begin with HIPK instead of HIPF, lead to it, and say which code object of the library each
wants. Source: ROCm/rocm-systems, shared/kpack/docs/multi_arch_packaging_with_kpack.md ("Binary Conversion")
and shared/kpack/runtime/src/loader.cpp.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import NamedTuple

from rocbase.errors import CheckError
from rocwheel.wheels.devicecode.msgpack_walk import MalformedError, Walk

SECTION, PE_SECTION = ".rocm_kpack_ref", ".kpackrf"
WRAPPER_MAGIC = 0x4B504948
PLACEHOLDER = "@GFXARCH@"
"""What stands in a search path for the target."""

FOLDER = ".kpack"
LARGEST = 64 * 1024
"""Bytes of it that the runtime reads."""

MOST_PATHS = 256
_ANY_TARGET = r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*(?:[:.][a-z]+[+-]?)*"


class Reference(NamedTuple):
    """The library's `name` in archives, and where they lie as seen from its folder.

    `wanted` are the numbers of the code objects that its wrappers ask for, each once.
    """

    name: str
    search: tuple[str, ...]
    wanted: tuple[int, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of its code in an archive's table: lib/x.so#0."""
        return tuple(f"{self.name}#{number}" for number in self.wanted)

    def owns(self, key: str) -> bool:
        """Whether a name in an archive's table is one of this library's."""
        return key.partition("#")[0] == self.name

    def patterns(self, library: str) -> Iterator[re.Pattern[str]]:
        """What the path of an archive for this library matches, both as seen from the same folder.

        The group `target` is the target that the path is for, if it says so. A search path that leads out of
        that folder matches nothing.
        """
        for path in self.search:
            place = posixpath.normpath(posixpath.join(posixpath.dirname(library), path))
            if not place.startswith(("/", "../")):
                prefix, placeholder, suffix = place.partition(PLACEHOLDER)
                middle = f"(?P<target>{_ANY_TARGET})" if placeholder else "(?P<target>)"
                yield re.compile(re.escape(prefix) + middle + re.escape(suffix))


def read_reference(data: bytes, subject: str) -> Reference:
    """The reference in a section's bytes. Raises CheckError where they are none."""
    name, search = "", list[str]()
    try:
        walk = Walk(data[:LARGEST], LARGEST)
        for key in walk.map("the whole", MOST_PATHS):
            if key == "kernel_name":
                name = walk.text(key)
            elif key == "kpack_search_paths":
                search = [walk.text("a search path") for _ in walk.list(key, MOST_PATHS)]
            else:
                walk.skip(key)
        if not name or not search:
            raise MalformedError(f"it has no {'search paths' if name else 'name'}")
    except MalformedError as error:
        raise CheckError(
            f"its code lies in kpack archives, and its reference to them cannot be read: {error}",
            cause="the file is damaged, or written by a ROCm that rocwheel does not know",
            next_step="get a fresh copy of the package, or report the version of ROCm that made it",
            subject=subject,
        ) from error
    return Reference(name=name, search=tuple(search))
