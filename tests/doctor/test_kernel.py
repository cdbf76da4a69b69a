"""What a kernel was told and tells: settings, its log, DKMS, Secure Boot, vendors, groups of containers."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from rocwright.diagnosis.diagnose import FailurePlace, diagnose
from rocwright.diagnosis.machine.model import Container, Group, Right
from rocwright.diagnosis.machine.tree import Tree
from rocwright.doctor.doctor import examine
from rocwright.doctor.for_log import with_this_machine
from rocwright.doctor.this_machine import here
from tests.diagnosis.machine.machines import POLARIS, STRIX_HALO, machine
from tests.doctor.test_doctor import CATALOG, EVERY, FACTS, named, report

BOOT = "[    0.000000] Linux version 6.18.6 (build@host) (gcc 15.2.1) #1 SMP\n"
GCVM = "[  111.406246] amdgpu 0000:c5:00.0: amdgpu: GCVM_L2_PROTECTION_FAULT_STATUS:0x00A01A30\n"
MES = "[  127.563935] amdgpu 0000:c5:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE\n"
SDMA = "[  300.000000] [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring sdma0 timeout, signaled seq=1\n"
EFI = FACTS.secure_boot.file.lstrip("/")


def logged(root: Path, *lines: str, kernel: str = "6.18.6", **more: str) -> Path:
    return machine(root, STRIX_HALO, kernel=kernel, more={"var/log/dmesg": "".join(lines), **more})


@pytest.mark.parametrize(
    ("line", "issue"), [(GCVM, "gcvm-l2-fault"), (MES, "mes-remove-queue"), (SDMA, "sdma-hang")]
)
def test_what_hangs_a_card_is_found_from_both_sides(tmp_path: Path, line: str, issue: str) -> None:
    """In the log of a program or a kernel that somebody hands in, and in that of the machine itself."""
    [one] = named(logged(tmp_path, BOOT, line), "kernel-log")
    assert one.grade == "warning"
    assert f"({issue})" in one.what
    assert line.split("] ", 1)[1].strip()[-40:] in one.what
    assert diagnose([line.encode()], FailurePlace(targets=("gfx1151",))).known[0].issue.name == issue


def test_of_the_kernels_log_only_what_was_said_since_the_last_boot_counts(tmp_path: Path) -> None:
    root = logged(tmp_path, BOOT, GCVM, BOOT, "[    1.0] amdgpu: ring gfx_0.0.0 uses VM inv eng 0 on hub 0\n")
    assert named(root, "kernel-log") == []
    [one] = [one for one in report(root).findings if one.name == "kernel-log"]
    assert one.what == "no known issue in 2 lines of /var/log/dmesg"


def test_a_machine_without_an_amd_card_has_nothing_to_say_of_its_kernels_log(tmp_path: Path) -> None:
    root = machine(tmp_path, kfd=False, more={"var/log/dmesg": BOOT + GCVM})
    assert [one for one in report(root).findings if one.name == "kernel-log"] == []


def test_a_log_that_is_closed_to_a_user_is_empty_and_no_fault(tmp_path: Path) -> None:
    root = logged(tmp_path)
    [one] = named(root, "no-kernel-log")
    assert one.what == "/var/log/dmesg cannot be read as this user"


def test_firmware_is_blamed_where_it_is_there_and_cleared_where_it_is_not(tmp_path: Path) -> None:
    [bad] = named(logged(tmp_path / "bad", BOOT, GCVM), "kernel-log")
    assert "it is the firmware: gfx1151 has mes 0x83" in bad.why
    good = replace(STRIX_HALO, firmware={"mes_fw_version": "0x00000080"})
    root = machine(tmp_path / "good", good, kernel="6.18.6", more={"var/log/dmesg": BOOT + GCVM})
    [one] = named(root, "kernel-log")
    assert "it is not that firmware: gfx1151 has mes 0x80, which is not known to be bad" in one.why
    assert "it is hardly the kernel: 6.18.6" in one.why


# settings


def test_settings_of_the_driver_are_told_with_what_they_do(tmp_path: Path) -> None:
    words = "quiet amdgpu.cwsr_enable=0 amdgpu.mes=0 amdgpu.gttsize=9000 amdgpu.ppfeaturemask=0xf7 ttm.x=1"
    root = machine(tmp_path, STRIX_HALO, more={"proc/cmdline": words})
    told = {one.what: one.grade for one in named(root, "parameter")}
    assert told == {
        "amdgpu.cwsr_enable=0": "note",
        "amdgpu.mes=0": "warning",
        "amdgpu.gttsize=9000": "note",
    }
    [rest] = [one for one in report(root).findings if one.name == "parameter" and one.grade == "ok"]
    assert rest.what == "set of modules: amdgpu.ppfeaturemask=0xf7"


def test_the_command_line_decides_over_modprobes_files_and_names_may_have_dashes(tmp_path: Path) -> None:
    more = {
        "etc/modprobe.d/gpu.conf": "# options amdgpu runpm=9\noptions amdgpu mes=0 cwsr_enable=0\n",
        "etc/modprobe.d/gpu.conf.bak": "options amdgpu gttsize=5\n",
        "proc/cmdline": "amdgpu.cwsr-enable=1 xamdgpu.mes=1",
    }
    root = machine(tmp_path, STRIX_HALO, more=more)
    assert report(root).machine.driver.settings == {"amdgpu.mes": "0", "amdgpu.cwsr_enable": "1"}
    assert [one.what for one in named(root, "parameter")] == ["amdgpu.mes=0"]


# modules built apart


def test_a_module_that_dkms_did_not_build_is_told_with_its_first_error(tmp_path: Path) -> None:
    folder = "var/lib/dkms/amdgpu/6.12.12-1"
    more = {
        f"{folder}/6.8.0-1/x86_64/module/amdgpu.ko": "",
        f"{folder}/build/make.log": "CC x.o\n/var/lib/dkms/a.c:5:9: error: too few arguments to function\n",
        "var/lib/dkms/amdgpu/kernel-6.8.0-1-x86_64/x": "",
    }
    [one] = named(machine(tmp_path, POLARIS, kernel="6.11.0", more=more), "dkms-failed")
    assert one.what.startswith("dkms did not build amdgpu 6.12.12-1 for kernel 6.11.0: /var/lib/dkms/a.c:5:9")
    assert one.remedy == f"sudo less /{folder}/build/make.log"


def test_a_module_that_was_built_for_other_kernels_is_told(tmp_path: Path) -> None:
    more = {"var/lib/dkms/amdgpu/6.12/6.8.0-1/x86_64/module/amdgpu.ko": ""}
    [one] = named(machine(tmp_path / "other", POLARIS, kernel="6.11.0", more=more), "dkms-not-built")
    assert one.what == "dkms has built amdgpu 6.12 for 6.8.0-1 alone, and 6.11.0 runs"
    assert named(machine(tmp_path / "same", POLARIS, kernel="6.8.0-1", more=more), "dkms-not-built") == []


@pytest.mark.parametrize(
    ("byte", "loaded", "grade"), [(b"\1", False, "error"), (b"\1", True, "ok"), (b"\0", False, "")]
)
def test_secure_boot_matters_to_a_module_built_apart(
    tmp_path: Path, byte: bytes, loaded: bool, grade: str
) -> None:
    more = {"var/lib/dkms/amdgpu/6.12/6.8.0-1/x86_64/module/amdgpu.ko": ""}
    root = machine(tmp_path, POLARIS, kernel="6.8.0-1", more=more)
    (root / EFI).parent.mkdir(parents=True)
    (root / EFI).write_bytes(b"\x06\0\0\0" + byte)
    if not loaded:
        for path in sorted((root / "sys/module/amdgpu").rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
    found = [one.grade for one in report(root).findings if one.name == "secure-boot"]
    assert found == ([grade] if grade else [])


def test_secure_boot_is_no_matter_to_the_kernels_own_driver(tmp_path: Path) -> None:
    root = machine(tmp_path, POLARIS)
    (root / EFI).parent.mkdir(parents=True)
    (root / EFI).write_bytes(b"\x06\0\0\0\1")
    found = report(root)
    assert found.machine.secure_boot is True
    assert [one for one in found.findings if one.name == "secure-boot"] == []


# kernels of vendors


@pytest.mark.parametrize(
    ("kernel", "module", "name", "grade"),
    [
        ("6.14.0-503.el10.x86_64", "", "kernel-vendor", "warning"),
        ("6.14.0-1018-oem", "", "kernel-vendor", "warning"),
        ("5.14.0-503.el9.x86_64", "", "kernel-vendor", "note"),
        ("6.14.2", "6.16.6", "kernel-vendor", "warning"),
        ("6.14.2", "", "kernel-bad", "error"),
        ("6.8.0-503.el10.x86_64", "", "kernel", "ok"),
    ],
)
def test_the_number_of_a_kernel_tells_little_where_its_driver_is_newer(
    tmp_path: Path, kernel: str, module: str, name: str, grade: str
) -> None:
    more = {"sys/module/amdgpu/version": module} if module else {}
    root = machine(tmp_path, POLARIS, kernel=kernel, more=more)
    found = [one for one in report(root).findings if one.name.startswith("kernel") and "log" not in one.name]
    assert [(one.name, one.grade) for one in found] == [(name, grade)]


# what leaks, and containers


@pytest.mark.parametrize(
    "variable",
    [
        "CUDA_VISIBLE_DEVICES",
        "PYTORCH_ROCM_ARCH",
        "CFLAGS",
        "CXXFLAGS",
        "CPPFLAGS",
        "LDFLAGS",
        "CONDA_PREFIX",
    ],
)
def test_each_of_these_variables_is_told(tmp_path: Path, variable: str) -> None:
    root = machine(tmp_path, POLARIS, more={"proc/self/environ": f"HOME=/root\0{variable}=x\0"})
    [one] = named(root, "variable")
    assert (one.grade, one.what) == ("note", f"{variable}=x")
    assert one.remedy


def closed(root: Path, marker: dict[str, str], group: Group) -> list[tuple[str, str, str]]:
    root = machine(root, POLARIS, more=marker)
    from rocwright.home import Home

    with Tree(root) as tree:
        found = here(tree, CATALOG, FACTS, Home(root / "home"))
    right = Right(path="/dev/kfd", there=True, uid=65534, group=group, mode=0o660, may=False)
    found = found.model_copy(update={"rights": (right,)})
    told = examine(found, CATALOG, FACTS, EVERY).findings
    return [(one.name, one.what, one.remedy) for one in told if "group" in one.name or one.name == "rights"]


def test_groups_that_a_rootless_container_does_not_map_are_to_be_kept(tmp_path: Path) -> None:
    marker = {"run/.containerenv": 'engine="podman-5.4.0"\nrootless=1\n'}
    rights, groups = closed(tmp_path, marker, Group(gid=65534, name="nogroup"))
    assert (rights[0], rights[2]) == ("rights", "")
    assert groups[1] == "/dev/kfd: this container maps no group to theirs (podman, rootless)"
    assert "--group-add keep-groups" in groups[2]


def test_outside_of_containers_and_with_other_groups_it_is_as_ever(tmp_path: Path) -> None:
    [rights] = closed(tmp_path / "host", {}, Group(gid=992, name="render"))
    assert rights[2] == "sudo usermod -aG render grace"
    marker = {".dockerenv": ""}
    names = [one[0] for one in closed(tmp_path / "docker", marker, Group(gid=993))]
    assert names == ["nameless-group", "rights"] or names == ["rights", "nameless-group"]


def test_a_container_is_known_by_its_mark(tmp_path: Path) -> None:
    assert report(machine(tmp_path / "a", POLARIS)).machine.container is None
    root = machine(tmp_path / "b", POLARIS, more={"run/.containerenv": ""})
    assert report(root).machine.container == Container(engine="podman")


# reading


def test_the_end_of_a_long_log_is_read_by_whole_lines() -> None:
    from rocwright.diagnosis.machine import reading

    with tempfile.NamedTemporaryFile() as file:
        file.write(b"x" * 100 + b"\n" + b"line of a log\n" * 200_000)
        file.flush()
        found = reading.log(file.name)
    assert reading.LIMIT - 14 < len(found) <= reading.LIMIT
    assert set(found.splitlines()) == {b"line of a log"}


def test_a_record_of_the_kernels_log_is_a_line_as_dmesg_shows_it() -> None:
    from rocwright.diagnosis.machine.reading import kernel_line

    record = b"3,1234,111406246,-;amdgpu 0000:c5:00.0: fault; status\n SUBSYSTEM=pci\n"
    assert kernel_line(record) == b"[  111.406246] amdgpu 0000:c5:00.0: fault; status"
    assert [kernel_line(one) for one in (b"", b"text", b"1,2;x", b"1,2,x,-;y")] == [None] * 4


def test_a_diagnosis_reads_this_machine_only_where_kernel_or_firmware_are_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = machine(tmp_path, STRIX_HALO, kernel="6.18.6", more={"proc/cmdline": "amdgpu.cwsr_enable=0"})
    looked: list[int] = []

    def tree() -> Tree:
        looked.append(1)
        return Tree(root)

    monkeypatch.setattr("rocwright.diagnosis.machine.tree.Tree", tree)
    calm = diagnose([b"a.c:1:10: fatal error: numa.h: No such file or directory\n"])
    assert with_this_machine(calm) == calm
    assert looked == []
    found = with_this_machine(diagnose([GCVM.encode()]))
    assert found.known[0].here[0].startswith("it is the firmware: gfx1151 has mes 0x83")
    assert found.known[0].here[-1] == "amdgpu.cwsr_enable=0 is set already, and has not helped"
    said: list[str] = []
    other = diagnose([b"Linux version 6.11.0 (x)\n", GCVM.encode()])
    assert with_this_machine(other, ("gfx1151",), said.append).known[0].here == (
        "it may be the kernel: 6.11.0, and gfx1151 works with >=6.18.4",
    )
    assert said == ["this machine says nothing of it: the log is of kernel 6.11.0, and 6.18.6 runs here"]
    assert with_this_machine(diagnose([GCVM.encode()]), elsewhere=True).known[0].here == ()


def test_a_failure_says_in_its_cause_what_the_machine_says(tmp_path: Path) -> None:
    from rocbase.errors import CheckError
    from rocwright.diagnosis.explain import add_known
    from rocwright.diagnosis.here import Here, with_machine

    here = Here(firmware={"gfx1151": {"mes": 0x80}})
    error = CheckError("x", cause="y", next_step="z")
    add_known(error, with_machine(diagnose([GCVM.encode()]), here, FACTS, CATALOG.targets))
    assert error.cause.endswith(
        "Here it is not that firmware: gfx1151 has mes 0x80, which is not known to be bad."
    )
