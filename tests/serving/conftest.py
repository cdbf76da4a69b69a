"""A server that answers within moments, in a real sandbox on this machine's own root."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rocbase.processes.outlive import boot_id
from rocwright import sandbox
from rocwright.catalog.server import Server
from rocwright.home import Home
from rocwright.records.model import now
from rocwright.sandbox.model import Mount, SandboxJob
from rocwright.serving import state, stop
from rocwright.serving.launch import Launch
from rocwright.serving.model import ServerState
from tests.engines import must_work

PROGRAM = """
import http.server, sys
print("begins", flush=True)
if sys.argv[2] == "dies":
    print("error while loading shared libraries: libamdhip64.so.6: cannot open shared object", flush=True)
    sys.exit(127)
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if sys.argv[2] == "well" else 503)
        self.end_headers()
        self.wfile.write(b"well")
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answers).serve_forever()
"""

Make = Callable[..., Launch]

STATE = ServerState(
    name="small",
    stack="small",
    component="small",
    version="1",
    gpu=("gfx1151",),
    base="debian:sid",
    on="cpu",
    model="",
    place="host",
    host="127.0.0.1",
    port=80,
    health="/health",
    mark="mark",
    boot="",
    begun="2026-11-25T15:00:00Z",
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def launch(home: Home, tmp_path: Path) -> Iterator[Make]:
    """Makes a server ready to be started; what still runs at the end is ended."""
    must_work(sandbox.probe(sandbox.ENGINES["bubblewrap"]))
    (tmp_path / "program.py").write_text(PROGRAM)

    def make(name: str = "small", *, how: str = "well", stays: bool = True) -> Launch:
        port = free_port()
        state.claim(home, name)
        box = state.box_of(home, name)
        box.mkdir()
        mark = f"rocwright-server-{name}-{secrets.token_hex(4)}"
        job = SandboxJob(
            root=Path("/"),
            argv=("/usr/bin/python3", "/models/program.py", str(port), how),
            env={"PATH": "/usr/bin:/bin"},
            mounts=(Mount(source=tmp_path / "program.py", target="/models/program.py"),),
            network=True,
        )
        ready = sandbox.make_ready(job, box, mark, stays=stays)
        own = {"name": name, "port": port, "mark": mark, "boot": boot_id(), "begun": now()}
        kept = STATE.model_copy(update=own | {"command": ready.argv})
        server = Server(command=("program", "{port}"), port=port, health="/health")
        return Launch(state=kept, argv=ready.argv, env=dict(ready.env), server=server)

    yield make
    for one in state.servers(home):
        stop.stop(home, one.name, seconds=1)


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    """What lies in a folder and below: every name, with the size of each file and when it was written."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_symlink() or not path.is_dir()]
    return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in paths}
