"""A cluster of Slurm on this machine: its controller and two machines that are processes."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

NODES = ("n1", "n2")
MEMORY = 4000
"""MiB of each machine."""

SETTINGS = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=5
KillWait=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 RealMemory={memory}
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 RealMemory={memory}
PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=INFINITE
"""


@dataclass
class Cluster:
    """Its settings' file, and the processes of its machines."""

    settings: Path
    nodes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def state(self) -> dict[str, str]:
        told = subprocess.run(
            ["sinfo", "--noheader", "--Node", "--format=%N %t"],
            env=os.environ | {"SLURM_CONF": str(self.settings)},
            capture_output=True,
            text=True,
            check=False,
        )
        return dict(line.split() for line in told.stdout.splitlines())


def missing() -> str:
    """Why no cluster can be had here; "" where it can."""
    if os.geteuid() != 0:
        return "a cluster needs root"
    if shutil.which("slurmctld") is None or shutil.which("slurmd") is None:
        return "slurmctld and slurmd are not installed"
    return ""


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """One that lives as long as this; its machines are idle."""
    why = missing()
    if why:
        pytest.skip(why)
    for name in ("state", *NODES):
        (folder / name).mkdir(parents=True)
    settings = folder / "slurm.conf"
    host = platform.node().partition(".")[0]
    settings.write_text(SETTINGS.format(host=host, ports=_free_ports(3), folder=folder, memory=MEMORY))
    # without a word of its own it looks for a hierarchy that this machine may not have
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    found = Cluster(settings)

    def begin(*words: str) -> subprocess.Popen[bytes]:
        log = (folder / f"{words[-1]}.log").open("wb")
        return subprocess.Popen(
            [words[0], "-D", "-f", settings, *words[1:]], stdout=log, stderr=log, start_new_session=True
        )

    controller = begin("slurmctld")
    try:
        for node in NODES:
            found.nodes[node] = begin("slurmd", "-N", node)
        end = time.monotonic() + 60
        while found.state() != dict.fromkeys(NODES, "idle"):
            assert time.monotonic() < end, [path.read_text()[-2000:] for path in folder.glob("*.log")]
            time.sleep(0.2)
        yield found
    finally:
        for one in (*found.nodes.values(), controller):
            with suppress(ProcessLookupError):
                os.killpg(one.pid, 9)
            one.wait()
