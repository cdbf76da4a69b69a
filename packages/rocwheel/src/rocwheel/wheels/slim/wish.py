"""What a user wants to stay, and what is said where it is not there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rocbase.errors import CheckError
from rocwheel.wheels.choose import Target

Compress = Literal["keep", "none", "zlib", "zstd"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to stay: code for `targets`, or for a generic target that covers them (`covered`).

    `compress`: how bundles are packed, "keep" as each is. `strip`: debug sections go. `allow_missing`: that
    some code is not there for one of the targets is no error. `embedded`: code that a program loads itself
    becomes less too.
    """

    targets: tuple[Target, ...]
    covered: Mapping[str, Collection[str]]
    compress: Compress = "keep"
    strip: bool = False
    allow_missing: bool = False
    embedded: bool = True


def tell_missing(missing: Sequence[Sequence[Target]], wish: Wish, subject: str) -> tuple[str, ...]:
    """The targets that are missing somewhere; `missing` has those of each bundle.

    Raises CheckError where there are any, unless the wish allows it.
    """
    counts = Counter(str(target) for targets in missing for target in targets)
    if counts and not wish.allow_missing:
        summary = ", ".join(
            f"{target} ({count} of {len(missing)} bundles)" for target, count in counts.items()
        )
        raise CheckError(
            f"{subject} has no code for {summary}",
            cause="it was not built for this GPU, or parts of it were not",
            next_step="accept that with --allow-missing; `rocwheel inspect` shows what it has",
            subject=subject,
        )
    return tuple(counts)
