"""torch-extensions, built for real; and the torch suite on a torch that is made to fail."""

from __future__ import annotations

import http.client
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.real import faulty_torch
from tests.real.healing import CATALOG, Case
from tests.real.stacks import build_and_verify, rocwright

from rocwright.home import Home
from rocwright.plan.resolve.files import read_lock

pytestmark = [pytest.mark.real, pytest.mark.nightly]


@pytest.fixture(scope="module")
def extensions(home: Home, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The project, and what building and verifying it told."""
    folder = tmp_path_factory.mktemp("project") / "torch"
    return folder, build_and_verify(home, folder, "torch-extensions", "gfx1151")


def test_torch_extensions_are_built_against_the_torch_of_the_base(
    extensions: tuple[Path, dict[str, Any]],
) -> None:
    folder, built = extensions
    failed = [one for one in built["findings"] if not one["ok"]]
    assert not failed, failed
    assert sum(one["check"] == "torch" for one in built["findings"]) > 300
    assert {one["filename"].split("-")[0] for one in built["artifacts"]} == {"torchvision", "torchaudio"}
    lock = read_lock(folder / "rocwright.lock")
    assert lock.provided["pytorch"] == "2.6.0"
    assert not any(step["name"] == "pytorch" for step in built["run"]["steps"])
    index = folder / "rocwright-out" / "simple" / "torchvision" / "index.html"
    assert "torchvision-0.21.0" in index.read_text()


def test_torch_is_measured_on_the_cpu(home: Home, extensions: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = extensions
    measured = json.loads(rocwright(home, folder, "bench", "--runs", "2", "--json"))
    told = {one["name"]: one for one in measured}
    assert told.keys() == {"torch start", "product fp32", "memory", "convolution fp32"}
    assert all(one["device"] == "cpu" and min(one["values"]) > 0 for one in measured)


PRODUCT = "import torch; print((torch.arange(6.).reshape(2, 3) @ torch.ones(3, 2)).tolist())"


def test_a_program_runs_in_the_environment_of_the_stack(
    extensions: tuple[Path, dict[str, Any]], home: Home
) -> None:
    folder, _ = extensions
    (folder / "x.py").write_text(f"import torchvision, torchaudio\n{PRODUCT}\nopen('made', 'w')\n")
    for _ in range(2):
        assert rocwright(home, folder, "run", "--", "python", "x.py") == "[[3.0, 3.0], [12.0, 12.0]]\n"
    assert (folder / "made").is_file()


def test_a_notebook_server_there_answers_who_has_its_token_and_nobody_else(
    extensions: tuple[Path, dict[str, Any]], home: Home
) -> None:
    folder, _ = extensions
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    told = json.loads(rocwright(home, folder, "run", "--jupyter", "--detach", "--json", "--port", str(port)))
    try:
        assert told["running"]
        assert asked(port, "/api/contents", "") == 403
        assert asked(port, "/api/contents", "another") == 403
        assert asked(port, "/api/contents", told["key"]) == 200
        assert told["key"] not in Path("/proc", str(told["pid"]), "cmdline").read_text()
    finally:
        rocwright(home, folder, "stop", told["name"])
    assert asked(port, "/api/contents", told["key"]) == 0
    assert not list(home.servers.iterdir())


def asked(port: int, path: str, token: str) -> int:
    """The status with which it answers; 0 where nothing does."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path, headers={"Authorization": f"token {token}"} if token else {})
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def test_a_system_package_that_a_recipe_forgets_is_added(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(CATALOG))
    case = Case(home=home, folder=tmp_path / "vision", stack="torchvision-image", base="debian:trixie")
    case.begin()
    failure = case.fails()
    assert (failure["class"], failure["issue"]) == ("compile", "pybind11-headers")
    made = case.heals("pybind11-headers")
    assert b"torchvision" in made.read_bytes()
    case.builds_elsewhere()


@pytest.fixture(scope="module")
def torch_suite(home: Home, request: pytest.FixtureRequest) -> faulty_torch.Run:
    """The torch suite on the base's torch, or on that of an interpreter in ROCWRIGHT_TEST_TORCH."""
    if python := os.environ.get("ROCWRIGHT_TEST_TORCH"):
        return faulty_torch.outside(python)
    request.getfixturevalue("extensions")
    torch = "usr/lib/python3/dist-packages/torch"
    root = next(path for path in home.roots.iterdir() if (path / torch).is_dir())
    return faulty_torch.sandboxed(root, "bubblewrap")


def test_a_torch_that_computes_wrongly_crashes_hangs_or_lacks_kernels_is_named(
    torch_suite: faulty_torch.Run, tmp_path: Path
) -> None:
    faults = ("off by a little", "off at one shape", "no number", "crash", "hang", "missing kernels")
    faulty_torch.write(tmp_path, *faults)
    tried = ("mm", "conv2d fp", "softmax fp", "sort", "topk", "fft", "rfft", "solve", "einsum", "sum fp")
    only = [word for one in tried for word in ("--only", f"/{one}")]
    found = torch_suite(tmp_path, "--device", "cpu", "--size", "small", "--operation-seconds", "20", *only)
    states: dict[str, set[str]] = {}
    for name, one in found.items():
        states.setdefault(one["state"], set()).add(name)

    assert states["wrong"] == {"products/mm fp32", "convolutions/conv2d fp32", "reductions/softmax fp16"}
    product = found["products/mm fp32"]
    assert "values wrong, first at [2, 5]" in product["detail"]
    assert 0 < product["tolerance"] < product["error"] < 1e-3
    assert "21x3" in found["convolutions/conv2d fp32"]["detail"]
    assert "not a number" in found["reductions/softmax fp16"]["detail"]

    assert states["crash"] == {f"sorting/topk {one}" for one in ("fp64", "fp32", "fp16")}
    assert "SIGSEGV" in found["sorting/topk fp32"]["detail"]
    assert "memory that is not its own" in found["sorting/topk fp32"]["detail"]
    assert states["hang"] == {"transforms/rfft fp64", "transforms/rfft fp32"}
    assert "within 20 s" in found["transforms/rfft fp32"]["detail"]

    lacking = {name for name in states["error"] if "missing kernels" in found[name]["detail"]}
    assert {"factorizations/solve fp64", "factorizations/solve fp32"} <= lacking == states["error"]
    assert all("next: " in found[name]["detail"] for name in lacking)

    assert {"products/mm fp64", "products/mm fp16", "products/einsum fp32"} <= states["ok"]
    assert {"convolutions/conv2d fp64", "sorting/sort fp32", "transforms/fft fp32"} <= states["ok"]


def test_an_operation_whose_bits_do_not_stay_the_same_is_found(
    torch_suite: faulty_torch.Run, tmp_path: Path
) -> None:
    faults = ("other bits each time", "other bits, as torch says", "other bits unless it blocks")
    faulty_torch.write(tmp_path, *faults)
    only = [word for one in ("/mm fp", "/bmm fp", "/mv fp") for word in ("--only", one)]
    words = ("--device", "cpu", "--size", "small", "--repeat", "20", *only)
    found = torch_suite(tmp_path, *words, suite="drift")
    states: dict[str, set[str]] = {}
    for name, one in found.items():
        states.setdefault(one["state"], set()).add(name)
    assert states["drift"] == {"products/mm fp32", "products/mv fp32"}
    assert states["apart"] == {f"products/bmm {one}" for one in ("fp64", "fp32", "fp16")}
    assert len(states["ok"]) == 4
    assert states.keys() == {"drift", "apart", "ok"}

    anyhow, alone = found["products/mm fp32"], found["products/mv fp32"]
    assert not anyhow["ok"]
    assert anyhow["blocking"] != "0/20"
    assert "nothing that was tried" in anyhow["cause"]
    assert alone["blocking"] == "0/20"
    assert "HIP_LAUNCH_BLOCKING=1" in alone["next"]
    apart = found["products/bmm fp32"]
    assert apart["ok"]
    assert apart["free"] != "0/20"
    assert "torch calls it nondeterministic" in apart["detail"]


@pytest.mark.parametrize(
    ("fault", "told"),
    [("crash at import", "ended by SIGABRT"), ("missing library", "next: install the package that holds")],
)
def test_a_torch_that_cannot_be_imported_is_told(
    torch_suite: faulty_torch.Run, tmp_path: Path, fault: str, told: str
) -> None:
    faulty_torch.write(tmp_path, fault)
    (only,) = torch_suite(tmp_path, "--device", "cpu").values()
    assert not only["ok"]
    assert told in only["detail"]


def test_what_is_not_there_is_no_failure(torch_suite: faulty_torch.Run, tmp_path: Path) -> None:
    only = ("--only", "compile/", "--only", "attention/", "--only", "/mm")
    lacks = ("--lacks", "triton=no compiler for this target")
    found = torch_suite(tmp_path, "--device", "cpu", "--size", "small", *lacks, *only)
    assert {one["state"] for one in found.values()} == {"ok", "absent"}
    assert found["compile/pointwise fp32"]["detail"].endswith("it needs triton: no compiler for this target")
    assert found["attention/cudnn-kernel fp16"]["state"] == "absent"
    assert found["products/mm fp32"]["state"] == "ok"
