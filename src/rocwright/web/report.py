"""The matrix as one file that needs nothing else: for a mailing list, or a bug."""

from __future__ import annotations

from importlib.resources import files

from markupsafe import Markup

from rocwright import __version__
from rocwright.catalog.issue import the_issues
from rocwright.records.model import now
from rocwright.records.read import Records
from rocwright.web.matrix import by_stack
from rocwright.web.render import render

BROKEN = ("failed", "killed")


def report(records: Records, stack: str = "") -> str:
    """The page: every cell, what is broken and known of it, what channels hold."""
    cells, issues = records.matrix(stack=stack), the_issues()[0]
    style = files("rocwright.web").joinpath("static", "site.css").read_text(encoding="utf-8")
    return render(
        "report.html",
        at=now(),
        version=__version__,
        wanted=stack,
        style=Markup(style),  # noqa: S704 - a file of ours
        stacks=by_stack(cells),
        broken=[(one, issues.get(one.issue)) for one in cells if one.outcome in BROKEN],
        promotions=records.promotions(stack=stack, limit=200),
    )
