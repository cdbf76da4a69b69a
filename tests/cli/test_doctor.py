"""`rocwright doctor` over trees of other machines, as it is typed."""

from __future__ import annotations

import json
import os
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.diagnosis.machine.machines import GIB, NVIDIA, POLARIS, STRIX_HALO, machine

from rocbase.errors import FetchError
from rocwright.cli import cli
from rocwright.execution.runs import UnderWay
from rocwright.home import Home
from rocwright.plan.resolve.model import Request
from rocwright.records.model import StepRun


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCWRIGHT_HOME", str(tmp_path / "home"))


def doctor(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["doctor", *map(str, arguments)])


def test_a_machine_with_nothing_wrong_ends_well(tmp_path: Path) -> None:
    ranges = dict.fromkeys(("etc/subuid", "etc/subgid"), "grace:100000:65536\n")
    done = doctor("--root", machine(tmp_path / "root", NVIDIA, kfd=False, more=ranges))
    assert done.exit_code == 0
    assert "no AMD GPU; others: 10de:2684 (nvidia)" in done.output


def test_an_error_is_told_with_what_mends_it_and_the_exit_code_says_so(
    tmp_path: Path,
) -> None:
    done = doctor("llama-hip", "--root", machine(tmp_path / "root", replace(POLARIS, version=0)))
    assert done.exit_code == 12
    text = done.output
    assert "error    gfx803 (1002:67df at 0000:01:00.0) is not in the compute driver's topology" in text
    assert "for   llama-hip" in text
    assert "fix   sudo dmesg" in text


def test_a_machine_on_which_everything_is_odd_at_once_is_told_whole(tmp_path: Path) -> None:
    node = "sys/class/kfd/kfd/topology/nodes/2/properties"
    odd = {
        node: "",
        "proc/self/mountinfo": "30 22 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\nodd\n"
        "31 22 0:35 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
        "proc/self/cgroup": "4:memory:/gone (deleted)\n0::/gone (deleted)\n5\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2 * GIB}\n",
    }
    root = machine(tmp_path / "root", STRIX_HALO, more=odd)
    (root / "proc/pressure/memory").unlink()
    firmware = root / "sys/bus/pci/devices" / STRIX_HALO.address / "fw_version/mes_fw_version"
    firmware.unlink()
    os.mkfifo(firmware)
    (root / "dev/kfd").chmod(0o600)
    done = doctor("llama-hip", "--root", root)
    assert done.exit_code == 12
    for told in (
        "in the topology, but without their properties: 2",
        "fw_version/mes_fw_version: no answer in",
        "the kernel does not report memory pressure",
        "a cgroup allows 2.00 GiB of 32.00 GiB",
        "/dev/kfd",
        "gfx1151  llama-hip",
    ):
        assert told in done.output, (told, done.output)


def test_json_has_the_machine_the_findings_and_what_it_can_do(tmp_path: Path) -> None:
    done = doctor("--json", "--root", machine(tmp_path / "root", STRIX_HALO))
    told = json.loads(done.output)
    assert set(told) == {"machine", "findings", "able"}
    assert told["machine"]["gpus"][0]["target"] == "gfx1151"


def test_what_the_machine_can_do_is_a_line_a_stack(tmp_path: Path) -> None:
    done = doctor("llama-hip", "--gpu", "8060S", "--root", machine(tmp_path / "root", STRIX_HALO))
    assert "gfx1151  llama-hip          native" in done.output


def test_a_bundle_is_written(tmp_path: Path) -> None:
    root = machine(tmp_path / "root", STRIX_HALO)
    done = doctor("--root", root, "--bundle", tmp_path / "report.tar.gz")
    assert "written" in done.stderr
    with tarfile.open(tmp_path / "report.tar.gz") as packed:
        assert packed.getnames() == ["doctor/report.json", "doctor/report.txt", "doctor/versions.json"]


def test_a_bundle_of_this_machine_has_the_last_failure_without_the_users_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_letters")
    error = FetchError("the weights are not there", cause="get /x?key hf_letters", next_step="look").as_dict()
    request = Request(stack="vllm", gpu=("gfx1151",), base="debian:sid")
    with UnderWay("build", request, Home.default(), pytest.fail) as under_way:
        under_way.note(StepRun(name="weights", key="k", outcome="failed", error=error))
        under_way.ended("failed")
    doctor("--no-engines", "--bundle", tmp_path / "report.tar.gz")
    with tarfile.open(tmp_path / "report.tar.gz") as packed:
        file = packed.extractfile("doctor/failure.json")
        assert file is not None
        [step] = json.load(file)["failed"]
    assert step["error"]["message"] == "the weights are not there"
    assert step["error"]["cause"] == "get /x?key [secret]"


def test_another_machine_is_not_mended_from_here(tmp_path: Path) -> None:
    done = doctor("--fix", "--root", machine(tmp_path / "root", NVIDIA))
    assert type(done.exception).__name__ == "InputError"


def test_an_unknown_stack_is_refused(tmp_path: Path) -> None:
    done = doctor("lama-hip", "--root", tmp_path)
    assert type(done.exception).__name__ == "InputError"
