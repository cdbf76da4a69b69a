"""A cycle in lines."""

from __future__ import annotations

from collections.abc import Iterator

from rocwright.follow.cycle.model import CycleTold, RowTold


def tell(report: CycleTold) -> Iterator[str]:
    """Every row: how it ended, what it changed, where it was promoted to, and what it waits for."""
    for row in report.rows:
        yield from _row(row)


def _row(row: RowTold) -> Iterator[str]:
    request = row.request
    target = f" to {', '.join(row.promoted)}" if row.promoted else ""
    words = (request.stack, ", ".join(request.gpu), request.base, request.variant)
    yield f"{'  '.join(word for word in words if word)}: {row.state}{target}"
    if row.why:
        yield from (f"  {line}" for line in row.why.splitlines())
    for source in row.silent:
        yield f"  no answer: {source}"
    for change in row.changes:
        yield f"  {change}"
    for channel, reason in row.waits.items():
        yield f"  not {channel}: {reason}"
    if row.culprit is not None:
        for line in row.culprit.says:
            yield f"  {line}"
        if row.culprit.report:
            yield f"  report: {row.culprit.report}"
