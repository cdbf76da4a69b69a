"""Run steps as scripts: the recipe's commands with their whole environment, as `build` runs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rocwright.catalog.environment import for_recipe
from rocwright.catalog.folders import DATA
from rocwright.catalog.model import Env
from rocwright.execution.jobs.forms import JobsRequest, job_tools, numbers
from rocwright.execution.jobs.learn import UNKNOWN
from rocwright.execution.run import GUARDS, environment, install_script
from rocwright.export.arguments import TARGETS
from rocwright.export.model import ExportFile, ExportSubject, Files, lines_of, variable
from rocwright.export.quote import comment, shell
from rocwright.model.step_environment import SOURCE
from rocwright.model.steps import RunAction, Step
from rocwright.plan.remedies import actions_for, remedied_environment
from rocwright.plan.values import chosen_values, expand, present

# Private characters around a name that stands for a variable of the script.
_OPEN, _CLOSE = "\ue000", "\ue001"


def step_files(subject: ExportSubject) -> Files:
    """A script for each run step, and the guards that they call."""
    files: Files = {}
    for step in subject.plan.steps:
        if isinstance(step.action, RunAction):
            files[script_path(step)] = _script(step, step.action, subject)
            if step.action.guard:
                for path in sorted((DATA / "guards").glob("*.py")):
                    files[f"guards/{path.name}"] = ExportFile(path.read_bytes())
    return files


def script_path(step: Step) -> str:
    """Where a run step's script lies."""
    return f"steps/{step.name.replace('/', '-')}.sh"


def cache_of(step: Step) -> str:
    """The name of the compiler cache of a step's trust domain."""
    return f"rocwright-ccache-{step.domain[:32]}"


def passed_on(step: Step, subject: ExportSubject) -> tuple[str, ...]:
    """The names of the values that a step's script takes from its environment."""
    locked = subject.locked(step)
    if locked is None:
        return ("JOBS",)
    commit = (variable(locked.name, "commit"),) if locked.kind == "git" else ()
    return ("JOBS", TARGETS, variable(locked.name, "version"), *commit)


def _script(step: Step, action: RunAction, subject: ExportSubject) -> ExportFile:
    return lines_of(_lines(step, action, subject), executable=True)


def _lines(step: Step, action: RunAction, subject: ExportSubject) -> Iterator[str]:
    locked = subject.locked(step)
    defaults: dict[str, str] = {}
    if locked is not None:
        defaults[TARGETS] = ";".join(subject.lock.request.gpu)
        defaults[variable(locked.name, "version")] = locked.version
    if locked is not None and locked.kind == "git":
        defaults[variable(locked.name, "commit")] = locked.commit
    yield "#!/bin/sh"
    description = f"{step.name} {locked.version}: the recipe's commands" if locked is not None else step.name
    yield f"# {comment(description)}, in {SOURCE}, with a clean environment."
    yield "# The words of a recipe are split, matched and left to themselves as it says:"
    yield "# shellcheck disable=SC1090,SC2012,SC2016,SC2046,SC2086,SC2115,SC2154,SC2155,SC2164,SC2231"
    yield "set -eu"
    names = ["JOBS", *defaults]
    yield 'if [ "${1:-}" != clean ]; then'
    yield from (f"    {line}" for line in jobs_lines(step.resources.memory))
    for name, value in defaults.items():
        yield f'    [ -n "${{{name}:-}}" ] || {name}={shell(value)}'
    assignments = " ".join(f'{name}="${name}"' for name in names)
    yield f'    exec /usr/bin/env -i {assignments} /bin/sh "$0" clean'
    yield "fi"
    for name, value in _environment(step, action, subject).items():
        yield f"export {name}={value}"
    yield 'mkdir -p "$SRC" "$OUT" "$HOME" "$CCACHE_TEMPDIR"'
    yield f"cd {SOURCE}"
    if action.own_python:
        yield "("
        yield install_script(action)
        yield ")"
    for package in action.guard:
        yield f"python3 {GUARDS}/single_package.py {shell(package)} --workdir {SOURCE}"
    yield from action.commands


def _environment(step: Step, action: RunAction, subject: ExportSubject) -> dict[str, str]:
    """Each variable as the text that sh takes as its value; what depends on an argument refers to it."""
    root = next(used.key for used in step.inputs if used.name == "root")
    own = _own(step, subject)
    memory = {option.variable: option.memory for option in job_tools().number if option.memory}
    count = {name: fewer(memory_each, step.resources.memory) for name, memory_each in memory.items()}
    jobs = {
        name: value.replace("0", f"{_OPEN}{count.get(name, 'JOBS')}{_CLOSE}")
        for name, value in numbers(JobsRequest(jobs=0)).env.items()
    }
    variables = environment(action, jobs) | own | {"CCACHE_NAMESPACE": root[:16]}
    return {name: _referring(value) for name, value in variables.items() if name != "PATH"} | {
        "PATH": shell(variables["PATH"])
    }


def _own(step: Step, subject: ExportSubject) -> dict[str, str]:
    """The recipe's variables, with names of the script's where an argument stands in them."""
    locked = subject.locked(step)
    if locked is None:
        return {}
    component = subject.catalog.component(locked.name)
    stands = {
        "version": f"{_OPEN}{variable(locked.name, 'version')}{_CLOSE}",
        "targets": f"{_OPEN}{TARGETS}{_CLOSE}",
        "commit": f"{_OPEN}{variable(locked.name, 'commit')}{_CLOSE}"
        if locked.kind == "git"
        else locked.commit,
    }
    recipe_env = for_recipe(subject.catalog, subject.lock.request.gpu, component.name)
    recipe_variables: Env = {**recipe_env, **component.env, **component.released(locked.version).env}
    values = {
        name: expand(value, stands, f"{component.name}: {name}")
        for name, value in chosen_values(recipe_variables, present(subject.lock)).items()
    }
    mended = remedied_environment(values, actions_for(subject.lock, locked.name))
    return {name: value for name, value in mended.items() if name in values}


def _referring(text: str) -> str:
    first, *parts = text.split(_OPEN)
    words = [shell(first)] if first or not parts else []
    for part in parts:
        name, _, suffix = part.partition(_CLOSE)
        words += [f'"${name}"', *([shell(suffix)] if suffix else [])]
    return "".join(words)


MEMINFO = "/proc/meminfo"
# Where a container is told what it may have: cgroups of version 2 and 1.
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")

_MIB = 1024**2


def jobs_lines(memory: int, meminfo: str = MEMINFO, limits: Sequence[str] = LIMITS) -> Iterator[str]:
    """Commands for sh, also with `set -eu`, that set JOBS where it is empty; `memory` is what one job takes,
    in bytes (0: not known). They need no program but nproc."""
    per_job = _mib(memory)
    yield 'if [ -z "${JOBS:-}" ]; then'
    yield f"    # {per_job} MiB for each job, of the memory that is available"
    yield "    JOBS=$(nproc)"
    yield f"    room=$((JOBS * {per_job}))"
    yield "    while read -r name size unit; do"
    yield '        if [ "$name $unit" = "MemAvailable: kB" ]; then room=$((size / 1024)); fi'
    yield f"    done < {meminfo}"
    yield f"    for limit in {' '.join(limits)}; do"
    yield '        if [ -r "$limit" ] && read -r size < "$limit" && [ "$size" != max ]; then'
    yield f'            size=$((size / {_MIB})); if [ "$size" -lt "$room" ]; then room=$size; fi'
    yield "        fi"
    yield "    done"
    yield f'    if [ "$((room / {per_job}))" -lt "$JOBS" ]; then JOBS=$((room / {per_job})); fi'
    yield '    if [ "$JOBS" -lt 1 ]; then JOBS=1; fi'
    yield "fi"


def fewer(needed: int, memory: int) -> str:
    """What stands behind "$" in sh for a number of processes that take `needed` bytes each, such as links,
    where JOBS of `memory` bytes fit: as many as fit in the place of these, and at least one."""
    per_job, per_process = _mib(memory), _mib(needed)
    return (
        "JOBS"
        if per_process <= per_job
        else f"((JOBS * {per_job} < {per_process} ? 1 : JOBS * {per_job} / {per_process}))"
    )


def _mib(memory: int) -> int:
    return -(-(memory or UNKNOWN) // _MIB)
