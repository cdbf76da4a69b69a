"""The parts of the smoke suites that need no torch: devices, tolerances, what a fault means, what is told."""

from __future__ import annotations

import json
import math
import mmap
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.verify import smoke

from rocwheel.wheels.emulators import emulators
from rocwheel_samples.tables import each
from rocwright.records.model import Finding
from rocwright.verify import suites
from rocwright.verify.lines import MARK, read_line, table_rows

about = smoke.module("about")
devices = smoke.module("devices")
drift = smoke.module("drift")
explain = smoke.module("explain")
report = smoke.module("report")
runner = smoke.module("runner")
tolerance = smoke.module("tolerance")


def gpu(index: int, name: str = "RX 580", target: str = "gfx803", memory: int = 8 << 30) -> dict[str, Any]:
    return {"index": index, "name": name, "target": target, "memory": memory}


def outcome(**words: Any) -> Any:
    return runner.Outcome(
        **{"group": "products", "name": "mm fp32", "state": "ok", "detail": "8 shapes"} | words
    )


# which devices


def test_equal_gpus_are_tried_once_and_say_whom_they_stand_for() -> None:
    seen = {"devices": [gpu(0), gpu(1, "780M", "gfx1103"), gpu(2), gpu(3, memory=4 << 30)]}
    found = devices.chosen(seen, "auto")
    assert [one.device for one in found] == ["cuda:0", "cuda:1", "cuda:3"]
    assert found[0].stands_for == ("cuda:2",)
    assert found[1].title == "780M (gfx1103)"


def test_all_gpus_are_tried_when_asked_for() -> None:
    seen = {"devices": [gpu(0), gpu(1)]}
    assert [one.device for one in devices.chosen(seen, "cuda", every=True)] == ["cuda:0", "cuda:1"]
    assert [one.device for one in devices.chosen(seen, "cuda:1")] == ["cuda:1"]


@pytest.mark.parametrize("wanted", ["auto", "cpu"])
def test_without_a_gpu_the_cpu_is_tried(wanted: str) -> None:
    assert [one.device for one in devices.chosen({"devices": []}, wanted)] == ["cpu"]


@each("wanted", ["cuda", "cuda:1", "tpu"])
def test_a_device_that_is_not_there_is_never_replaced_by_another(wanted: str) -> None:
    seen = {
        "devices": [gpu(0)] if wanted == "cuda:1" else [],
        "why_none": "this torch was built for the CPU alone",
    }
    with pytest.raises(devices.NoDeviceError) as caught:
        devices.chosen(seen, wanted)
    assert (
        "RX 580" in str(caught.value)
        or "CPU alone" in str(caught.value)
        or "is no device" in str(caught.value)
    )


@each(
    ("built", "target", "runs"),
    [
        (["gfx803", "gfx900"], "gfx803", True),
        (["gfx90a:xnack-"], "gfx90a:sramecc+:xnack-", True),
        (["gfx1100", "gfx1101"], "gfx1103", False),
        ([], "gfx1151", False),
        (["sm_80", "sm_90"], "sm_90", True),
        (["sm_80"], "sm_86", True),
        (["sm_80"], "sm_90", False),
        (["sm_80", "compute_80"], "sm_90", True),
        (["sm_120"], "sm_90", False),
        (["sm_90a"], "sm_90", True),
    ],
)
def test_what_torch_was_built_for_is_held_against_the_card(built: list[str], target: str, runs: bool) -> None:
    assert devices.serves(built, target) is runs


# how far off


@each("family", list(tolerance.FAMILIES))
def test_narrower_types_may_be_further_off(family: str) -> None:
    allowed = [tolerance.allowed(family, one) for one in ("fp64", "fp32", "fp16", "bf16")]
    assert allowed == sorted(allowed)
    assert family == "exact" or allowed[0] > 0


@each("family", [one for one in tolerance.FAMILIES if one not in ("exact", "factorization", "filter")])
def test_a_known_drift_of_a_card_is_far_beyond_what_is_allowed(family: str) -> None:
    """0.15 in fp32 products, as seen on gfx803; what is allowed is less than a thousandth of it."""
    assert tolerance.allowed(family, "fp32") < 0.15 / 1000


# what a fault means


@each(
    "text",
    [
        "hipErrorNoBinaryForGpu: Unable to find code object for all current devices!",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "RuntimeError: HIP error: invalid device function",
        "rocBLAS error: Cannot read TensileLibrary.dat: Illegal seek for GPU arch : gfx1103",
        "HSA_STATUS_ERROR_INVALID_ISA: The ISA is invalid.",
    ],
)
def test_missing_kernels_are_named_with_a_next_step(text: str) -> None:
    known = explain.explain(text)
    assert known.cause.startswith("missing kernels")
    assert known.next_step
    assert not explain.sticky(text)


def test_a_lost_device_asks_for_a_new_process() -> None:
    assert explain.sticky("torch.AcceleratorError: HIP error: an illegal memory access was encountered")
    assert not explain.sticky("TypeError: sort() received an invalid combination of arguments")


@each(
    ("text", "word"),
    [
        (
            "ImportError: libMIOpen.so.1: cannot open shared object file: No such file or directory",
            "not installed",
        ),
        ("ImportError: libtorch_hip.so: undefined symbol: _ZN2at4cuda4blas4gemmIfEEv", "another version"),
        ("RuntimeError: operator torchvision::nms does not exist", "built against another"),
        ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB", "too little free memory"),
    ],
)
def test_other_known_faults_have_their_cause(text: str, word: str) -> None:
    assert word in explain.explain(text).cause


def test_a_type_without_an_operation_is_no_fault() -> None:
    assert explain.no_kernel_for_type("RuntimeError: \"addmm_impl_cpu_\" not implemented for 'Half'")
    assert not explain.no_kernel_for_type("RuntimeError: HIP error: invalid device function")


@each(
    ("status", "told"),
    [
        (-signal.SIGSEGV, "ended by SIGSEGV"),
        (128 + signal.SIGABRT, "ended by SIGABRT"),
        (1, "ended with status 1"),
    ],
)
def test_the_end_of_a_process_is_told_by_its_signal(status: int, told: str) -> None:
    assert explain.ended(status) == told


# what is told


@given(st.text(max_size=80), st.one_of(st.none(), st.floats()), st.sampled_from(["ok", "wrong", "absent"]))
def test_every_outcome_can_be_read_back(detail: str, error: float | None, state: str) -> None:
    line = report.mark("torch", "RX 580 (gfx803)", outcome(detail=detail, error=error, state=state))
    told = read_line(line)
    assert told is not None
    assert told.ok == (state != "wrong")
    assert told.absent == (state == "absent")
    assert (told.name, told.device) == ("torch: products/mm fp32", "RX 580 (gfx803)")
    json.loads(line.removeprefix(MARK), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


def test_a_wrong_result_is_told_with_cause_and_next_step() -> None:
    wrong = outcome(
        state="wrong", detail="first at [3, 4]", error=math.inf, cause="rounding", next_step="look"
    )
    told = report.sentence(wrong)
    assert told == "wrong: first at [3, 4]; cause: rounding; next: look"
    table = "\n".join(report.table([("torch", "cpu", outcome()), ("torch", "cpu", wrong)]))
    assert "1 ok, 1 wrong" in table
    assert "WRONG   mm fp32: first at [3, 4]" in table


def test_the_worst_error_of_a_group_is_told_as_a_share_of_what_is_allowed() -> None:
    found = [outcome(error=1e-7, tolerance=1e-6), outcome(name="bmm fp16", error=2e-3, tolerance=4e-3)]
    assert "worst bmm fp16: 0.002 of 0.004 allowed (50%)" in report.summary(found)


def test_findings_that_went_well_are_one_row_a_group_and_others_stand_alone() -> None:
    def finding(name: str, *, ok: bool = True, absent: bool = False) -> Finding:
        return Finding(component="torch", check="suite", name=name, ok=ok, absent=absent, device="cpu")

    rows = table_rows(
        [finding(f"products/mm {n}") for n in range(6)]
        + [finding("products/bmm", ok=False), finding("attention/flash", absent=True), finding("loads")]
    )
    assert [(row[1], row[2]) for row in rows] == [
        ("products", "6 ok"),
        ("products/bmm", "FAILED"),
        ("attention/flash", "absent"),
        ("loads", "ok"),
    ]


def test_the_command_offers_the_suites_and_sizes_that_there_are() -> None:
    assert tuple(smoke.module("cases").SUITES) == suites.SUITES
    assert suites.SIZES == smoke.module("model").SIZES


def test_the_parent_never_imports_torch() -> None:
    smoke.module("main")
    assert "torch" not in sys.modules


def test_in_an_emulator_no_device_is_a_gpu_whatever_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tuple(one.mapped for one in emulators()) == about.EMULATORS
    assert about.emulator_here() == ""
    library = tmp_path / f"{about.EMULATORS[0]}.so"
    library.write_bytes(bytes(4096))
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ):
        assert about.emulator_here() == str(library)
        seen = about.describe(one_gpu("AMD Radeon 780M Graphics", "gfx1103"))
    assert devices.chosen(seen, "auto")[0].title == "emulated AMD Radeon 780M Graphics (gfx1103)"


def one_gpu(name: str, target: str) -> Any:
    """What `describe` asks of a torch that has one GPU."""
    told = SimpleNamespace(name=name, gcnArchName=target, total_memory=1 << 30, multi_processor_count=6)
    cuda = SimpleNamespace(
        init=lambda: None,
        get_arch_list=lambda: [target],
        device_count=lambda: 1,
        get_device_properties=lambda index: told,
    )
    built = SimpleNamespace(cuda=SimpleNamespace(is_built=lambda: True))
    version = SimpleNamespace(hip="6.4", cuda=None)
    return SimpleNamespace(
        __version__="2.6.0", version=version, backends=built, cuda=cuda, get_num_threads=lambda: 1
    )


def registered(*names: str, hip: str | None = "6.4") -> Any:
    """What the suite asks of a torch with these operators (NAME for both, NAME@cpu for the CPU alone)."""

    def has(name: str, key: str) -> bool:
        return key == "CPU" or name in names

    known = [one.removesuffix("@cpu") for one in names]
    within = SimpleNamespace(
        _dispatch_has_kernel_for_dispatch_key=has, _dispatch_get_all_op_names=lambda: [*known, "aten::add"]
    )
    return SimpleNamespace(version=SimpleNamespace(hip=hip, cuda=None), _C=within)


def on_gpus(torch: Any, monkeypatch: pytest.MonkeyPatch, suite: str = "vision") -> Any:
    monkeypatch.setitem(sys.modules, f"torch{suite}", SimpleNamespace())
    return smoke.module(f"cases.{suite}").on_gpus(SimpleNamespace(torch=torch))


def test_operators_with_code_for_gpus_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told = on_gpus(registered("torchvision::nms", "torchvision::roi_align"), monkeypatch)
    assert told.detail == "2 operators are registered for GPUs"


@pytest.mark.parametrize(
    ("names", "lacking"), [(("torchvision::nms@cpu", "torchvision::roi_align"), "nms"), ((), "any operator")]
)
def test_a_vision_that_was_built_without_its_gpu_code_is_wrong(
    names: tuple[str, ...], lacking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = smoke.module("model").WrongError
    with pytest.raises(wrong, match=f"no code for GPUs is registered for {lacking}"):
        on_gpus(registered(*names), monkeypatch)


def test_an_audio_needs_gpu_code_for_all_but_the_transducer(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = smoke.module("model").WrongError
    others = ("torchaudio::rnnt_loss@cpu", "torchaudio::ray_tracing@cpu", "torchvision::nms@cpu")
    names = ("torchaudio::forced_align", *others)
    assert on_gpus(registered(*names), monkeypatch, "audio").detail == "1 operator is registered for GPUs"
    with pytest.raises(wrong, match="no code for GPUs is registered for forced_align"):
        on_gpus(registered("torchaudio::forced_align@cpu", *others), monkeypatch, "audio")


def test_a_torch_for_the_cpu_alone_is_not_asked_for_gpu_code(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(smoke.module("model").AbsentError):
        on_gpus(registered("torchvision::nms@cpu", hip=None), monkeypatch)


# bits that change


def bits(differ: int, runs: int = 10, first: str = "a") -> Any:
    return outcome(more={"differ": differ, "runs": runs, "first": first, "example": ""})


@each(
    ("free", "blocking", "exact", "state"),
    [
        (bits(0), bits(0), bits(0, 1), "ok"),
        # the sign of gfx803: it stops with launch blocking, whatever else stops it
        (bits(3), bits(0), bits(0), "drift"),
        (bits(3), bits(0), bits(2), "drift"),
        # torch's own choice: sums in an order that changes, and in none when asked
        (bits(9), bits(9), bits(0), "apart"),
        (bits(9), bits(9), bits(0, 1), "drift"),
        (bits(9), bits(9), bits(4), "drift"),
        (bits(9), bits(9), outcome(state="raises"), "apart"),
        (bits(0), bits(0, first="b"), bits(0), "drift"),
    ],
)
def test_what_differs_is_a_finding_unless_torch_says_so_itself(
    free: Any, blocking: Any, exact: Any, state: str
) -> None:
    assert drift.judged(free, blocking, exact).state == state
