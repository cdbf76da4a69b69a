"""Lists checked against an index that is served here: what is wrong, and the list that works."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest
from tests.doctor.requirements.conftest import Check, told
from tests.sources.conftest import Index

from rocbase.errors import InputError
from rocwheel_samples.tables import each
from rocwheel_samples.wheel import make_wheel
from rocwright.catalog.load import builtin_catalog
from rocwright.doctor.requirements.check import CheckedList, check_list
from rocwright.sources.python_resolver import Interpreter

TORCH = "torch[device-gfx1151]==2.13.0+rocm10.0.0"
AMD = "https://stable.repo.amd.com/rocm/whl-next/"


def test_builds_for_cuda_are_replaced_by_what_amd_publishes_for_the_card(check: Check) -> None:
    checked = check("torch", "accelerate", "numpy", "nvidia-cublas-cu12", "xformers==0.0.30")
    assert told(checked) == {
        "torch": ("a CUDA build (libtorch_cuda.so)", TORCH),
        "nvidia-cublas-cu12": ("part of CUDA", "leave it out"),
        "xformers": ("a CUDA build", "leave it out: torch's own attention does the same"),
    }
    assert checked.indexes == (AMD,)
    assert checked.lines == (
        f"--extra-index-url {AMD}",
        TORCH,
        "accelerate",
        "numpy",
        "# nvidia-cublas-cu12: part of CUDA; leave it out",
        "# xformers==0.0.30: a CUDA build; leave it out: torch's own attention does the same",
    )


def test_a_card_without_published_wheels_is_told_the_build(check: Check) -> None:
    checked = check("torch==2.8.0", gpu="gfx803")
    assert told(checked) == {
        "torch": ("a CUDA build (libtorch_cuda.so)", "rocwright build pytorch --gpu gfx803")
    }


def test_local_versions_and_indexes_show_builds_without_asking(check: Check, index: Index) -> None:
    index.files.clear()
    cuda = "https://example.org/whl/cu121"
    checked = check(f"--index-url {cuda}", "torch==2.5.1+cu121", "torchvision==0.20.1+cpu")
    assert [finding.problem for finding in checked.findings] == ["CUDA builds", "a CUDA build", "a CPU build"]
    assert f"# --index-url {cuda}: CUDA builds; leave it out" in checked.lines


def test_vllm_brings_its_own_torch_and_both_cannot_go_together(check: Check) -> None:
    checked = check("vllm==0.33.0", "torch==2.8.0")
    assert told(checked) == {
        "vllm": ("a CUDA build; requires torch==2.14.0, not 2.8.0 of line 2", "vllm==0.33.0+rocm100"),
        "torch": ("a CUDA build (libtorch_cuda.so)", "leave it out: it comes with vllm"),
    }
    assert "its wheel for ROCm needs Python >=3.12,<3.13" in told(check("vllm", python="3.11"))["vllm"][0]


def test_what_a_package_requires_and_the_list_lacks_is_added(check: Check) -> None:
    checked = check("accelerate")
    assert told(checked) == {"torch": ("accelerate requires it: a CUDA build", TORCH)}
    assert checked.lines == (f"--extra-index-url {AMD}", "accelerate", TORCH)


def test_a_package_that_requires_a_part_of_cuda_cannot_run(check: Check) -> None:
    assert told(check("sampler")) == {
        "sampler": ("requires cuda-python, part of CUDA", "no build for AMD is known: leave it out")
    }


def test_the_code_of_a_wheel_is_read_from_the_index(check: Check, index: Index) -> None:
    assert not check("bitsandbytes").findings
    assert told(check("bitsandbytes", gpu="gfx803"))["bitsandbytes"][0] == (
        "no code for gfx803 (libbitsandbytes_rocm72.so)"
    )
    old = told(check("bitsandbytes==0.44.0"))["bitsandbytes"]
    assert old == ("a CUDA build (libbitsandbytes_cuda121.so)", "bitsandbytes==0.50.2")


def test_a_wheel_whose_code_is_for_another_gpu_alone_is_an_error(check: Check) -> None:
    lines = ("torch[device-gfx1100]==2.12.0+rocm7.14.0", "torch[device-gfx1151]==2.12.0+rocm7.14.0")
    for line, problem in zip(lines, ("lacks the code for gfx1151", ""), strict=True):
        finding = check(line).findings[0]
        assert (finding.problem if finding.grade == "error" else "") == problem
    problem, _ = told(check("torch[device-gfx803]==2.13.0+rocm10.0.0", gpu="gfx803"))["torch"]
    assert problem == "not for gfx803: TheRock builds nothing for it"


def test_a_pin_that_the_new_torch_does_not_fit_is_loosened(
    check: Check, index: Index, tmp_path: Path
) -> None:
    path = make_wheel(tmp_path / "old", "old", needs=("torch<2.9",))
    index.files["old"] = {path.name: path.read_bytes()}
    checked = check("torch", "old[x]==1.0")
    assert told(checked)["old"] == ("requires torch<2.9, not 2.13.0+rocm10.0.0 of line 1", "old[x]")


@each(
    ("lines", "name"),
    [
        (("torch==2.8.0+rocm6.4", "torchvision==0.24.0+rocm7.0"), "torchvision"),
        (("--extra-index-url https://127.0.0.1:9/whl/rocm6.4", "rocm==7.2.0"), "rocm"),
    ],
)
def test_minor_versions_of_rocm_do_not_go_together(check: Check, lines: tuple[str, ...], name: str) -> None:
    problem, _ = told(check(*lines))[name]
    assert "is for 6.4" in problem


def test_an_index_that_is_silent_is_said_and_facts_are_judged_all_the_same(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    checked = check(
        "torch", "numpy", "--extra-index-url https://127.0.0.1:9/rocm", "torchvision==0.2+rocm9.9"
    )
    assert told(checked) == {
        "torch": ("a CUDA build", TORCH),
        "numpy": ("not asked: the package index does not answer", ""),
        "torchvision": ("not asked: 127.0.0.1: the package index does not answer", ""),
    }
    assert checked.unsure


def test_a_version_without_a_file_for_the_python_stops(check: Check) -> None:
    assert told(check("numpy>=3")) == {"numpy": ("no file for Python 3.12", "")}


def test_conda_names_are_those_of_the_index_and_its_packages_are_not_for_pip(check: Check) -> None:
    checked = check(
        "dependencies:", "  - pytorch=2.3", "  - numpy", "  - cudatoolkit", name="environment.yml"
    )
    assert told(checked)["pytorch"] == ("a CUDA build", TORCH)
    assert checked.lines[1:] == (
        TORCH,
        "# not for pip: numpy",
        "# cudatoolkit: part of CUDA; leave it out",
    )


@each(
    "lines",
    [
        ("torch", "accelerate", "bitsandbytes==0.44.0", "numpy"),
        ("vllm==0.33.0", "torch==2.8.0", "triton"),
        ("accelerate", "onnxruntime-gpu", "cupy-cuda12x", "jax[cuda12]"),
    ],
)
def test_the_new_list_has_no_errors_but_what_its_index_lacks(check: Check, lines: tuple[str, ...]) -> None:
    """The index here lacks what stands for onnxruntime, cupy and jax: that is a note, not an error."""
    new = check(*check(*lines).lines)
    assert [finding for finding in new.findings if finding.grade != "note"] == []


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """An environment with a package that has code for gfx1151, and what makes trouble beside it."""
    folder = tmp_path / "env/lib/python3.12/site-packages"
    runtime = {"torch/lib/libamdhip64.so": b"", "torch/lib/libtorch_hip.so": b""}
    for wheel in (
        make_wheel(tmp_path / "w", "kernels", targets=("gfx1151",)),
        make_wheel(tmp_path / "w", "torch", "2.6.0+rocm6.4", files=runtime),
        make_wheel(tmp_path / "w", "rocm_sdk_core", "6.4.1", files={"rocm/lib/libamdhip64.so.6": b""}),
        make_wheel(tmp_path / "w", "torchvision", "0.9", needs=("torch==2.5.0",)),
        make_wheel(tmp_path / "w", "nvidia_cudnn_cu12", "9.1"),
    ):
        ZipFile(wheel).extractall(folder)
    return tmp_path / "env"


def installed(folder: Path, gpu: str) -> CheckedList:
    return check_list(folder, gpu, Interpreter("3.12", "x86_64"), builtin_catalog())


def test_an_environment_is_judged_by_its_files(site: Path) -> None:
    problems = {name: problem for name, (problem, _) in told(installed(site, "gfx1151")).items()}
    assert problems.keys() - {"torch", "rocm-sdk-core"} == {"torchvision", "nvidia-cudnn-cu12"}
    assert problems["torchvision"] == "a CUDA build; requires torch==2.5.0, not 2.6.0+rocm6.4"
    copies = [problem for problem in problems.values() if problem.startswith("a second copy of ROCm")]
    assert len(copies) == 1
    assert told(installed(site, "gfx803"))["kernels"][0] == "no code for gfx803 (lib.so)"


def test_a_folder_that_is_no_environment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a Python environment"):
        installed(tmp_path, "gfx1151")
