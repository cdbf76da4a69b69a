"""A package index with wheels for CUDA, ROCm and neither, and a check of a list against it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from tests.sources.conftest import Index, served_index

from rocwheel_samples.wheel import make_wheel
from rocwright.catalog.load import builtin_catalog
from rocwright.doctor.requirements.check import CheckedList, check_list
from rocwright.doctor.requirements.judge import ListFinding
from rocwright.sources.python_resolver import Interpreter

Check = Callable[..., CheckedList]
LINUX = "py3-none-manylinux_2_28_x86_64"


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Index]:
    """An index as people have it: torch for CUDA, a package with libraries for ROCm, and others."""
    with served_index() as served:
        monkeypatch.setenv("PIP_INDEX_URL", f"{served.url}/simple")
        served.ranges = True

        def add(name: str, version: str = "1.0", **more: Any) -> None:
            path = make_wheel(tmp_path / "wheels", name, version, **more)
            served.files.setdefault(name.replace("_", "-"), {})[path.name] = path.read_bytes()

        cuda: Mapping[str, bytes] = {"torch/lib/libtorch_cuda.so": b"", "torch/lib/libcudart.so.12": b""}
        add("torch", "2.15.0", tag=LINUX, files=cuda, needs=("nvidia-cudnn-cu13", "triton"))
        add("torch", "2.8.0", tag=LINUX, files=cuda)
        add("vllm", "0.33.0", tag=LINUX, needs=("torch==2.14.0",))
        add("accelerate", "1.15.0", needs=("torch>=2", "numpy", "nvidia-cuda-nvcc; extra == 'cuda'"))
        add("sampler", needs=("cuda-python",))
        add("numpy", "2.0", tag=LINUX)
        bits = make_wheel(tmp_path / "bits", "bits", targets=("gfx1100", "gfx1151"))
        library = ZipFile(bits).read("bits/lib.so")
        libraries = {f"bitsandbytes/libbitsandbytes_{name}.so": library for name in ("rocm72", "cuda130")}
        add("bitsandbytes", "0.50.2", tag=LINUX, files=libraries)
        add("bitsandbytes", "0.44.0", tag=LINUX, files={"bitsandbytes/libbitsandbytes_cuda121.so": b""})
        yield served


@pytest.fixture
def check(index: Index, tmp_path: Path) -> Check:
    def run(*lines: str, gpu: str = "gfx1151", python: str = "3.12", name: str = "r.txt") -> CheckedList:
        path = tmp_path / name
        path.write_text("\n".join(lines))
        return check_list(path, gpu, Interpreter(python, "x86_64"), builtin_catalog())

    return run


def told(checked: CheckedList) -> dict[str, tuple[str, str]]:
    """What is wrong with each package, and what to write or do instead."""

    def instead(finding: ListFinding) -> str:
        return finding.write or finding.advice

    return {finding.name: (finding.problem, instead(finding)) for finding in checked.findings}
