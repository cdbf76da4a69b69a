"""Whether the programs are there that a build checks for before its first step."""

from __future__ import annotations

from collections.abc import Iterator

from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Stack
from rocwright.diagnosis.facts import Grade, HostFacts
from rocwright.doctor.findings.model import DoctorFinding, speaker
from rocwright.home import Home
from rocwright.sources.bases.tools import has_tools
from rocwright.sources.programs import PROGRAMS, install_command, missing, tools_sources


def programs(
    catalog: Catalog, facts: HostFacts, stacks: tuple[str, ...], home: Home
) -> Iterator[DoctorFinding]:
    """Yield what this machine lacks for each kind of base and of sources, with the stacks that need it."""
    tools = bool(tools_sources()) or has_tools(home)
    lacking = {purpose: missing([purpose], tools=tools) for purpose in PROGRAMS}
    ways = {name: _ways(catalog, catalog.stack(name)) for name in stacks}
    stuck = [name for name, possible in ways.items() if lacking["git"] or all(map(lacking.get, possible))]
    for purpose, names in lacking.items():
        needing = tuple(name for name, possible in ways.items() if purpose in (*possible, "git", "serve"))
        if names and needing:
            # without a stack all are looked at: a few that cannot be built leave the machine fit for the rest
            grade: Grade = "error" if 2 * len({*stuck} & {*needing}) >= len(stacks) else "warning"
            message = f"not on PATH: {', '.join(names)}"
            yield speaker(facts, needing)("programs", grade, message, command=install_command(names))
    if not any(lacking.values()):
        yield DoctorFinding(name="programs", grade="ok", what="the programs that builds start are installed")


def _ways(catalog: Catalog, stack: Stack) -> set[str]:
    """Return the kinds of base on which a stack has locks; one without is built on Debian."""
    families = {row.base.partition(":")[0] for row in stack.row}
    return {"image" if catalog.bases[name].made == "image" else "debian" for name in families} or {"debian"}
