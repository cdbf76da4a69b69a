"""Templates to pages."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from rocbase.units import count, duration, size
from rocwright.records.standings import standing


@cache
def environment() -> Environment:
    """All text is escaped; a name that a template does not know is an error."""
    env = Environment(
        loader=PackageLoader("rocwright.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= {"duration": duration, "size": size, "count": count, "ago": ago, "day": day}
    env.filters |= {"standing": standing, "device": short_device}
    return env


def render(template: str, **context: object) -> str:
    """A page of `templates/`."""
    return environment().get_template(template).render(**context)


def ago(timestamp: str, moment: datetime | None = None) -> str:
    """How long ago a time was, in a word or two."""
    try:
        since = (moment or datetime.now(UTC)) - datetime.fromisoformat(timestamp)
    except (ValueError, TypeError):
        return timestamp
    seconds = since.total_seconds()
    if seconds < -60:
        return "in the future"
    if seconds >= 2 * 365 * 86400:
        return f"{seconds / (365.25 * 86400):.1f} y"
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds / unit:.0f} {name}"
    return "now"


def short_device(name: str) -> str:
    """Return a device's name without what its driver adds in parentheses."""
    return name.partition(" (")[0]


def day(timestamp: str) -> str:
    """The date and the minute of a time."""
    return timestamp[:16].replace("T", " ")
