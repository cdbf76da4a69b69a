"""How many jobs an exported step takes: as many as there are processors, and as memory suffices for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rocwright.execution.jobs.prospects import UNKNOWN

MEMINFO = "/proc/meminfo"
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container is told what it may have: cgroups of version 2 and 1."""

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
