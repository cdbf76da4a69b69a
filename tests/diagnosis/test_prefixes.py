"""The first error is found whatever stands before the lines of a log, and calm lines are none."""

from __future__ import annotations

import io
import re

import pytest

from rocwright.catalog.issue import anywhere, the_issues
from rocwright.diagnosis.diagnose import Diagnosis, diagnose
from rocwright.diagnosis.read_log import pieces

ERRORS = {one.name: one.examples[0] for one in the_issues()[1].error_line if one.role == "cause"}
BELOW = {one.name for one in the_issues()[1].error_line if one.below}

BEFORE = {
    "ISO": "2026-01-02T03:04:05.678Z ",
    "ISO with a space": "2026-01-02 03:04:05,678 ",
    "ISO in brackets": "[2026-01-02T03:04:05Z] ",
    "clock": "03:04:05 ",
    "clock in brackets": "[03:04:05] ",
    "BuildKit": "#12 34.56 ",
    "BuildKit with a time": "#12 34.56 2026-01-02T03:04:05Z ",
    "name": "[builder] ",
    "compose": "web-1  | ",
    "journald": "Jan 02 03:04:05 host rocwright[123]: ",
    "journald, ISO": "2026-01-02T03:04:05+0000 host podman[12]: ",
    "vLLM": "(EngineCore pid=1) ",
    "vLLM with its level": "(EngineCore_0 pid=12) ERROR 01-02 03:04:05 [core.py:700] ",
    "level": "2026-01-02 03:04:05 ERROR ",
    "the kernel": "[   12.345678] ",
    "klog": "F0102 03:04:05.678901       1 main.go:1] ",
    "seconds": "  12.3s ",
    "GitHub": "##[error]",
    "quoted": "> ",
    "nix": "       > ",
    "dmesg -T": "[Thu Sep 10 14:36:16 2026] ",
    "Go's log": "2024/11/11 19:42:44 ",
    "gh": "build\tRun make\t2026-01-02T03:04:05.1234567Z ",
    "BuildKit, told again": "16.20  ",
    "journald, the kernel": "Apr 27 16:58:22 host kernel: ",
    "llama-server": "srv    ",
    "pytest": "E   ",
    "absl": "E0000 00:00:1733.123    12 rocm_dnn.cc:485] ",
    "several": "web-1  | 2026-01-02T03:04:05Z [builder] ",
}

PROGRAMS = {
    "ComfyUI's log": "2026-07-11T14:12:14.959498 - ",
    "ComfyUI's log, twice": "2026-07-11T14:12:14.959498 - 2026-07-11T14:12:14.959498 - ",
    "loguru": "2026-01-02 03:04:05.678 | ERROR    | app.main:run:12 - ",
    "FastChat in compose": "web-1  | 2026-08-27 12:54:55 | ERROR | stderr | ",
    "vLLM before 0.8": "ERROR 03-23 22:46:30 engine.py:366] ",
    "Ray": "(RayWorkerWrapper pid=1234, ip=10.0.0.1) ",
    "Ray, a worker of vLLM": "(RayWorkerWrapper pid=1234) ERROR 03-23 22:46:30 worker_base.py:464] ",
    "dmesg -x": "kern  :err   : [   12.345678] ",
    "dmesg -T in French": "[mar. f\u00e9vr.  4 12:00:00 2025] ",
    "GitLab": "2026-05-21T12:00:00.000000Z 01O ",
    "Kubernetes": "2026-01-01T12:00:00.000000000Z stderr F ",
    "nix, by name": "rocblas> ",
    "a line at the left": " \u2502 \u2502 ",
    "a tab": "\t",
    "tqdm": "  0%|          | 0/20 [00:00<?, ?it/s]",
    "tqdm with a name": "Loading:  50%|\u2588\u2588\u2588  | 1/2 [00:01<00:01,  1.0s/it]",
    "SGLang": "[2026-05-15 05:24:42 DP0 TP6] ",
    "srun --label": "12: ",
    "OBS": "[  123s] ",
    "mpirun --tag-output": "[1,0]<stderr>:",
    "torchrun": "[default0]:",
    "journald, a small month": "jun 06 13:15:48 host ollama[1689]: ",
    "journald in Russian": "\u043c\u0430\u0440 06 13:15:48 host kernel: ",
    "a clock of twelve hours": "[7:35:56 PM] ",
    "DeepSpeed": "[2026-01-01 12:00:00,123] [ERROR] [engine.py:12:f] ",
    "Python's logging": "2026-01-01 12:00:00,123 - vllm.worker - ERROR - ",
    "Python's logging as it begins": "ERROR:root:",
    "uvicorn": "ERROR:    ",
    "zap": "2026-01-01T12:00:00.000Z\tERROR\t",
    "detectron2": "[06/09 14:06:32 d2.engine.hooks]: ",
    "a process' number": "[12345] ",
    "PowerShell": "python.exe : ",
    "uv": "      [stderr] ",
    "stderr": "stderr: ",
}

CALM = (
    "no AMD GPU found here: building for gfx1151",
    "lock: skipped: git https://example.org/x.git v1: fatal: Could not resolve host: example.org",
    "2026-01-02 03:04:05 DEBUG error: tried again",
    "[DEBUG] error: x",
    "web-1  | INFO error: none so far",
    "WARNING: a.py error: y",
    "checking for error: no",
    "-- error: not found (optional)",
    "a.c:3: warning: fatal error: in a comment",
    "PASS error: handled",
    "done: 0 errors: fine",
    "ERROR: ld.so: object 'x.so' from LD_PRELOAD cannot be preloaded (no such file): ignored.",
    "ERROR: flash-attn is not there, skipping",
    "error: no model, falling back to the processor",
    "fatal: No names found, cannot describe anything.",
    "debconf: unable to initialize frontend: Dialog",
    "invoke-rc.d: could not determine current runlevel",
    "invoke-rc.d: policy-rc.d denied execution of start.",
    "#9 12.3 dpkg-preconfigure: unable to re-open stdin: No such file or directory",
    "E: Can not write log (Is /dev/pts mounted?) - posix_openpt (2: No such file or directory)",
    "W: Download is performed unsandboxed as root as file '/root/x.deb': (13: Permission denied)",
    "locale: Cannot set LC_ALL to default locale: No such file or directory",
    "mesg: ttyname failed: Inappropriate ioctl for device",
    "bash: cannot set terminal process group (-1): Inappropriate ioctl for device",
    "chfn: PAM: System error",
    "find: '/proc/1/map_files': Permission denied",
    'Failed to open connection to "system" message bus: Failed to connect to socket '
    "/run/dbus/system_bus_socket: No such file or directory",
    "Failed to connect to bus: No such file or directory",
    "Failed to get D-Bus connection: Operation not permitted",
    "Failed to retrieve unit state: No such file or directory",
    ":: hip-rocclr and hip-hcc are in conflict (hip). Remove hip-hcc? [y/N] y",
    "error: XDG_RUNTIME_DIR is invalid or not set in the environment.",
    "[warning] cannot load x",
    "[debug] error: x",
    "[W1105 12:00:00 socket.cpp:601] [c10d] The client socket has failed to connect to [x]:1 (errno: 97 - "
    "Address family not supported by protocol).",
    "Failed to load xformers. Using sdpa.",
    "Failed to import flash_attn, fallback to math",
    "Failed to get GPU name, assuming gfx1100",
    "Unable to find image 'rocm/pytorch:latest' locally",
    "Unable to initialize backend 'tpu': UNIMPLEMENTED: it is not there",
    "cfg80211: failed to load regulatory.db",
    "gnome-shell[1234]: Failed to make thread 'KMS thread' realtime scheduled",
    "[drm] Failed to add display topology, DTM TA is not initialized.",
    "host:1:1 [0] NCCL WARN NET/IB : No device found.",
    "Error handling: enabled",
    "error rate: 0.0",
    '"error": null',
    "missing keys: []",
    "Segmentation fault handler installed",
    "Error log written to /tmp/x",
    "test_foo FAILED (expected)",
    "  --exit-on-error  stop at the first error",
    "ALSA lib confmisc.c:855:(parse_card) cannot find card '0'",
    "Couldn't find '/root/.ollama/id_ed25519'. Generating new private key.",
    "lora key not loaded: lora_unet_x",
    "conftest.c:10:10: fatal error: foo.h: No such file or directory",
)


def of(text: str) -> Diagnosis:
    return diagnose(pieces(io.BytesIO(text.encode())))


def test_an_error_is_found_behind_what_stands_before_each_line() -> None:
    missed = []
    for before, stamp in BEFORE.items():
        for tool, line in ERRORS.items():
            found = of(f"{stamp}fine so far\n{stamp}{line}\n{stamp}done\n").first
            # where the error is told on the line below, that line is shown
            right = found and ((found.line, found.text) == (3, "done") if tool in BELOW else found.line == 2)
            if not right:
                missed.append((before, tool, found))
    assert missed == []


def test_no_pattern_is_bound_to_the_begin_of_a_whole_line_while_a_log_is_searched() -> None:
    issues, lines = the_issues()
    for one in (*issues.values(), *lines.error_line):
        for pattern in one.patterns:
            assert not re.search(r"(?<![\[\\])\^", anywhere(pattern)), (one.name, pattern)


def test_a_programs_own_beginning_of_its_lines_is_taken_off() -> None:
    error = "NameError: name 'x' is not defined"
    missed = []
    for before, stamp in PROGRAMS.items():
        found = of(f"fine so far\n{stamp}{error}\n")
        first = found.first and (found.first.line, found.first.text)
        if first != (2, error) or [one.issue.name for one in found.known] != ["python-name-missing"]:
            missed.append((before, found))
    assert missed == []


@pytest.mark.parametrize("before", ["  ", "\t", "2026-07-11T14:12:14.959498 -     "])
def test_an_error_that_is_set_in_is_found_and_shown_as_it_stands(before: str) -> None:
    found = of(f"{before}make: /usr/bin/hipcc: No such file or directory\n{before}  ^~~~\n").first
    assert found is not None
    assert found.lines[1].endswith("  ^~~~")


def test_a_line_that_says_that_it_is_none_is_no_error() -> None:
    alarms, missed = [], []
    for line in CALM:
        if of(f"{line}\n").first is not None:
            alarms.append(line)
        found = of(f"{line}\na.c:1:1: error: real\n").first
        if found is None or found.line != 2:
            missed.append(line)
    assert (alarms, missed) == ([], [])


def test_the_end_of_a_cards_address_is_no_count_of_failures() -> None:
    found = of("[    3.6] amdgpu: probe of 0000:03:00.0 failed with error -12\n")
    assert found.first is not None
    assert [one.issue.name for one in found.known] == ["amdgpu-init"]


def test_a_known_issue_is_found_in_a_calm_line_too() -> None:
    found = of("WARNING: hipErrorNoBinaryForGpu: Unable to find code object for all current devices!\n")
    assert [one.issue.name for one in found.known] == ["no-binary-for-gpu"]


def test_an_error_that_advises_to_log_more_is_an_error_still() -> None:
    found = of(
        "RuntimeError: NCCL Error 1: unhandled cuda error (run with NCCL_DEBUG=INFO for details)\n"
    ).first
    assert found is not None
    assert found.text.startswith("RuntimeError: NCCL Error 1")


def test_a_systemctl_that_finds_no_systemd_is_an_error_although_its_bus_is_none() -> None:
    found = of(
        "System has not been booted with systemd as init system (PID 1). Can't operate.\n"
        "Failed to connect to bus: Host is down\n"
    )
    assert found.cause is not None
    assert found.cause.issue.name == "no-systemd"


def test_a_file_that_make_cannot_make_is_no_mere_end_of_a_build() -> None:
    found = of(
        "make[2]: *** No rule to make target 'a.c', needed by 'a.o'.  Stop.\n"
        "make[1]: *** [Makefile:10: all] Error 2\n"
    )
    assert found.first is not None
    assert found.first.line == 1
    assert found.cause is not None
    assert found.cause.slots == {"file": "a.c"}


def test_nccl_tells_errors_as_warnings() -> None:
    found = of(
        'h:1:2 [0] /b/init.cc:127 NCCL WARN Missing "iommu=pt" from kernel command line\n'
        "h:1:3 [1] /b/p2p.cc:220 NCCL WARN Cuda failure 'invalid argument'\n"
    )
    assert found.first is not None
    assert found.first.line == 2
    assert found.cause is not None
    assert found.cause.issue.name == "rccl-refused"
