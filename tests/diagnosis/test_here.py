"""What a machine says for or against causes that blame its kernel or its firmware."""

from __future__ import annotations

import pytest

from rocwright.catalog.load import builtin_catalog
from rocwright.diagnosis.diagnose import Diagnosis, FailurePlace, diagnose
from rocwright.diagnosis.facts import host_facts
from rocwright.diagnosis.here import Here, not_of, of_log, suspects, with_machine

TARGETS, FACTS = builtin_catalog().targets, host_facts()
GCVM = "amdgpu 0000:c5:00.0: amdgpu: GCVM_L2_PROTECTION_FAULT_STATUS:0x00A01A30\n"
BAD = Here(kernel="6.18.6", firmware={"gfx1151": {"mes": 0x83}})
GOOD = Here(kernel="6.18.6", firmware={"gfx1151": {"mes": 0x80}})


def told(text: str, here: Here, *cards: str) -> tuple[str, ...]:
    found = diagnose([text.encode()], FailurePlace(targets=cards))
    return with_machine(found, here, FACTS, TARGETS, cards).known[0].here


def test_firmware_that_is_known_to_be_bad_is_named_as_the_cause() -> None:
    first = told(GCVM, BAD)[0]
    assert first.startswith("it is the firmware: gfx1151 has mes 0x83; MES 0x83 (linux-firmware 20251125)")


def test_firmware_that_is_good_is_not_blamed() -> None:
    assert told(GCVM, GOOD) == (
        "it is not that firmware: gfx1151 has mes 0x80, which is not known to be bad",
        "it is hardly the kernel: 6.18.6, and gfx1151 works with >=6.18.4",
    )


def test_of_firmware_that_cannot_be_read_nothing_is_said() -> None:
    assert told(GCVM, Here(kernel="6.11.0", firmware={"gfx1151": {}})) == (
        "it may be the kernel: 6.11.0, and gfx1151 works with >=6.18.4",
    )


@pytest.mark.parametrize(
    ("here", "words"),
    [
        (Here(kernel="6.13.2"), "it may be the kernel: 6.13.2 fails with gfx803"),
        (Here(kernel="6.13.2-oem"), "it may be the kernel: 6.13.2-oem fails with gfx803 (of Ubuntu"),
        (Here(kernel="5.14.0-503.el9"), "the kernel's number tells little (5.14.0-503.el9, of Red Hat"),
        (Here(kernel="5.14.0", driver="6.12.12"), "the kernel's number tells little (5.14.0, the driver"),
        (Here(kernel="6.8.1"), "it is hardly the kernel: 6.8.1, and gfx803 works with 5.19, 6.2"),
    ],
)
def test_a_kernel_is_ruled_in_or_out_by_what_is_known_of_the_card(here: Here, words: str) -> None:
    line = "[  1.0] [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring sdma0 timeout, signaled seq=121570\n"
    [one] = told(line, here, "gfx803")
    assert one.startswith(words)


def test_a_way_around_that_is_set_already_has_not_helped() -> None:
    here = Here(kernel="6.18.6", firmware={"gfx1151": {}}, settings={"amdgpu.cwsr_enable": "0"})
    assert "amdgpu.cwsr_enable=0 is set already, and has not helped" in told(GCVM, here)
    assert not any("is set already" in one for one in told(GCVM, GOOD))


def test_what_no_driver_is_blamed_for_is_left_alone() -> None:
    found = diagnose([b"a.c:1:10: fatal error: numa.h: No such file or directory\n"])
    assert not suspects(found, FACTS)
    assert with_machine(found, BAD, FACTS, TARGETS) == found
    assert suspects(diagnose([GCVM.encode()]), FACTS)


@pytest.mark.parametrize(
    "line",
    [
        "[    0.000000] Linux version 6.13.2-arch1 (linux@archlinux) (gcc 14.2.1) #1 SMP\n",
        "Linux host-1 6.13.2-arch1 #1 SMP PREEMPT_DYNAMIC x86_64 GNU/Linux\n",
        "Kernel: 6.13.2-arch1\n",
        "kernel version:   6.13.2-arch1\n",
    ],
)
def test_a_log_names_its_kernel(line: str) -> None:
    assert diagnose([line.encode()]).kernel == "6.13.2-arch1"


@pytest.mark.parametrize("line", ["kernel: amdgpu 0000:c5:00.0: x\n", "Kernel: none\n", "a Linux 6.8.0 #1\n"])
def test_what_is_no_kernels_release_is_none(line: str) -> None:
    assert diagnose([line.encode()]).kernel == ""


def test_a_log_of_another_machine_is_known_by_its_kernel_and_its_cards() -> None:
    log = Diagnosis(first=None, known=(), ruled_out=(), lines=0, size=0)
    assert not_of(log, GOOD) == ""
    assert not_of(log.model_copy(update={"kernel": "6.18.6", "cards": ("gfx1151",)}), GOOD) == ""
    assert not_of(log.model_copy(update={"kernel": "6.11"}), GOOD).startswith(
        "the log is of kernel 6.11, and"
    )
    assert "gfx803, which is not in this" in not_of(log.model_copy(update={"cards": ("gfx803",)}), GOOD)


def test_a_log_of_another_machine_speaks_for_itself() -> None:
    text = f"Linux version 6.13.2 (x)\n   Name:                    gfx803\n{GCVM.replace('GCVM_L2', 'XX')}"
    text += "ring sdma0 timeout\n"
    found = diagnose([text.encode()])
    [known] = with_machine(found, of_log(found), FACTS, TARGETS).known
    assert known.here == ("it may be the kernel: 6.13.2 fails with gfx803",)
