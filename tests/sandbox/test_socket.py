"""A socket of the host in every engine: the job, another user without a network, is answered there."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocwright.execution.objects.server import ObjectServer
from rocwright.execution.objects.share import SOCKET
from rocwright.sandbox.model import Mount
from rocwright.store.objects import Taken
from tests.sandbox.sandbox_jobs import Run, shell

pytestmark = pytest.mark.timing

ASKS = f"""import os, socket
client = socket.socket(socket.AF_UNIX)
client.connect("{SOCKET}")
client.sendall(b"*2\\r\\n$3\\r\\nGET\\r\\n$27\\r\\nccache:" + b"a" * 20 + b"\\r\\n")
print(os.getuid(), client.recv(12, socket.MSG_WAITALL))
"""


class One:
    """A domain with one object."""

    def get(self, key: str) -> Taken | None:
        return Taken(b"object", "one", ()) if key == "a" * 20 else None

    def put(self, key: str, data: bytes, others: tuple[str, ...] = ()) -> bool:
        return False


def test_a_job_is_answered_at_a_socket(ran: Run, tmp_path: Path) -> None:
    said: list[str] = []
    server = ObjectServer(One(), lambda taken: None, tuple, said.append)
    path = tmp_path / "objects.socket"
    with server.serving(path):
        mount = Mount(source=path, target=SOCKET, writable=True)
        outcome, lines = ran(shell(f"python3 -c '{ASKS}'; ls /run/rocwright", mounts=(mount,)))
    assert outcome.ok, lines
    assert lines == ["1000 b'$6\\r\\nobject\\r\\n'", "objects"]
