"""Which libraries are not brought in, and why; and whether each pattern of the request matched something."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from rocbase.errors import InputError
from rocwheel.wheels.repair.facts import Facts, matches
from rocwheel.wheels.repair.model import Request


@dataclass(slots=True, kw_only=True)
class Staying:
    """What was asked about so far: `kept_out` has the reason for each library that is left to another.

    `requires` are the wheels that this one requires; `used` are the patterns that matched.
    """

    request: Request
    facts: Facts
    requires: tuple[str, ...]
    kept_out: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def stays(self, name: str) -> bool:
        """Whether a library that is asked for is not brought in."""
        if self.facts.unneeded(name):
            return True
        reason = self.reason(name)
        if reason:
            self.kept_out[name] = reason
            self.used |= {pattern for pattern in self.request.exclude if matches(name, (pattern,))}
        return bool(reason)

    def reason(self, name: str) -> str:
        """Why a library is not brought in; "" where it is."""
        for pattern in self.request.exclude:
            if matches(name, (pattern,)):
                return f"excluded by {pattern}"
        if reason := self.facts.why_never(name):
            return f"never bundled: {reason}"
        wheel = self.facts.brought_by(name, self.requires)
        return f"{wheel} provides it" if wheel else ""

    def check_patterns(self, own: Iterable[str]) -> None:
        """Raise InputError for a pattern that matched nothing; `own` are paths of the wheel's libraries."""
        for option, patterns in (("--exclude", self.request.exclude), ("--include", self.request.include)):
            for pattern in patterns:
                if pattern not in self.used:
                    raise InputError(
                        f"{option} {pattern} matches nothing",
                        cause="no needed library and no file that libraries read has such a name",
                        next_step="list what would be bundled: rocwheel repair --plan",
                    )
        paths = list(own)
        for pattern in self.request.only:
            if not any(is_meant(path, [pattern]) for path in paths):
                raise InputError(
                    f"--only {pattern} matches nothing",
                    cause=f"the wheel's libraries: {', '.join(paths[:8])}",
                    next_step="give a pattern for one of them",
                )


def is_meant(path: str, only: Iterable[str]) -> bool:
    """Whether a library of the wheel is one of those meant; a pattern is for its path, or the end of it."""
    patterns = tuple(only)
    return not patterns or matches(path, [end for pattern in patterns for end in (pattern, f"*/{pattern}")])
