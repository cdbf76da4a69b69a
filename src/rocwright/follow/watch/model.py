"""What upstream has that a lock has not, told as models."""

from __future__ import annotations

from typing import Literal

from rocbase.model import Frozen
from rocwright.model.versions import Step

# Exit codes of `rocwright watch`: news (only where asked for), a source that did not answer, an alarm.
NEWS_EXIT, SILENT_EXIT, ALARM_EXIT = 20, 21, 22

# Whether the store keeps what the lock has of it; unknown where the lock names no file yet.
Kept = Literal["whole", "no", "unknown"]


class Alarm(Frozen):
    """What a lock pins is something else upstream now: nobody should have to find that out later."""

    lock: str
    name: str
    what: str
    had: str
    now: str
    kept: Kept


class Caution(Frozen):
    """What a lock pins does not stand as it did: deleted, withdrawn for a reason, or written once more."""

    lock: str
    name: str
    what: str
    why: str = ""
    kept: Kept


class News(Frozen):
    """Something newer than what a lock has.

    `released` is its day (ISO 8601) and `age` the days since, where anybody tells. `pin` is what `[versions]`
    of rocwright.toml would say to take it, empty where no version is chosen (packages, a digest). It is
    `admitted` where the constraints, the filter and the cool-down let it in; `why` says what holds it back,
    `moves` what else it changes, `needless` what is not needed any more with it.
    """

    lock: str
    name: str
    has: str
    new: str
    step: Step | Literal["digest", "commit", "packages"]
    released: str = ""
    age: int | None = None
    notes: str = ""
    source: str
    pin: str = ""
    admitted: bool
    why: str = ""
    moves: tuple[str, ...] = ()
    needless: tuple[str, ...] = ()


class Silent(Frozen):
    """A source that did not answer, or not so that it can be understood."""

    source: str
    names: tuple[str, ...]
    failure: str
    what: str
    cause: str


class WatchReport(Frozen):
    """All that was found. `asked` are the sources, `seconds` how long it took; `unseen` are bases whose
    packages are seen through their image alone, `unasked` components whose newer versions nobody lists."""

    asked: int
    seconds: float
    alarms: tuple[Alarm, ...] = ()
    cautions: tuple[Caution, ...] = ()
    news: tuple[News, ...] = ()
    silent: tuple[Silent, ...] = ()
    unseen: tuple[str, ...] = ()
    unasked: tuple[str, ...] = ()

    def exit_code(self, *, news_counts: bool = False) -> int:
        """What the command ends with: an alarm goes before silence, silence before news."""
        if self.alarms:
            return ALARM_EXIT
        if self.silent:
            return SILENT_EXIT
        return NEWS_EXIT if news_counts and any(update.admitted for update in self.news) else 0
