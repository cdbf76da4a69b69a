"""Which engines work on this machine: each is tried with a real job, and the answer is kept."""

from __future__ import annotations

import difflib
import json
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from rocbase.errors import ExplainedError, InputError, SandboxError
from rocbase.files.atomic import write_atomic
from rocbase.folders.temporary import temporary_folder
from rocwright.sandbox.bubblewrap import Bubblewrap
from rocwright.sandbox.buildah import Buildah
from rocwright.sandbox.docker import Docker
from rocwright.sandbox.engine import USER, Engine
from rocwright.sandbox.host import HostEngine
from rocwright.sandbox.model import Mount, SandboxJob
from rocwright.sandbox.nspawn import Nspawn
from rocwright.sandbox.podman import Podman
from rocwright.sandbox.runner import make_writable, run

# Every engine by name, in the order of preference; the host is never chosen unasked.
ENGINES: Mapping[str, Engine] = {
    engine.name: engine for engine in (Podman(), Docker(), Buildah(), Bubblewrap(), Nspawn(), HostEngine())
}

_LIMIT = 60.0
_PLACE = Path("/var/tmp")  # noqa: S108 - a folder of the host that no sandbox may see
_CHECK = """
test "$(id -u)" = "$2" || echo "the user inside is $(id -u) and not $2"
test ! -e "$1" || echo "files of the host are visible"
test -w / && echo "the root can be written"
while IFS=: read -r name rest; do
  case "$name" in *lo | *'|'*) ;; *) echo "the network interface $name is visible" ;; esac
done < /proc/net/dev
echo written > /out/file || echo "a writable mount cannot be written"
test "$(grep -c -E '^Cap(Prm|Eff|Amb):.*[1-9a-f]' /proc/self/status)" = 0 || echo "it has capabilities"
grep -q '^NoNewPrivs:.*1' /proc/self/status || echo "it may gain rights"
grep -q '^Seccomp:.*2' /proc/self/status || echo "no system call is refused"
test "$(env | grep -c -v -e ^PATH= -e ^PWD= -e ^SHLVL= -e ^_=)" = 0 || echo "the environment is not clean"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What came of trying an engine: `reason` says why it does not work, `seconds` how long a job takes.

    `broken` tells that it does run jobs, and does not keep what every engine promises.
    """

    engine: str
    ok: bool
    version: str
    reason: str
    seconds: float
    broken: bool = False


def probe(engine: Engine) -> Probe:
    """Run a job in an engine and see that it is apart from the host."""
    started = time.monotonic()
    version = ""
    broken = False
    try:
        version = engine.version()
        reason = _try(engine)
        broken = bool(reason)
    except ExplainedError as error:
        reason = "; ".join(part for part in (error.message, error.cause) if part)
    seconds = round(time.monotonic() - started, 3)
    return Probe(
        engine=engine.name, ok=not reason, version=version, reason=reason, seconds=seconds, broken=broken
    )


def _try(engine: Engine) -> str:
    """Why the engine does not hold what it should; nothing where it does. Raises SandboxError where it does
    not run a job at all."""
    if not engine.isolates:
        return ""
    lines: list[str] = []
    with temporary_folder("probe", place=_PLACE) as secret:
        out = Path(secret, "out")
        out.mkdir()
        make_writable(out)
        job = SandboxJob(
            root=Path("/"),
            argv=("/bin/sh", "-c", _CHECK, "sh", str(secret), str(USER)),
            env={"PATH": "/usr/bin:/bin"},
            mounts=(Mount(source=out, target="/out", writable=True),),
            seconds=_LIMIT,
        )
        outcome = run(engine, job, lines.append)
    if lines:
        return "; ".join(lines[-3:])
    return "" if outcome.ok else f"a trial job ended: {outcome.ended} {outcome.code}"


def probe_all(cache_file: Path, engines: Sequence[Engine] = tuple(ENGINES.values())) -> list[Probe]:
    """Probe the engines, in their order.

    One that worked is tried again when its version, the kernel or the user has changed; one that did not is
    tried every time, as the user may have mended it.
    """
    cached = _read(cache_file)
    with ThreadPoolExecutor(max_workers=len(engines)) as pool:
        probes = list(pool.map(lambda engine: _kept_or_probed(engine, cached), engines))
    entries = cached | {probe.engine: _entry(probe, cached.get(probe.engine)) for probe in probes}
    if entries != cached:
        # a full or read-only disk costs the next call some seconds
        with suppress(OSError):
            write_atomic(cache_file, json.dumps(entries, indent=2) + "\n")
    return probes


def pick(name: str | None, cache_file: Path) -> Engine:
    """The engine asked for, or else the first that works and isolates; no more are tried than need be.

    Raises InputError for an unknown name, SandboxError where the one named, or every one, does not work.
    """
    candidates = [engine for engine in ENGINES.values() if engine.isolates and name in (None, engine.name)]
    for engine in candidates:
        probes = probe_all(cache_file, (engine,))
        if probes[0].ok:
            return engine
    return choose(name, probe_all(cache_file))


def _kept_or_probed(engine: Engine, cached: Mapping[str, dict[str, object]]) -> Probe:
    entry = cached.get(engine.name)
    if entry is not None and entry.get("machine") == _machine():
        try:
            previous = Probe(**entry["probe"])  # type: ignore[arg-type]
            if previous.ok and previous.version == engine.version():
                return previous
        except (ExplainedError, TypeError, KeyError):
            pass
    return probe(engine)


def _entry(outcome: Probe, previous: dict[str, object] | None) -> dict[str, object]:
    probed = asdict(outcome)
    if previous is not None and previous.get("probe") == probed and previous.get("machine") == _machine():
        return previous
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return {"when": when, "machine": _machine(), "probe": probed}


def _machine() -> str:
    return f"{os.uname().release} uid {os.geteuid()}"


def _read(cache_file: Path) -> dict[str, dict[str, object]]:
    try:
        data = json.loads(cache_file.read_text())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def choose(name: str | None, probes: Sequence[Probe]) -> Engine:
    """The engine asked for, or else the first that works and isolates.

    Raises InputError for an unknown name, SandboxError where the one named, or every one, does not work.
    """
    by_engine = {probe.engine: probe for probe in probes}
    if name is None:
        for engine in ENGINES.values():
            if engine.isolates and engine.name in by_engine and by_engine[engine.name].ok:
                return engine
        raise _none_works(probes)
    if name not in ENGINES:
        raise _unknown(name)
    if not ENGINES[name].isolates or (name in by_engine and by_engine[name].ok):
        return ENGINES[name]
    raise SandboxError(
        f"the sandbox {name} does not work here",
        cause=by_engine[name].reason if name in by_engine else "it was not tried",
        next_step=_instead(probes),
    )


def _none_works(probes: Sequence[Probe]) -> SandboxError:
    reasons = [f"{probe.engine}: {probe.reason}" for probe in probes if not probe.ok]
    return SandboxError(
        "no sandbox works on this machine",
        cause="; ".join(reasons) or "none was tried",
        next_step="install bubblewrap or podman, or use --engine host to run without isolation",
        detail="\n".join(reasons),
    )


def _unknown(name: str) -> InputError:
    near = difflib.get_close_matches(name.lower(), ENGINES, n=2, cutoff=0.4)
    return InputError(
        f"there is no sandbox {name!r}",
        cause=f"did you mean {' or '.join(near)}?" if near else "rocwright has no engine of that name",
        next_step=f"use one of {', '.join(ENGINES)}",
    )


def _instead(probes: Sequence[Probe]) -> str:
    working = [probe.engine for probe in probes if probe.ok and ENGINES[probe.engine].isolates]
    return f"use one that works: {', '.join(working)}" if working else "install bubblewrap or podman"
