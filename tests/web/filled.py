"""A home with something on every page: runs of all outcomes, long names, a log of thousands of lines."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from rocbase.files.atomic import sha256_bytes
from rocbase.processes.outlive import boot_id
from rocbase.processes.owner import this_process
from rocwright.follow.cycle.model import Culprit, CycleTold, RowTold
from rocwright.follow.watch.kept import keep
from rocwright.follow.watch.model import Alarm, News, Silent, WatchReport
from rocwright.home import Home
from rocwright.plan.resolve.model import Request
from rocwright.records.model import Artifact, Finding, Promotion, Run, Sample, with_failure
from rocwright.records.read import Records
from rocwright.serving import state
from rocwright.serving.model import ServerState
from tests.web.serving import a_run, a_step, write_log

LONG = "a-path-that-has-no-place-to-break-at/" * 6
WHEEL = "torch_with_a_long_name-2.9.1+rocm7.14.0a20251021.gfx1151-cp313-cp313-manylinux_2_39_x86_64.whl"
FAILED, SILENT, KILLED, NEVER = "run-failed", "run-silent", "run-killed", "run-never"
RUNNING, QUEUED, BUILT, VERIFIED = "run-running", "run-queued", "run-built", "run-verified"
FIRST = "CMake Error at third_party/psimd/CMakeLists.txt:1: Compatibility with CMake < 3.5 has been removed"
SHA256 = "ab" * 32
NOISE = 5_000
"""Lines before the first error of the long log, and as many after it."""


def fill(home: Home, records: Records, at: datetime | None = None) -> None:
    """Put all of it on record, as of a time."""
    now = at or datetime.now(UTC)

    def ago(hours: float) -> str:
        return (now - timedelta(hours=hours)).isoformat(timespec="seconds").replace("+00:00", "Z")

    made = Artifact(component="torch", step="torch", filename=WHEEL, sha256=SHA256, size=1_234_567_890)
    versions = {"torch": "2.9.1", "rocm": "7.10.0a20251021", "python": "3.13", "triton": "3.5.0"}
    gpu = "gfx1151"
    cells = (("pytorch", "gfx803"), ("pytorch", gpu), ("llama-vulkan", gpu), ("stable-diffusion-hip", gpu))
    for number, (stack, one) in enumerate(cells):
        said: dict[str, object] = {
            "stack": stack,
            "gpu": (one,),
            "versions": versions,
            "said": "built",
            "lock": "l" * 64,
        }
        said |= {"seconds": 4321, "base": "rocm-ubuntu-24.04:6.4.1"}
        for day in (3, 2):
            run = a_run(f"run-{stack}-{one}-{day}", started=ago(24 * day + number), **said)
            records.put(run, artifacts=[made.model_copy(update={"size": made.size + number * 2**20 * day})])
    steps = tuple(
        a_step(name=name, seconds=90, needs=needs, jobs=14, peak_memory=3 * 2**30, compiler_cache=cache)
        for name, needs, cache in (
            ("packages/build", (), {}),
            ("root/build", ("packages/build",), {}),
            ("tree/torch-with-a-long-name", ("root/build",), {}),
            ("torch-with-a-long-name", ("tree/torch-with-a-long-name",), {"hit": 3000, "miss": 900}),
        )
    )
    samples = [Sample(step="torch", at=n * 5.0, memory=n * 2**28, processes=n) for n in range(20)]
    built = _run(BUILT, ago(5), stack="pytorch", steps=steps, outcome="built", seconds=3700, said="built")
    records.put(built.model_copy(update={"versions": versions}), artifacts=[made], samples=samples)
    findings = [
        Finding(component="torch", check="runs", name="matmul/float16", ok=True, detail=LONG, sha256=SHA256),
        Finding(component="torch", check="runs", name="sdpa", ok=False, detail="nan", sha256=SHA256),
    ]
    for hours in (4.0, 3.0):
        ident = f"{VERIFIED}{hours:.0f}"
        run = _run(ident, ago(hours), command="verify", stack="pytorch", outcome="verified")
        records.put(run, findings=findings)
    _failures(home, records, ago)
    running = tuple(
        one.model_copy(update={"state": state, "outcome": outcome, "started": ago(0.1)})
        for one, state, outcome in zip(
            steps, ("ended", "ended", "running", "queued"), ("built", "built", "", ""), strict=True
        )
    )
    more = {"steps": running, "outcome": "", "state": "running", "origin": "page owner 123456"}
    records.put(_run(RUNNING, ago(0.2), stack="vllm", **more))
    records.put(_run(QUEUED, ago(0.1), stack="vllm", outcome="", state="queued", steps=()))
    held = {"stack": "pytorch", "gpu": gpu, "base": "rocm-ubuntu-24.04:6.4.1", "run": f"run-pytorch-{gpu}-2"}
    for channel in ("nightly", "candidate"):
        why = "checked without a GPU, 3 days without a failure"
        records.promote(Promotion(channel=channel, lock="l" * 64, at=ago(2), by="cycle 1", why=why, **held))
    _upstream(home, ago)
    here, long = boot_id(), "a-name-that-has-no-place-to-break-at-and-is-as-long-as-may-be"
    me = this_process()
    a_server(home, "chat", boot=here, begun=ago(1), pid=me.pid, start=me.start)
    ended = a_server(home, long, boot="before", begun=ago(30), model=f"/models/{'x' * 120}.gguf", key=True)
    state.log_of(home, ended.name).write_text(f"{FIRST}\n{LONG}\nllama_model_load: error loading model\n")


def a_server(home: Home, name: str, **more: object) -> ServerState:
    """A server on record; `boot` and `pid` say whether it runs."""
    said: dict[str, object] = {
        "name": name,
        "stack": "llama-vulkan",
        "component": "llama.cpp",
        "version": "11312",
        "gpu": ("gfx1151",),
        "base": "debian:sid",
        "on": "cpu",
        "model": "/models/tiny.gguf",
        "place": "host",
        "host": "127.0.0.1",
        "port": 8080,
        "health": "/health",
        "addresses": {"OpenAI API": "http://127.0.0.1:8080/v1"},
        "mark": f"rocwright-server-{name}-00000000",
        "boot": "",
        "begun": "2026-01-01T00:00:00Z",
    }
    server = ServerState.model_validate(said | more)
    state.claim(home, name)
    state.keep(home, server)
    return server


def _run(ident: str, started: str, **more: object) -> Run:
    return a_run(ident, started=started, gpu=("gfx1151",), base="debian:sid", **more)


def _failures(home: Home, records: Records, ago: Callable[[float], str]) -> None:
    """Runs that did not go well: with all that is known told, with nothing told, killed, and never begun."""
    known = {
        "class": "compile",
        "message": "the build commands ended with status 1",
        "cause": FIRST,
        "detail": f"{FIRST}\n{LONG}\n-- Configuring incomplete, errors occurred!",
        "next": "rocwright logs STEP shows the whole log; rocwright shell STEP opens its sandbox",
        "issue": "cmake-minimum",
    }
    bare = {"class": "compile", "message": "the build commands ended with status 1"}
    for ident, hours, step, outcome in (
        (FAILED, 2.0, a_step(name="psimd", outcome="failed", error=known, log="psimd.log"), "failed"),
        (SILENT, 1.9, a_step(name="gloo", outcome="failed", error=bare, log="gloo.log"), "failed"),
        (KILLED, 1.8, a_step(name="triton", outcome="killed", log="triton.log"), "killed"),
    ):
        skipped = a_step(name="torch", outcome="skipped", log="", needs=(step.name,))
        run = _run(ident, ago(hours), stack=step.name, outcome=outcome, steps=(step, skipped), lock="m" * 64)
        records.put(with_failure(run))
        write_log(home, run, long_log())
    says = f"error[conflict] nothing fits together\n  because  {LONG}"
    error = {"class": "input", "message": says.splitlines()[0], "detail": says}
    never = a_step(name="build", key="", log="", outcome="failed", error=error)
    records.put(_run(NEVER, ago(1.7), stack="sdnext", outcome="failed", failure="input", steps=(never,)))


def long_log() -> str:
    """Two phases; the first error is far from the end, and a line has no place to break at."""
    stamp = "2026-11-25T10:00:00.000Z "
    lines = ["$ cmake -S . -B build -G Ninja", "-- The C compiler identification is GNU 15.2.0"]
    lines += [f"-- Looking for header_{number}.h - found" for number in range(NOISE)]
    lines += [FIRST, LONG, "  Update the VERSION argument <min> value."]
    lines += [f"[{number}/{NOISE}] {'x' * 60}" for number in range(NOISE)]
    lines += ["$ ninja -C build install", "-- Configuring incomplete, errors occurred!"]
    return "".join(f"{stamp}{line}\n" for line in lines)


def _upstream(home: Home, ago: Callable[[float], str]) -> None:
    news = [
        News(
            lock="project",
            name=name,
            has="6.4.4",
            new="7.14.0a20251021",
            step="major",
            released="2026-11-01",
            age=24,
            notes=f"https://example.org/{LONG}",
            source="an index",
            admitted=admitted,
            why="the constraint torch-minor holds it back",
            moves=("torch 2.9.1 to 2.12.1", "triton 3.5.0 to 3.6.1"),
        )
        for name, admitted in (("rocm", True), ("a-component-with-a-long-name", False))
    ]
    moved = {"had": "a" * 40, "now": "b" * 40}
    alarm = Alarm(lock="project", name="torch", what="the tag v2.9.1 moved", kept="no", **moved)
    where = f"https://example.org/{LONG}"
    silent = Silent(source=where, names=("x",), failure="network", what="x", cause="y")
    report = WatchReport(asked=12, seconds=3, alarms=(alarm,), news=tuple(news), silent=(silent,))
    keep(report, ["project"], home, ago(6))
    asked = Request(stack="pytorch", gpu=("gfx803", "gfx1151"), base="rocm-ubuntu-24.04:6.4.1")
    culprit = Culprit(says=("culprit", f"  torch 2.9.1 to 2.9.2, {LONG}"), report="")
    rows = (
        RowTold(request=asked, state="promoted", changes=("torch 2.9.1 → 2.9.2",), promoted=("nightly",)),
        RowTold(request=asked, state="failed", why=LONG, changes=(LONG,), culprit=culprit, run=FAILED),
        RowTold(request=asked, state="unchanged", waits={"known-good": "2 of 3 days"}),
    )
    told = CycleTold(id="1", started=ago(7), seconds=900, rows=rows, folder=str(home.path))
    home.cycles.mkdir(parents=True, exist_ok=True)
    name = sha256_bytes(str(home.path.resolve()).encode())[:16]
    (home.cycles / f"{name}.json").write_text(told.model_dump_json())
