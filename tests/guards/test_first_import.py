"""The first import is made once, in a fresh process, and it is its first traceback that is shown."""

from __future__ import annotations

import json
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.guards.conftest import GUARD, Place, copy_of_torch

TENSORPIPE = "from torch._C._distributed_rpc import TensorPipeAgent"
AGAIN = (
    'generic_type: cannot initialize type "RpcBackendOptions": an object with that name is already defined'
)
TWICE = 'generic_type: type "Tensor" is already registered!'

BINDINGS = """
#include <pybind11/pybind11.h>
namespace py = pybind11;
struct Tensor {};
struct RpcBackendOptions {};
extern "C" __attribute__((visibility("default"))) PyObject *PyInit__C() {
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "torch._C", nullptr, -1, nullptr};
  auto m = py::reinterpret_steal<py::module_>(PyModule_Create(&definition));
  try {
    py::class_<Tensor>(m, "Tensor");
    auto rpc = m.def_submodule("_distributed_rpc");
    m.def("_rpc_init", [rpc] { py::class_<RpcBackendOptions>(rpc, "RpcBackendOptions"); });
  } catch (const std::exception &error) {
    PyErr_SetString(PyExc_ImportError, error.what());
    return nullptr;
  }
  return m.release().ptr();
}
"""


def test_an_import_that_works_passes(place: Place) -> None:
    copy_of_torch(place.site, "2.6.0", init="ready = True\n", installed_by="pip")
    assert place.guard().returncode == 0


def test_a_failed_import_shows_its_traceback_whole(place: Place) -> None:
    copy_of_torch(place.site, "2.6.0", init="def load():\n    raise ImportError('no\\nluck')\nload()\n")
    done = place.guard()
    assert done.returncode == 12
    assert "error[check] the first import of torch in a fresh process fails" in done.stdout
    assert f'    File "{place.site}/torch/__init__.py", line 2, in load' in done.stdout
    assert "  ImportError: no\n  luck\n  cause " in done.stdout


def test_of_chained_errors_the_first_is_shown_and_the_last_is_called_a_consequence(place: Place) -> None:
    init = "try:\n    import absent_part\nexcept ImportError:\n    raise OSError('clean-up failed')\n"
    copy_of_torch(place.site, "2.6.0", init=init)
    error = json.loads(place.guard("--json").stdout)["errors"][0]
    assert error["detail"].endswith("ModuleNotFoundError: No module named 'absent_part'")
    assert "OSError: clean-up failed" not in error["detail"]
    assert "a consequence: OSError: clean-up failed" in error["cause"]


def test_a_missing_library_has_its_own_advice(place: Place) -> None:
    init = "import ctypes\nctypes.CDLL('libamdhip64.so.6')\n"
    copy_of_torch(place.site, "2.6.0", init=init)
    error = json.loads(place.guard("--json").stdout)["errors"][0]
    assert "install the package that holds it" in error["next"]


def test_a_failed_import_by_a_pth_file_at_start_up_is_the_first_traceback(place: Place) -> None:
    init = "import sys\nif hasattr(sys, 'again'):\n    raise RuntimeError('second')\n"
    init += "sys.again = 1\nraise OSError('one')\n"
    copy_of_torch(place.site, "2.6.0", init=init)
    (place.site / "early.pth").write_text("import torch\n")
    error = json.loads(place.guard("--json").stdout)["errors"][0]
    assert error["detail"].endswith("OSError: one")
    assert "RuntimeError: second" in error["cause"]


def test_a_crash_names_the_signal(place: Place) -> None:
    copy_of_torch(place.site, "2.6.0", init="import os\nos.kill(os.getpid(), 4)\n")
    error = json.loads(place.guard("--json").stdout)["errors"][0]
    assert error["what"].endswith("is ended by signal 4 (SIGILL)")
    assert "torch/__init__.py" in error["detail"]


def test_an_import_that_hangs_ends_at_its_limit(place: Place) -> None:
    copy_of_torch(place.site, "2.6.0", init="import time\ntime.sleep(60)\n")
    error = json.loads(place.guard("--json", "--seconds", "1.5").stdout)["errors"][0]
    assert error["what"].endswith("takes longer than 1.5 s")


@pytest.fixture(scope="module")
def bindings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compiled `_C`, set up by hand as torch does it, with the two registrations that matter."""
    import pybind11

    folder = tmp_path_factory.mktemp("bindings")
    (folder / "bindings.cpp").write_text(BINDINGS)
    headers = [f"-I{pybind11.get_include()}", f"-I{sysconfig.get_path('include')}"]
    words = ["g++", "-std=c++17", "-O0", "-shared", "-fPIC", "-fvisibility=hidden", *headers, "bindings.cpp"]
    subprocess.run([*words, "-o", "_C.so"], cwd=folder, check=True, timeout=300)
    return folder / "_C.so"


def torch_with_bindings(folder: Path, bindings: Path, init: str) -> None:
    package = copy_of_torch(folder, "2.6.0", init=init)
    shutil.copyfile(bindings, package / "_C.so")


@pytest.mark.real
def test_two_copies_in_one_process_say_already_registered_and_the_guard_stops_before(
    place: Place, bindings: Path
) -> None:
    torch_with_bindings(place.workdir, bindings, "from torch import _C\n")
    torch_with_bindings(place.site, bindings, "from torch import _C\n")
    build = (
        "import sys, torch\n"
        "sys.path.remove('')\n"
        "for name in [n for n in sys.modules if n.partition('.')[0] == 'torch']: del sys.modules[name]\n"
        "import torch\n"
    )
    without = place.run("-c", build)
    assert without.returncode == 1
    assert TWICE in without.stderr

    done = place.guard()
    assert done.returncode == 12
    assert done.stdout.startswith("error[check] torch can be imported from 2 places\n")
    assert "is already registered" in done.stdout


@pytest.mark.real
def test_one_copy_whose_first_import_is_caught_says_already_defined_and_the_guard_shows_the_first(
    place: Place, bindings: Path
) -> None:
    torch_with_bindings(place.site, bindings, f"from torch import _C\n_C._rpc_init()\n{TENSORPIPE}\n")
    without = place.run("-c", "try:\n    import torch\nexcept ImportError:\n    pass\nimport torch\n")
    assert without.returncode == 1
    assert AGAIN in without.stderr
    assert "TensorPipeAgent" not in without.stderr

    done = place.guard()
    assert done.returncode == 12
    assert "error[check] the first import of torch in a fresh process fails" in done.stdout
    assert "ImportError: cannot import name 'TensorPipeAgent'" in done.stdout
    assert "USE_DISTRIBUTED=1 and USE_TENSORPIPE=0" in done.stdout
    assert AGAIN not in done.stdout


@pytest.mark.real
def test_a_package_that_catches_the_first_import_itself_is_found_out(place: Place, bindings: Path) -> None:
    torch_with_bindings(place.site, bindings, f"from torch import _C\n_C._rpc_init()\n{TENSORPIPE}\n")
    helper = place.site / "torchvision"
    helper.mkdir()
    (helper / "__init__.py").write_text("try:\n    import torch\nexcept Exception:\n    pass\nimport torch\n")
    assert AGAIN in place.run("-c", "import torchvision").stderr

    done = place.run(str(GUARD), "torchvision", "--json")
    error = json.loads(done.stdout)["errors"][0]
    assert error["what"] == "the first import of torch fails, is caught, and torch is imported again"
    assert error["detail"].splitlines()[0] == "Traceback (most recent call last):"
    assert error["detail"].splitlines()[-1].startswith("ImportError: cannot import name 'TensorPipeAgent'")
    assert "<trap>" not in error["detail"]
    assert (
        f"not two copies: ImportError: {AGAIN}" in error["cause"]
        or f"RuntimeError: {AGAIN}" in error["cause"]
    )


@pytest.mark.real
def test_two_files_of_one_library_in_a_finished_environment_are_named(place: Place, tmp_path: Path) -> None:
    init = "import ctypes, os\nctypes.CDLL(os.path.join(os.path.dirname(__file__), 'libtorch_cpu.so.2.6'))\n"
    own = copy_of_torch(place.site, "2.6.0", init=init, installed_by="pip")
    other = place.site / "torchaudio"
    other.mkdir()
    (other / "__init__.py").write_text(init.replace(".so.2.6", "-0a1b2c3d.so"))
    (tmp_path / "empty.c").write_text("int answer(void) { return 42; }\n")
    library = own / "libtorch_cpu.so.2.6"
    subprocess.run(["gcc", "-shared", "-fPIC", tmp_path / "empty.c", "-o", library], check=True)
    assert place.guard("--loaded").stdout.endswith(f"libtorch_cpu.so: {library}\n")

    shutil.copyfile(library, other / "libtorch_cpu-0a1b2c3d.so")
    done = place.run(str(GUARD), "torch", "torchaudio", "--loaded")
    assert done.returncode == 12
    assert (
        "libtorch_cpu.so is loaded from more than one file once torch torchaudio is imported" in done.stdout
    )
    assert f"{other}/libtorch_cpu-0a1b2c3d.so" in done.stdout
