"""System calls that no engine lets a job make, and the forms in which engines are told so."""

from __future__ import annotations

import ctypes.util
import errno
import json
import sys
from pathlib import Path

import pytest

from rocbase.errors import SandboxError
from rocwright.sandbox import ENGINES, Engine, probe, seccomp
from tests.sandbox.sandbox_jobs import Run, job

TRY = """
import ctypes, errno, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
column = {"x86_64": 0, "aarch64": 1}[platform.machine()]
calls = {
    "keyctl": (250, 219, 0, -3, 0), "add_key": (248, 217, 0, 0, 0, 0, 0), "bpf": (321, 280, 0, 0, 0),
    "perf_event_open": (298, 241, 0, -1, -1, 0), "userfaultfd": (323, 282, 1),
    "io_uring_setup": (425, 425, 1, 0), "setns": (308, 268, -1, 0), "mount": (165, 40, 0, 0, 0, 0, 0),
    "pivot_root": (155, 41, 0, 0), "open_by_handle_at": (304, 265, -1, 0, 0),
    "name_to_handle_at": (303, 264, -1, 0, 0, 0, 0), "kexec_load": (246, 104, 0, 0, 0, 0),
    "init_module": (175, 105, 0, 0, 0), "swapon": (167, 224, 0, 0), "reboot": (169, 142, 0, 0, 0, 0),
    "settimeofday": (164, 170, 0, 0), "acct": (163, 89, 0), "quotactl": (179, 60, 0, 0, 0, 0),
    "fsopen": (430, 430, 0, 0), "unshare of users": (272, 97, 0x10000000),
    "clone of users": (56, 220, 0x10000011, 0, 0, 0, 0), "clone3": (435, 435, 0, 0),
    "socket to the host": (41, 198, 40, 1, 0), "socket to the host, disguised": (41, 198, 40 + 2**32, 1, 0),
    "unshare of files": (272, 97, 0x400), "getpid": (39, 172),
}
for name, (*numbers, first) in ((name, (*call[:2], call[2:])) for name, call in calls.items()):
    words = (ctypes.c_long(each) for each in (numbers[column], *first))
    before = os.getpid()
    made = libc.syscall(*words)
    if os.getpid() != before:
        os._exit(0)
    print(name, "made" if made >= 0 else errno.errorcode[ctypes.get_errno()], sep=": ", flush=True)
"""

SOCKET = "socket to the host"
LET_BY = {"nspawn": {"unshare of users", "clone of users", "clone3", SOCKET, f"{SOCKET}, disguised"}}
"""What an engine cannot be told to refuse: nspawn takes names of calls alone. docs/sandboxes.md says so."""

REFUSALS = {"EPERM", "ENOSYS", "EAFNOSUPPORT"}


def test_calls_that_no_build_needs_are_refused(ran: Run, engine: Engine) -> None:
    _, lines = ran(job("/usr/bin/python3", "-c", TRY))
    found = dict(line.split(": ") for line in lines)
    assert found["getpid"] == found["unshare of files"] == "made", found
    refused = {name for name, what in found.items() if what in REFUSALS}
    expected = found.keys() - {"getpid", "unshare of files"} - LET_BY.get(engine.name, set())
    assert expected - refused == set(), found


def test_every_name_in_the_table_stands_for_a_reason_and_an_error() -> None:
    for one in seccomp.refused():
        assert one.names
        assert getattr(errno, one.errno) > 0
    assert {"mount", "bpf", "io_uring_setup"} <= set(seccomp.names())
    assert not {"clone", "clone3", "socket"} & set(seccomp.names())


def test_podmans_own_list_is_kept_less_what_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "seccomp.json"
    allowed = {"names": ["read", "keyctl", "unshare"], "action": "SCMP_ACT_ALLOW"}
    gone = {"names": ["mount"], "action": "SCMP_ACT_ALLOW"}
    own.write_text(json.dumps({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [allowed, gone]}))
    monkeypatch.setattr(seccomp, "PROFILES", (tmp_path / "none", own))
    made = json.loads(seccomp.profile())
    assert made["defaultAction"] == "SCMP_ACT_ERRNO"
    assert made["syscalls"][0]["names"] == ["read"]
    [keyctl] = [rule for rule in made["syscalls"] if "keyctl" in rule["names"]]
    assert (keyctl["action"], keyctl["errnoRet"]) == ("SCMP_ACT_ERRNO", errno.ENOSYS)
    [unshare] = [rule for rule in made["syscalls"] if "unshare" in rule["names"]]
    assert unshare["action"] == "SCMP_ACT_ALLOW"
    assert unshare["args"] == [{"index": 0, "value": 0x10000000, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]
    assert not any("ioctl" in rule["names"] for rule in made["syscalls"])


def test_where_podman_has_no_list_what_is_refused_stands_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seccomp, "PROFILES", (tmp_path / "none",))
    made = json.loads(seccomp.profile())
    assert made["defaultAction"] == "SCMP_ACT_ALLOW"
    assert {rule["action"] for rule in made["syscalls"]} == {"SCMP_ACT_ERRNO"}
    assert len(made["syscalls"]) == len(seccomp.refused())


def test_without_libseccomp_bubblewrap_does_not_work_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pyseccomp", raising=False)
    find = ctypes.util.find_library
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None if name == "seccomp" else find(name))
    seccomp.program.cache_clear()
    with pytest.raises(SandboxError, match="libseccomp is not installed") as caught:
        seccomp.program()
    assert "libseccomp2" in caught.value.next_step
    found = probe(ENGINES["bubblewrap"])
    assert not found.ok and "libseccomp" in found.reason
    seccomp.program.cache_clear()
