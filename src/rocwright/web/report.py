"""The matrix as one file that needs nothing else: for a mailing list, or a bug."""

from __future__ import annotations

from functools import partial
from importlib.resources import files

from markupsafe import Markup

from rocwright import __version__
from rocwright.config import config
from rocwright.diagnosis.masking import masked
from rocwright.follow.cycle.channels import channels
from rocwright.follow.notify.look import hidden
from rocwright.records.model import now
from rocwright.records.read import Records
from rocwright.records.standings import standings
from rocwright.web.failures import broken
from rocwright.web.matrix import by_stack, highest
from rocwright.web.render import render


def report(records: Records, stack: str = "") -> str:
    """The page: every cell, what is broken and known of it, what channels hold."""
    cells = records.matrix(stack=stack)
    style = files("rocwright.web").joinpath("static", "site.css").read_text(encoding="utf-8")
    return render(
        "report.html",
        at=now(),
        version=__version__,
        wanted=stack,
        style=Markup(style),  # noqa: S704 - a file of ours
        stacks=by_stack(cells),
        count=len(cells),
        standings=standings(cells),
        broken=broken(records, cells),
        mask=partial(masked, hidden=hidden(config())),
        highest=partial(highest, [channel.name for channel in channels()]),
        promotions=records.promotions(stack=stack, limit=200),
    )
