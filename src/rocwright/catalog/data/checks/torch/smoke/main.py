"""The command line of the suites: which to run, on which devices; prints what they found."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smoke import child, devices, drift, report, runner
from smoke.cases import SUITES
from smoke.explain import Explanation
from smoke.model import SIZES
from smoke.runner import ChildFailedError, Limits, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Found = tuple[str, str, Outcome]

STANDARD_OUTPUT = "-"
MOST_RUNS = 10_000


def main(argv: Sequence[str]) -> int:
    """0 where nothing is wrong (what is absent is not wrong), else 1; 2 for a wrong use."""
    if argv[:1] == ["--child"]:
        return child.main(json.loads(argv[1]), int(argv[2]))
    options = parser().parse_args(argv)
    found: list[Found] = []
    for one in tried(options):
        found.append(one)
        if options.marks:
            print(report.mark(*one), flush=True)
        elif options.json != STANDARD_OUTPUT:
            suite, device, outcome = one
            if not outcome.ok:
                print(
                    f"{outcome.state.upper()} on {device}: {suite} {outcome.group}/{outcome.name}",
                    file=sys.stderr,
                )
    if options.json:
        rows = json.dumps([report.row(*one) for one in found], indent=1)
        if options.json == STANDARD_OUTPUT:
            print(rows)
        else:
            Path(options.json).write_text(rows + "\n")
    if options.json != STANDARD_OUTPUT and not options.marks:
        print("\n".join([*report.table(found), *drift.table(found)]))
        failed = sum(not outcome.ok for _, _, outcome in found)
        print(f"{len(found)} tried, {failed} not right" if failed else f"{len(found)} tried, nothing wrong")
    return 0 if found and all(outcome.ok for _, _, outcome in found) else 1


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        prog="suite.py", description="Smoke suites for torch and what stands on it."
    )
    made.add_argument("suite", nargs="+", choices=list(SUITES), help="what to try")
    made.add_argument("--device", default="auto", help="auto, cpu, cuda (one of each kind), or cuda:N")
    made.add_argument("--every", action="store_true", help="each of several equal GPUs, not one of them")
    made.add_argument("--size", choices=SIZES, default="normal", help="how large the shapes are")
    made.add_argument("--seed", type=int, default=0, help="of the random inputs")
    made.add_argument(
        "--only", action="append", default=[], help="cases whose group/name holds this; may be repeated"
    )
    made.add_argument(
        "--target", action="append", default=[], help="GPU target to compile for without it: gfx1151:32"
    )
    made.add_argument(
        "--lacks",
        action="append",
        default=[],
        type=pair,
        metavar="FEATURE=REASON",
        help="what the target has not: triton, bf16, flash-attention; what needs it is left out",
    )
    made.add_argument(
        "--operation-seconds", type=float, default=Limits.operation, help="limit of one operation"
    )
    made.add_argument(
        "--group-seconds", type=float, default=Limits.group, help="limit of one group of operations"
    )
    made.add_argument(
        "--repeat", type=count, default=drift.REPEAT, help="of the suite drift: how often each operation runs"
    )
    made.add_argument(
        "--json",
        nargs="?",
        const=STANDARD_OUTPUT,
        metavar="FILE",
        help="all outcomes as JSON at the end, in a file where one is named, instead of the table where not",
    )
    made.add_argument(
        "--marks", action="store_true", help=f"each outcome as a line of JSON after {report.MARK}"
    )
    return made


def count(text: str) -> int:
    """How often: twice at least, or nothing is compared."""
    if not text.isdigit() or not 2 <= int(text) <= MOST_RUNS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 2 to {MOST_RUNS}")
    return int(text)


def pair(text: str) -> tuple[str, str]:
    """FEATURE=REASON."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise argparse.ArgumentTypeError(f"{text!r} is not FEATURE=REASON")
    return name, value


def tried(options: argparse.Namespace) -> Iterator[Found]:
    """Every outcome of every suite on every device chosen."""
    limits = Limits(operation=options.operation_seconds, group=options.group_seconds)
    try:
        described = runner.described(limits)
        where = devices.chosen(described, options.device, every=options.every)
    except ChildFailedError as failed:
        yield options.suite[0], "", outside("torch", str(failed), failed.known)
        return
    except devices.NoDeviceError as missing:
        known = Explanation(
            "no driver, no rights on the device files, or a torch built for another kind of GPU"
        )
        yield options.suite[0], "", outside("device", str(missing), known)
        return
    for device in where:
        if device.stands_for:
            others = f"tried for {', '.join(device.stands_for)} as well: the same name, target and memory"
            yield options.suite[0], device.title, Outcome("about", "equal-gpus", "ok", others)
        for suite in options.suite:
            found = 0
            try:
                for outcome in outcomes(options, order(options, device, suite), limits):
                    found += 1
                    yield suite, device.title, outcome
            except ChildFailedError as failed:
                yield suite, device.title, outside("process", str(failed), failed.known)
                continue
            if not found:
                only = ", ".join(options.only)
                yield suite, device.title, outside("cases", f"no case holds {only}", Explanation())


def outcomes(options: argparse.Namespace, what: dict[str, Any], limits: Limits) -> Iterator[Outcome]:
    """How each case of a suite ends: run once, or repeated."""
    if what["suite"] != "drift":
        return runner.outcomes(what, limits)
    return drift.outcomes(what, limits, options.repeat, lambda text: print(text, file=sys.stderr))


def order(options: argparse.Namespace, device: devices.Chosen, suite: str) -> dict[str, Any]:
    """What the child is to do."""
    return {
        "suite": suite,
        "device": device.device,
        "size": options.size,
        "seed": options.seed,
        "only": options.only,
        "targets": options.target,
        "lacks": dict(options.lacks),
    }


def outside(name: str, detail: str, known: Explanation) -> Outcome:
    """A failure that is no case's."""
    return Outcome("about", name, "error", detail, cause=known.cause, next_step=known.next_step)
