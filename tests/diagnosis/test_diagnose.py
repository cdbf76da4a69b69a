"""The first error of a log, and what is known of it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from rocwright.catalog.issue import plain, the_issues
from rocwright.catalog.phase import Phase
from rocwright.diagnosis.diagnose import Diagnosis, FailurePlace, diagnose

ISSUES = list(the_issues()[0].values())


def told(*lines: str, where: FailurePlace | None = None) -> Diagnosis:
    return diagnose([b"".join(plain(line) + b"\n" for line in lines)], where)


def names(found: Diagnosis) -> list[str]:
    return [one.issue.name for one in found.known]


def test_each_known_issue_is_found_in_a_log_by_its_example() -> None:
    any_card = FailurePlace(targets=tuple({target for one in ISSUES for target in one.targets}))
    words = sorted({word for one in ISSUES for word in one.named})
    particular = [one for one in ISSUES if one.filled is None]
    lines = [f"2026-11-21T10:00:00.123Z {one.examples[0]}" for one in particular]
    found = told(*lines, *words, where=any_card)
    assert {one.name for one in particular} == {one.issue.name for one in found.known if not one.slots}
    for one in found.known:
        assert one.slots or one.place.line <= particular.index(one.issue) + 1


@pytest.mark.parametrize("before", [200, 400, 20_000, 2_000_000])
def test_of_a_long_line_what_was_found_is_shown_wherever_it_stands(before: int) -> None:
    found = told("ok", f"python: {'x::y<z> ' * (before // 8)}Assertion `one == two' failed.", "done")
    assert found.first is not None
    assert found.first.text.startswith("python: x::y<z>")
    assert "Assertion `one == two' failed." in found.first.text
    assert len(found.first.text) <= 300
    assert [one.place.text for one in found.known] == [found.first.text]


def test_of_a_long_line_each_cause_shows_its_own_place() -> None:
    found = told(f"ld.lld: error: {'a/b.cpp.o:' * 60} relocation R_X86_64_PC32 out of range: 4")
    assert found.cause is not None
    assert found.first is not None
    assert found.first.text.startswith("ld.lld: error: a/b.cpp.o:")
    assert "relocation R_X86_64_PC32 out of range" in found.cause.place.text


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("dpkg: error processing archive /tmp/a_4.0.0.deb (--unpack):", "trying to overwrite '/opt/rocm/x'"),
        ("thread 'main' (3) panicked at src/main.rs:1:17:", "called `Option::unwrap()` on a `None` value"),
    ],
)
def test_where_the_error_is_told_on_the_line_below_that_line_is_it(above: str, below: str) -> None:
    whole = told("ok", above, below, "more")
    apart = diagnose([f"ok\n{above}\n".encode(), f"\n{below}\n".encode()])
    assert whole.first is not None
    assert apart.first is not None
    assert (whole.first.line, whole.first.text, whole.first.lines[:2]) == (3, below, (above, below))
    assert (apart.first.line, apart.first.text) == (4, below)
    cut = told("ok", above)
    assert cut.first is not None
    assert (cut.first.line, cut.first.text) == (2, above)


@pytest.mark.parametrize(
    "line",
    [
        "/bin/sh: строка 1: bin/hipcc: Нет такого файла или каталога",
        "bash: hipcc: Kommando nicht gefunden.",
        "bash：hipcc：未找到命令",  # noqa: RUF001
        "Speicherzugriffsfehler (Speicherabzug geschrieben)",
        "段错误（核心已转储）",  # noqa: RUF001
    ],
)
def test_errors_of_shells_and_crashes_are_found_in_other_languages(line: str) -> None:
    found = told("Compiling objects...", line, "make: *** [Makefile:3: all] Error 1")
    assert found.first is not None
    assert (found.first.line, found.first.text) == (2, line)
    assert told("Die Meldung: Datei oder Verzeichnis nicht gefunden kommt dann").first is None


def test_a_long_line_is_shown_once_and_from_its_begin_where_that_has_it() -> None:
    found = told(f"a.c:1:1: error: {'very ' * 100}wrong")
    assert found.first is not None
    assert found.first.text == f"a.c:1:1: error: {'very ' * 100}"[:297] + "..."


def test_lines_that_programs_printed_are_told_as_the_issues_that_quote_them() -> None:
    missed = []
    for issue in ISSUES:
        for quote in issue.quotes:
            known = names(told(f"[3/9] building {' '.join(issue.named)}", quote.line, "done"))
            if issue.name not in known:
                missed.append((issue.name, quote.line, known))
    assert missed == []


def test_the_first_error_is_told_and_not_what_follows_from_it() -> None:
    found = told(
        "[1/3] c++ -Werror -c error.cpp",
        "[2/3] c++ -c b.cpp",
        "FAILED: b.o",
        "b.cpp:3:1: error: expected ';'",
        "c.cpp:9:1: error: another",
        "ninja: build stopped: subcommand failed.",
        "Traceback (most recent call last):",
        "subprocess.CalledProcessError: Command 'ninja' returned non-zero exit status 1.",
        "ERROR: Failed building wheel for x",
    )
    assert found.first is not None
    assert (found.first.line, found.first.text) == (4, "b.cpp:3:1: error: expected ';'")
    assert found.first.tool == "a compiler"
    assert found.known == ()
    assert found.cause is None


def test_words_of_none_and_of_information_hide_no_failure_of_the_kernel() -> None:
    ring = "[drm:r600_ring_test [radeon]] *ERROR* radeon: ring 0 test failed (scratch(0x8504)=0xCAFEDEAD)"
    assert names(told(ring)) == ["amdgpu-init"]
    assert names(told("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:")) == ["kernel-fault"]
    assert told("0 tests failed", "no errors").first is None


def test_a_linker_is_told_by_what_it_misses_and_not_by_its_driver() -> None:
    found = told(
        "collect2: error: ld returned 1 exit status",
        "a.o: undefined reference to `f'",
        "make: *** [a] Error 1",
    )
    assert found.first is not None
    assert found.first.line == 2


@pytest.mark.parametrize(
    ("around", "itself"),
    [
        (
            "error: Failed to install: b-1-py3-none-any.whl (b==1)",
            "  Caused by: Wheel version does not match",
        ),
        ("ggml_cuda_compute_forward: MUL_MAT failed", "ROCm error: invalid device function"),
        ("KeyboardInterrupt", "ValueError: no"),
    ],
)
def test_the_error_itself_goes_before_what_was_tried_and_what_ended_it(around: str, itself: str) -> None:
    found = told(around, itself)
    assert found.first is not None
    assert (found.first.line, found.first.text) == (2, itself.strip())
    alone = told(around).first
    assert alone is not None
    assert alone.text == around


def test_of_what_only_follows_the_line_with_which_the_failure_begins_is_told() -> None:
    found = told(
        "error: builder for '/nix/store/x.drv' failed with exit code 1;",
        "FAILED: a.o",
        "make: *** [a] Error 1",
    )
    assert found.first is not None
    assert found.first.line == 2


def test_where_only_what_follows_is_there_that_is_told() -> None:
    found = told("compiling", "make[1]: *** [Makefile:3: all] Error 2", "make: *** [all] Error 2")
    assert found.first is not None
    assert found.first.line == 2


def test_the_last_line_of_a_traceback_is_its_error_and_frames_stand_above_it() -> None:
    found = told(
        "Traceback (most recent call last):", '  File "a.py", line 3, in f', "    g()", "ValueError: no"
    )
    assert found.first is not None
    assert found.first.text == "ValueError: no"
    assert found.first.lines[-2:] == ("    g()", "ValueError: no")


def test_the_particular_issue_stands_before_the_general_one() -> None:
    found = told("third_party/gloo/gloo/types.h:66:8: error: \u2018uint8_t\u2019 does not name a type")
    assert names(found) == ["gloo-cstdint", "missing-cstdint"]


def test_an_issue_in_the_block_of_a_cmake_error_explains_it() -> None:
    found = told(
        "CMake Error at third_party/psimd/CMakeLists.txt:1 (CMAKE_MINIMUM_REQUIRED):",
        "  Compatibility with CMake < 3.5 has been removed from CMake.",
        "-- Configuring incomplete, errors occurred!",
    )
    assert found.cause is not None
    assert found.cause.issue.name == "cmake-minimum"
    assert found.first is not None
    assert found.first.line == 1


def test_a_warning_explains_nothing() -> None:
    warning = "Attempting to use hipBLASLt on an unsupported architecture! Overriding blas backend to hipblas"
    found = told(warning)
    assert names(found) == ["hipblaslt-unsupported"]
    assert found.cause is None
    assert found.first is None


def test_an_issue_of_other_bases_or_of_another_phase_is_ruled_out_with_the_reason() -> None:
    (thunk,) = (one for one in ISSUES if one.bases)
    assert names(told(thunk.examples[0], where=FailurePlace(base="fedora:43", phase=Phase.BUILD))) == [
        thunk.name
    ]
    (out,) = told(thunk.examples[0], where=FailurePlace(base="debian:sid")).ruled_out
    assert out.why == "it is known for arch, fedora, not for debian:sid"
    fault = next(one for one in ISSUES if one.name == "memory-access-fault")
    assert names(told(fault.examples[0], where=FailurePlace(phase=Phase.CHECK))) == [fault.name]
    (out,) = told(fault.examples[0], where=FailurePlace(phase=Phase.BUILD)).ruled_out
    assert out.why == "it comes in check or run, not in build"


def test_an_issue_that_a_version_has_mended_is_ruled_out_with_the_reason() -> None:
    (one, *_) = (one for one in ISSUES if one.fixed_in and one.fixed_in[0].component == "pytorch")
    assert names(told(one.examples[0], where=FailurePlace(component="pytorch", version="2.6.0"))) == [
        one.name
    ]
    (out,) = told(one.examples[0], where=FailurePlace(component="pytorch", version="2.13.0")).ruled_out
    assert (out.issue, "2.13.0" in out.why) == (one.name, True)


def test_an_issue_of_other_gpus_or_versions_is_ruled_out_with_the_reason() -> None:
    text = "LLVM ERROR: Cannot select: gfx906 intrinsic"
    assert names(told(text)) == []
    text = f"triton: {text}"
    assert names(told(text, where=FailurePlace(targets=("gfx906",)))) == ["triton-old-gpu"]
    found = told(text, where=FailurePlace(targets=("gfx1151",)))
    assert names(found) == []
    assert found.ruled_out[0].issue == "triton-old-gpu"
    assert "gfx1151" in found.ruled_out[0].why
    text = "a.cpp:1: error: 'AVFrame' {aka 'struct AVFrame'} has no member named 'key_frame'"
    newer = told(text, where=FailurePlace(component="torchvision", version="0.28.0"))
    assert newer.ruled_out[0].why == "it affects torchvision <0.28, not 0.28.0"


CLEAN = [
    "-- Performing Test HAS_WERROR - Failed",
    "-- Looking for error.h - not found",
    "c++ -Wall -Werror -Wno-error=deprecated -o error.dir/error_handling.cpp.o -c error_handling.cpp",
    "[ 12%] Building CXX object src/CMakeFiles/x.dir/Error.cpp.o",
    "warning: unused variable 'error' [-Wunused-variable]",
    "Successfully built torch-2.6.0",
    "copying torch/testing/_internal/error_inputs.py -> build/lib/torch/testing",
    "-- Could NOT find OpenMP (missing: OpenMP_C_FLAGS)",
    "10 tests, 0 failures, 0 errors",
    "-- CMAKE_CXX_FLAGS: -include cstdint -D_GLIBCXX_ASSERTIONS",
    "Requirement already satisfied: setuptools_scm in /usr/lib/python3",
    "-- Found HIP: /opt/rocm (found version 6.4)",
    "Fetching submodule third_party/gloo",
    "0 errors generated.",
]


def test_a_clean_log_has_no_error() -> None:
    found = told(*CLEAN)
    assert found.first is None
    assert found.known == ()


def pieces_of(lines: Iterable[str], each: int) -> list[bytes]:
    all_of_it = [f"{line}\n".encode() for line in lines]
    return [b"".join(all_of_it[at : at + each]) for at in range(0, len(all_of_it), each)]


@pytest.mark.parametrize("each", [1, 2, 3, 1000])
def test_the_diagnosis_does_not_depend_on_how_the_log_comes(each: int) -> None:
    lines = [
        *(f"[{n}/200] c++ a{n}.cpp" for n in range(100)),
        "a.cpp:1:1: error: x",
        "note: y",
        "FAILED: a.o",
    ]
    lines += [f"b{n}.cpp:1:1: error: z" for n in range(300)] + ["OSError: [Errno 28] No space left on device"]
    found = diagnose(pieces_of(lines, each))
    assert found.first is not None
    assert found.first.line == 101
    assert len(found.first.lines) == 12
    assert found.first.lines[:3] == ("a.cpp:1:1: error: x", "note: y", "FAILED: a.o")
    assert found.lines == len(lines)
    assert names(found) == ["disk-full"]
    assert found.known[0].place.line == len(lines)


def test_what_was_found_before_the_failure_began_is_sought_anew_in_the_same_piece() -> None:
    over = [*(f"a{n}.c:1:1: error: x" for n in range(70)), *(f"fine {n}" for n in range(40))]
    found = diagnose(pieces_of([*over, "FAILED: a.o", "b.c:1:1: error: y"], 10_000))
    assert found.first is not None
    assert found.first.text == "b.c:1:1: error: y"
    assert found.first.line == len(over) + 2


def test_a_family_says_what_its_line_names() -> None:
    found = told("[2/9] cc -c a.c", "src/a.c:3:10: fatal error: drm/amdgpu_drm.h: No such file or directory")
    assert found.cause is not None
    assert found.cause.issue.name == "missing-header"
    assert found.cause.slots == {"header": "drm/amdgpu_drm.h"}
    assert found.cause.issue.means == "the header drm/amdgpu_drm.h is not found"
    assert "apt-file search drm/amdgpu_drm.h" in found.cause.issue.remedy


@pytest.mark.parametrize(
    ("line", "name", "slots"),
    [
        (
            "/usr/bin/ld: cannot find -lnuma: No such file or directory",
            "missing-library",
            {"library": "numa"},
        ),
        ("E   ModuleNotFoundError: No module named 'yaml'", "missing-python-module", {"module": "yaml"}),
        ("a.o: undefined reference to `f(int)'", "undefined-reference", {"symbol": "f(int)"}),
        ("Unknown GPU architecture: gfx1250", "target-not-known", {"target": "gfx1250"}),
        (
            "k.cpp:3:1: error: local memory (98304) exceeds limit (65536) in function 'k'",
            "kernel-local-memory",
            {"size": "98304", "limit": "65536"},
        ),
        (
            "torchvision 0.21.0 requires torch==2.6.0, but you have torch 2.5.1 which is incompatible.",
            "versions-differ",
            {"package": "torchvision 0.21.0", "needs": "torch==2.6.0", "have": "torch 2.5.1"},
        ),
    ],
)
def test_each_family_names_its_slots(line: str, name: str, slots: dict[str, str]) -> None:
    found = told("building", line)
    assert [(one.issue.name, one.slots) for one in found.known] == [(name, slots)]
    assert all(value in found.known[0].issue.means for value in slots.values())


def test_an_issue_of_one_thing_goes_before_its_family_on_its_line_and_soon_after_it() -> None:
    assert names(told("a.h:1:10: fatal error: 'hip/hip_fp8.h' file not found")) == ["hip-header-missing"]
    found = told(
        "Error! Bad return status for module build on kernel: 6.8.0-44-generic (x86_64)",
        "Consult /var/lib/dkms/amdgpu/6.7.0/build/make.log for more information.",
    )
    assert names(found) == ["amdgpu-dkms-build", "kernel-module-build"]
    assert found.known[1].slots == {"kernel": "6.8.0-44-generic"}


def test_a_family_is_no_cause_in_a_line_that_says_it_is_calm() -> None:
    found = told("-- Could NOT find NUMA (missing: NUMA_LIBRARY)", "WARNING: cannot find -lnuma")
    assert found.known == ()


def test_what_a_hostile_line_names_is_cut_and_obeyed_by_nothing() -> None:
    found = told(f"a.c:1:1: fatal error: {'x{0}%s' * 90}.h: No such file or directory")
    assert found.known == ()
    found = told(f"a.c:1:1: fatal error: {'x' * 260}: No such file or directory")
    assert all(len(value) <= 120 for one in found.known for value in one.slots.values())


GCVM = "amdgpu: GCVM_L2_PROTECTION_FAULT_STATUS:0x00A01A30"


def test_a_log_of_days_before_an_issue_does_not_have_it() -> None:
    old = told("2024-01-12T10:00:00Z kernel: boot", f"2024-01-12T10:00:05Z kernel: {GCVM}")
    assert names(old) == ["gpu-page-fault"]
    assert [one.issue for one in old.ruled_out] == ["gcvm-l2-fault"]
    assert "2024-01-12" in old.ruled_out[0].why
    assert "2025-08-01" in old.ruled_out[0].why
    card = "  Name:                    gfx1151    "
    new = told(card, "2024-01-12T10:00:00Z kernel: boot", f"2025-11-27T10:00:05Z kernel: {GCVM}")
    assert names(new) == ["gcvm-l2-fault"]
    assert names(told(card, GCVM)) == ["gcvm-l2-fault"]
    broken = told(card, "2024-99-99T10:00:00Z kernel: boot", GCVM)
    assert names(broken) == ["gcvm-l2-fault"]


def test_an_issue_of_some_cards_is_told_where_one_of_them_is_named() -> None:
    unknown = told(GCVM)
    assert names(unknown) == ["gpu-page-fault", "gcvm-l2-fault"]
    assert [one.sure for one in unknown.known] == [True, False]
    alone = told("hsa_init Failed, HSA_STATUS_ERROR (4096)")
    assert names(alone) == ["rocr-gfx8-rejected"]
    assert alone.cause is None
    assert told("hsa_init Failed, HSA_STATUS_ERROR (4096)", "gfx803").cause is not None
    assert names(told("building for GFX1151", GCVM))[0] == "gcvm-l2-fault"
    assert names(told(GCVM, where=FailurePlace(targets=("gfx1151",))))[0] == "gcvm-l2-fault"


ERRNO = "OSError: [Errno 12] Cannot allocate memory"


def test_words_that_are_others_too_are_told_where_the_log_names_whose_they_are() -> None:
    assert names(told(ERRNO)) == ["host-memory"]
    assert names(told("[12/40] Tensile: writing kernels", ERRNO)) == ["tensile-errno12"]
    assert names(told(*["x" * 90] * 9000, "Tensile: writing kernels", ERRNO)) == ["tensile-errno12"]
    assert names(told(ERRNO, where=FailurePlace(component="rocblas"))) == ["tensile-errno12"]


def test_the_cards_that_a_log_names_rule_out_issues_of_others() -> None:
    other = told("  Name:                    gfx1100                            ", GCVM)
    assert names(other) == ["gpu-page-fault"]
    assert "gfx1100" in other.ruled_out[0].why
    asked = told("  Name:                    gfx1100  ", GCVM, where=FailurePlace(targets=("gfx1151",)))
    assert names(asked) == ["gcvm-l2-fault"]


def test_of_events_of_a_kernel_the_earliest_is_the_cause_and_what_comes_soon_after_may_say_more() -> None:
    ring = "amdgpu 0000:c5:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=2"
    resets = [f"amdgpu 0000:c5:00.0: amdgpu: Starting ring reset {n}" for n in range(5)]
    answer = "amdgpu 0000:c5:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE"
    where = FailurePlace(targets=("gfx1151",))
    assert names(told(ring, *resets, answer, where=where)) == ["gpu-ring-timeout", "mes-remove-queue"]
    assert names(told(ring, *resets[:2], answer, where=where)) == ["mes-remove-queue", "gpu-ring-timeout"]


def test_a_wide_family_goes_behind_any_other_that_fits_its_line() -> None:
    line = "a.cu:1:1: error: use of undeclared identifier 'cudaStreamIsCapturing'"
    assert names(told(line)) == ["cuda-name-left"]
    assert names(told("a.cpp:1:1: error: use of undeclared identifier 'foo'")) == ["name-unknown"]


def test_a_wide_family_behind_the_first_error_explains_nothing() -> None:
    late = "du: cannot access 'build/dist/rocm': No such file or directory"
    assert names(told("ValueError: no", late)) == ["file-missing"]
    assert names(told("ValueError: no", "", "", late)) == []


def test_a_wide_family_waits_for_what_says_more_near_by() -> None:
    found = told("a.cpp:1:1: error: no type named 'x' in namespace 'y'", "ROCk module is NOT loaded")
    assert names(found) == ["rock-not-loaded", "name-unknown"]


LIKELY = "llama_init: failed to start the back end"


def first_of(*lines: str) -> str:
    found = told(*lines).first
    return found.text if found else ""


def test_words_of_a_failure_are_the_first_error_where_no_line_is_plainer() -> None:
    assert first_of("fine so far", LIKELY) == LIKELY
    assert first_of(LIKELY, "ValueError: no") == "ValueError: no"


def test_of_words_of_a_failure_and_what_follows_from_one_the_earlier_is_told() -> None:
    follows = "make: *** [Makefile:10: all] Error 2"
    assert first_of(LIKELY, follows) == LIKELY
    assert first_of(follows, LIKELY) == follows


BEGINS = {
    "ninja": "FAILED: a.o",
    "ninja, with its code": "FAILED: [code=1] a.o",
    "ComfyUI": "Error occurred when executing KSampler:",
    "pytest": "=================================== FAILURES ===================================",
    "pip": "  ╰─> [12 lines of output]",
    "vLLM": "ERROR 03-23 22:46:30 [core.py:1108] EngineCore failed to start.",
}


@pytest.mark.parametrize("begins", BEGINS)
def test_what_was_got_over_before_the_failure_began_is_not_the_first_error(begins: str) -> None:
    over = ["ImportError: cannot import name 'x'", *(f"fine {n}" for n in range(40))]
    found = told(*over, BEGINS[begins], "ImportError: libMIOpen.so.1: cannot open shared object file")
    assert found.first is not None
    assert found.first.line == len(over) + 2
    assert [one.issue.name for one in found.known][:2] == ["rocm-library-missing", "python-api-differs"]


@pytest.mark.parametrize("begins", BEGINS)
def test_an_error_close_before_the_failure_began_belongs_to_it(begins: str) -> None:
    found = told("a.c:1:1: error: x", BEGINS[begins], "done")
    assert found.first is not None
    assert found.first.line == 1


def test_a_calm_line_has_no_words_of_a_failure() -> None:
    for before in ("[INFO] ", "WARNING: ", "-- ", "I0201 20:55:23.414112 18988 device.cpp:53] "):
        assert first_of(f"{before}{LIKELY}") == ""


def test_an_assertion_that_repeats_the_error_above_it_explains_nothing() -> None:
    found = told("CUDA error: x", 'GGML_ASSERT: ggml-cuda.cu:255: !"CUDA error"')
    assert "assertion-failed" not in names(found)


CMAKE_TRIES = "CMake Error at /usr/share/cmake/Modules/CMakeTestCXXCompiler.cmake:60 (message):"
BROKEN = "-- Check for working CXX compiler: /opt/rocm/bin/hipcc - broken"


def test_what_the_compiler_said_comes_before_cmakes_words_that_it_does_not_work() -> None:
    its_own = "    sh: /opt/rocm/llvm/bin/clang: No such file or directory"
    found = told(BROKEN, CMAKE_TRIES, "  The C++ compiler", '    "/opt/rocm/bin/hipcc"', its_own).first
    assert found is not None
    assert found.text == its_own.strip()
    alone = told(BROKEN, CMAKE_TRIES).first
    assert alone is not None
    assert alone.text == CMAKE_TRIES


def test_a_broken_compiler_is_told_where_nothing_else_is() -> None:
    found = told("-- Detecting CXX compiler ABI info - failed", BROKEN, "-- Configuring done")
    assert found.first is not None
    assert found.first.text == BROKEN
    assert names(found) == ["compiler-does-not-work"]


def test_a_warning_of_the_kernels_is_an_error_where_it_says_so() -> None:
    before = "worker-01: kern: warning: [2023-12-14T11:16:10.461245972Z]: "
    line = "amdgpu 0000:00:01.0: Direct firmware load for amdgpu/carrizo_pfp.bin failed with error -2"
    found = told(before + line)
    assert names(found) == ["amdgpu-firmware-missing"]
    assert found.first is not None
    assert found.first.text == line


SPECIAL = {
    "warp-size-not-constant": (
        "a.hpp:10:39: error: constexpr function never produces a constant expression [-Winvalid-constexpr]",
        "   10 | __host__ __device__ constexpr index_t get_warp_size()",
    ),
    "ck-unknown-gpu": ("a.hpp:3:1: error: use of undeclared identifier 'CK_TILE_BUFFER_RESOURCE_3RD_DWORD'",),
    "aiter-arch-invalid": ("AssertionError: One of GPU archs of ['gfx1201'] is invalid or not supported",),
    "compiler-killed": ("g++: internal compiler error: Killed (program cc1plus)",),
}


def test_a_special_cause_goes_before_its_family() -> None:
    assert {name: names(told(*lines))[0] for name, lines in SPECIAL.items()} == {
        name: name for name in SPECIAL
    }


def test_a_good_start_without_a_gpu_has_no_error() -> None:
    found = told("no AMD GPU found here: building for gfx1151", "lock: skipped: x: Could not resolve host: x")
    assert (found.first, found.known) == (None, ())


def test_a_key_that_a_file_system_misses_is_none_of_a_module() -> None:
    assert "module-not-taken" not in names(told("cp: cannot open 'a': Required key not available"))


@pytest.mark.parametrize(
    "source",
    [
        '    raise AssertionError("Torch not compiled with CUDA enabled")',
        '    assert cuda, "Torch not compiled with CUDA enabled"',
        '        "Torch not compiled with CUDA enabled")',
    ],
)
def test_source_in_a_traceback_gives_way_to_the_exception_itself(source: str) -> None:
    itself = "AssertionError: Torch not compiled with CUDA enabled"
    found = told("Traceback (most recent call last):", source, itself)
    assert names(found) == ["cuda-wheel-instead-of-rocm"]
    assert found.first is not None
    assert (found.first.line, found.known[0].place.line) == (3, 3)
    cut = told("Traceback (most recent call last):", source)
    assert cut.first is not None
    assert (cut.first.line, names(cut)) == (2, ["cuda-wheel-instead-of-rocm"])


MISSING = "a.c:1:10: fatal error: numa.h: No such file or directory"
GOOD_ENDS = [
    "Successfully built torch-2.9.0-cp313-cp313-linux_x86_64.whl",
    "BUILD SUCCESSFUL in 3m 2s",
    "[INFO] BUILD SUCCESS",
    "[1042/1042] Linking CXX shared library lib/libtorch_hip.so",
    "[100%] Built target llama-server",
    "-- Installing: /out/usr/lib/libx.so",
    "============ 12 passed, 3 skipped in 4.21s ============",
    "2026-11-21T10:00:00.123Z Process finished with exit code 0",
]
BAD_ENDS = [
    "[1041/1042] Linking CXX shared library lib/libtorch_hip.so",
    "======= 1 failed, 12 passed in 4.21s =======",
    "the command exited with code 10",
    "make: *** [all] Error 2",
]


@pytest.mark.parametrize("end", GOOD_ENDS)
def test_a_log_of_a_success_has_no_sure_cause(end: str) -> None:
    assert told(MISSING).cause is not None
    found = told(MISSING, end, "")
    assert found.success and found.known and found.first is not None
    assert (found.cause, found.failure) == (None, None)
    assert told(MISSING, end, *BAD_ENDS[-1:]).cause is not None


@pytest.mark.parametrize("end", BAD_ENDS)
def test_a_log_that_ends_otherwise_has_one(end: str) -> None:
    assert told(MISSING, end).cause is not None


def test_what_is_known_of_the_end_decides_over_its_words() -> None:
    log = f"{MISSING}\n{GOOD_ENDS[0]}\n".encode()
    assert diagnose([log], failed=True).cause is not None
    assert diagnose([f"{MISSING}\n".encode()], failed=False).cause is None
