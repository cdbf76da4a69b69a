"""How the tools in a root hear of the job server, or of a number where they know none.

The facts are in job_tools.toml. Tools are asked for their versions inside the sandbox of the step itself:
only there is it seen which of several `ninja` comes first, also one that the step's own Python environment
has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from rocbase.model import Frozen
from rocbase.toml.read import Reader
from rocwright.catalog.folders import catalog_folders
from rocwright.model.sizes import Size

# Where a sandbox has the fifo: in a folder that is the sandbox's own in every engine.
FIFO = "/run/rocwright/tokens"

# The descriptors of tools that know no fifo by its path: the highest that every shell can open.
READ, WRITE = 8, 9

_MARK = "== "
# Letters of a line that can be a tool's version; the tool may be the step's own, and say anything.
_LONGEST = 1000


class ParallelTool(Frozen):
    """A program that starts many others: how it tells its version, and a pattern whose group is that."""

    name: str
    ask: str
    version: str


class FormFacts(Frozen):
    """A way to hand a job server on, and the versions of tools that take it, or come to harm by it."""

    name: str
    flags: str
    descriptors: bool = False
    knows: dict[str, str]
    harms: dict[str, str] = {}
    source: tuple[str, ...]


class Number(Frozen):
    """A variable with a number of processes, and the tools whose number that becomes."""

    variable: str
    text: str
    of: tuple[str, ...] = ()
    client: str | None = None
    behind: bool = False
    always: tuple[str, ...] = ()
    memory: Size = 0
    source: tuple[str, ...]


class JobTools(Frozen):
    """job_tools.toml."""

    tool: tuple[ParallelTool, ...] = ()
    form: tuple[FormFacts, ...] = ()
    number: tuple[Number, ...] = ()


@cache
def job_tools() -> JobTools:
    """What the catalog in use knows. Raises InputError where its table is wrong."""
    reader = Reader(catalog_folders())
    path = reader.layers("job_tools.toml")[-1]
    return reader.model(JobTools, reader.data(path), path) or JobTools()


@cache
def clients() -> frozenset[str]:
    """The programs that take tokens. Raises InputError where the table is wrong."""
    return frozenset(tool.ask.split()[0] for tool in job_tools().tool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The variables for a step's tools.

    `opens` is for the step's shell, before its commands. `clients` are the tools that take tokens; `shares`
    tells that all that were found do, so that the step has no more processes than tokens.
    """

    env: Mapping[str, str]
    opens: str = ""
    clients: tuple[str, ...] = ()
    shares: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsRequest:
    """What a step's numbers are worked out from: `jobs` at most, `memory` in bytes (None: not known)."""

    jobs: int
    memory: int | None = None
    component: str = ""


def ask_script() -> str:
    """Commands for a shell in the step's sandbox; `read_answers` reads what they print."""
    asks = dict.fromkeys(tool.ask for tool in job_tools().tool)
    return "\n".join(f"echo '{_MARK}{ask}'; {ask} 2>/dev/null || :" for ask in asks)


def read_answers(lines: Iterable[str]) -> dict[str, Version]:
    """The tools that answered, each with its version."""
    versions: dict[str, Version] = {}
    ask = ""
    for line in lines:
        if line.startswith(_MARK):
            ask = line.removeprefix(_MARK)
            continue
        if len(line) > _LONGEST:
            continue
        for tool in job_tools().tool:
            match = re.search(tool.version, line) if tool.ask == ask else None
            if match and tool.name not in versions:
                versions[tool.name] = Version(match[1])
    return versions


def numbers(request: JobsRequest) -> Form:
    """The form without a job server: a number for everybody."""
    return _with_numbers(request, {}, "-j{jobs}", ())


def choose_form(tools: Mapping[str, Version], fifo: str, request: JobsRequest) -> Form:
    """The form for the tools of a root, by their versions; `fifo` is its path as they see it."""
    for form in job_tools().form:
        clients = tuple(name for name in tools if _within(tools[name], form.knows.get(name)))
        if clients and not any(_within(tools[name], form.harms.get(name)) for name in tools):
            break
    else:
        return numbers(request)
    flags = form.flags.format(jobs="{jobs}", fifo=fifo, read=READ, write=WRITE)
    numbered = _with_numbers(request, tools, flags, clients, form.descriptors)
    opens = f"exec {READ}<>{fifo} {WRITE}<>{fifo}" if form.descriptors else ""
    shares = len(clients) == len(tools) and not form.descriptors
    return Form(env=numbered.env, opens=opens, clients=clients, shares=shares)


def _within(version: Version, specifier: str | None) -> bool:
    return specifier is not None and SpecifierSet(specifier).contains(version, prereleases=True)


def _with_numbers(
    request: JobsRequest,
    tools: Mapping[str, Version],
    flags: str,
    clients: tuple[str, ...],
    descriptors: bool = False,
) -> Form:
    env = {"MAKEFLAGS": flags.format(jobs=request.jobs)}
    for number in job_tools().number:
        present = [name for name in number.of if name in tools]
        client = bool(present) and all(name in clients for name in present)
        if client and not (number.behind and descriptors) and request.component not in number.always:
            env |= {} if number.client is None else {number.variable: number.client}
        else:
            env[number.variable] = number.text.format(jobs=_count(number, request))
    return Form(env=env)


def _count(number: Number, request: JobsRequest) -> int:
    if not number.memory or request.memory is None:
        return request.jobs
    return max(1, min(request.jobs, request.memory // number.memory))
