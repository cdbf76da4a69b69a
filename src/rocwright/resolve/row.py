"""What a row is called: a name for one stack, for its GPUs, on a base, as it is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rocbase.files.atomic import sha256_bytes

LONGEST = 120
"""Of a name, in characters: it is that of a folder too."""


def row_name(stack: str, gpu: Iterable[str], base: str, variant: str) -> str:
    """A name that no other row has, and that a folder can have.

    It is made of the row's own words; where these cannot all stand in it as they are, of a few digits of a
    hash over them too.
    """
    words = [stack, *gpu, base.replace(":", "-", 1), *variant.split(" ")]
    name = "_".join(re.sub(r"[^A-Za-z0-9.+=@!-]", "-", word) for word in words if word)
    if len(name) <= LONGEST and all(re.fullmatch(r"[A-Za-z0-9.+=@!-]*", word) for word in words):
        return name
    return f"{name[:LONGEST]}_{sha256_bytes(chr(0).join(words).encode())[:8]}"
