"""The catalog's edits on upstream's own source, and what CMake 4 says before and after them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from rocwright.catalog.folders import DATA
from rocwright.catalog.load import builtin_catalog, load_edits
from rocwright.catalog.place import DebianPlace
from rocwright.catalog_lint.trees import Shelf, wanted_trees
from rocwright.execution.fetch import fetch
from rocwright.home import Home
from rocwright.model.architecture import host_architecture
from rocwright.model.edits import Edit
from rocwright.model.versions import version_in
from rocwright.sources import index
from rocwright.sources.archive import unpack
from rocwright.sources.bases.tools import Tools
from rocwright.sources.debian import DebianArchive
from rocwright.sources.patching.check import check_tree
from rocwright.sources.patching.edits import EditOutcome, State, apply_edits
from rocwright.store.local import LocalStore
from rocwright.store.model import verified

pytestmark = pytest.mark.real

SUITE = "trixie"
THIRD_PARTY = {
    "gloo": ("gloo", "5354032"),
    "fp16": ("FP16", "4dfe081"),
    "psimd": ("psimd", "072586a"),
    "onednn": ("ideep/mkl-dnn", "3.7.2"),
}
"""Source packages that are what torch 2.6.0 has in third_party: the folder, and a part of the version."""

Apt = Callable[[str, Path], str]


@pytest.fixture(scope="session")
def apt(sources_home: Home) -> Apt:
    """Unpack upstream's tarball of a source package into a folder; gives the version."""
    base = builtin_catalog().bases["debian"]
    archive = DebianArchive(Tools(sources_home), SUITE, base.architecture[host_architecture()])
    archive.refresh()
    store = LocalStore(sources_home.store)

    def bring(package: str, folder: Path) -> str:
        source = archive.source(package)
        (pin,) = [one for one in source.files if ".orig.tar." in one.filename]
        fetch([pin], store, sources_home, sources_home.path / "scratch", print)
        unpack(verified(store, pin.sha256), folder, filename=pin.filename)
        return source.version

    return bring


@pytest.fixture(scope="session")
def torch_tree(apt: Apt, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PyTorch 2.6.0 with those of its third-party trees that the archive has."""
    tree = tmp_path_factory.mktemp("torch")
    assert apt("pytorch", tree).startswith("2.6.0")
    for package, (folder, version) in THIRD_PARTY.items():
        assert version in apt(package, tree / "third_party" / folder)
    return tree


@pytest.fixture(scope="session")
def sdist(sources_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """The tree of a source distribution."""
    store = LocalStore(sources_home.store)

    def bring(project: str, version: str) -> Path:
        pin = index.find_sdist(project, version, store)
        fetch([pin], store, sources_home, sources_home.path / "scratch", print)
        tree = tmp_path_factory.mktemp(project)
        unpack(verified(store, pin.sha256), tree, filename=pin.filename)
        return tree

    return bring


def judged(
    name: str, tree: Path, version: str, *targets: str, kind: str = ""
) -> dict[str, list[EditOutcome]]:
    """The verdicts on a component's edits for that kind of place, by file; nothing may be written."""
    edits = load_edits(DATA, name)
    before = {edit.file: (tree / edit.file).read_bytes() for edit in edits if (tree / edit.file).is_file()}
    column = check_tree(tree, edits, targets or ("gfx1151",), version=version, kind=kind)
    assert before == {file: (tree / file).read_bytes() for file in before}
    found: dict[str, list[EditOutcome]] = {}
    for one in column.verdicts:
        if one is not None:
            found.setdefault(one.edit.file, []).append(one)
    return found


def for_version(name: str, version: str, *targets: str) -> list[Edit]:
    """The edits of a component for one of its versions, whatever stands beside it."""
    return [one.for_targets(targets) for one in load_edits(DATA, name) if version_in(version, one.versions)]


def states(verdicts: list[EditOutcome]) -> set[State]:
    return {one.state for one in verdicts}


def test_the_edits_of_torch_fit_its_source(torch_tree: Path) -> None:
    found = judged("pytorch", torch_tree, "2.6.0", kind="git")
    own = {file for file in found if not file.startswith("third_party/")}
    assert len(own) > 5
    for file in (
        *own,
        "third_party/psimd/CMakeLists.txt",
        "third_party/FP16/CMakeLists.txt",
        "third_party/gloo/CMakeLists.txt",
        "third_party/gloo/gloo/types.h",
    ):
        assert states(found.pop(file)) == {State.APPLIES}, file
    # the archive's oneDNN is newer than torch's, and asks for 3.13
    assert states(found.pop("third_party/ideep/mkl-dnn/CMakeLists.txt")) == {State.ABSORBED}
    # NNPACK, ittapi, protobuf and libuv are not in the archive as torch has them
    assert {state for one in found.values() for state in states(one)} == {State.GONE}


@pytest.mark.nightly
def test_the_edits_of_torch_fit_debians_source_with_its_patches(sources_home: Home) -> None:
    catalog = builtin_catalog()
    torch = catalog.component("pytorch")
    (wanted,) = (one for one in wanted_trees(torch, ["2.6.0"], [SUITE]) if isinstance(one.place, DebianPlace))
    architecture = catalog.bases["debian"].architecture[host_architecture()]
    with Shelf(sources_home, catalog.source, architecture, print).tree("pytorch", wanted) as tree:
        found = judged("pytorch", tree, "2.6.0", kind="debian")
        assert (tree / "debian/pocketfft/pocketfft_hdronly.h").is_file()
        assert (tree / "debian/kineto/libkineto/include").is_dir()
    assert len(found) > 5
    assert {state for one in found.values() for state in states(one)} == {State.APPLIES}


TENSORPIPE = {
    "allocator.h": "#include <cstddef>\n#include <deque>\n\nextern uint8_t *chunk;\n",
    "memory.h": "#include <sys/mman.h>\n\n#include <memory>\n\nextern uint8_t *mapped;\n",
}
"""Includes of the headers that GCC 15 refuses, at 52791a2fd214; the Debian archive serves no such tarball."""


@pytest.mark.parametrize("version", ["2.6.0", "2.8.0"])
def test_the_headers_of_tensorpipe_name_the_header_that_they_use(tmp_path: Path, version: str) -> None:
    common = "third_party/tensorpipe/tensorpipe/common"
    (tmp_path / common).mkdir(parents=True)
    for name, text in TENSORPIPE.items():
        (tmp_path / common / name).write_text(text)
    edits = [edit for edit in load_edits(DATA, "pytorch") if edit.file.startswith(f"{common}/")]
    apply_edits(tmp_path, edits, "pytorch", version)
    for name, text in TENSORPIPE.items():
        edited = (tmp_path / common / name).read_text()
        assert edited.splitlines().count("#include <cstdint>") == 1
        assert edited.replace("#include <cstdint>\n", "") == text
    # upstream has it in the tree of 2.9
    found = judged("pytorch", tmp_path, "2.9.1")
    assert states([found[f"{common}/{name}"][0] for name in TENSORPIPE]) == {State.ABSORBED}
    # Debian's source has no third-party trees
    assert {edit.places for edit in edits} == {("git",)}


def test_the_tests_of_rocroller_are_left_out_of_therock(tmp_path: Path) -> None:
    file = tmp_path / "math-libs/BLAS/CMakeLists.txt"
    file.parent.mkdir(parents=True)
    lines = "      -DROCROLLER_ENABLE_CLIENT=OFF\n      -DROCROLLER_BUILD_TESTING={}\n"
    file.write_text(lines.format("${THEROCK_BUILD_TESTING}"))
    edits = [edit for edit in load_edits(DATA, "rocm") if edit.file.startswith("math-libs/BLAS/")]
    apply_edits(tmp_path, edits, "rocm", "7.10.0a20251021")
    assert file.read_text() == lines.format("OFF")


@pytest.mark.nightly
def test_aocl_is_found_where_the_edits_say(torch_tree: Path, tmp_path: Path) -> None:
    modules = "cmake/Modules"
    shutil.copytree(torch_tree / modules, tmp_path / modules)
    edits = [edit for edit in load_edits(DATA, "pytorch") if edit.file.startswith(modules)]
    apply_edits(tmp_path, edits, "pytorch")
    blas = (tmp_path / modules / "FindBLAS.cmake").read_text()
    assert blas.count('"blis-mt")') == 2
    assert '"blis")\n  if' not in blas
    assert "NAMES blis-mt PATHS" in (tmp_path / modules / "FindBLIS.cmake").read_text()


@pytest.mark.nightly
def test_the_edit_of_torchvision_fits_its_source(apt: Apt, tmp_path: Path) -> None:
    assert apt("pytorch-vision", tmp_path).startswith("0.21.0")
    (verdicts,) = judged("torchvision", tmp_path, "0.21.0").values()
    assert states(verdicts) == {State.APPLIES}


def test_the_edits_of_vllm_fit_its_source_and_its_platform_is_found(
    sdist: Callable[[str, str], Path],
) -> None:
    tree = sdist("vllm", "0.10.2")
    found = judged("vllm", tree, "0.10.2", "gfx1151")
    assert {state for one in found.values() for state in states(one)} == {State.APPLIES}
    apply_edits(tree, for_version("vllm", "0.10.2", "gfx1151", "gfx1103"), "vllm", "0.10.2")
    assert ';gfx1151;gfx1103")' in (tree / "CMakeLists.txt").read_text()
    platforms = tree / "vllm/platforms/__init__.py"
    compile(platforms.read_text(), str(platforms), "exec")
    scales = (tree / "vllm/model_executor/layers/quantization/utils/fp8_utils.py").read_text()
    compile(scales, "fp8_utils.py", "exec")
    # a target that is in the list is there already
    (lists, *_) = judged("vllm", sdist("vllm", "0.10.2"), "0.10.2", "gfx1100")["CMakeLists.txt"]
    assert lists.state is State.ABSORBED


@pytest.mark.nightly
def test_the_edits_of_vllm_0_8_fit_its_source(sdist: Callable[[str, str], Path]) -> None:
    version = "0.8.5.post1"
    tree = sdist("vllm", version)
    found = judged("vllm", tree, version, "gfx1151")
    assert {state for one in found.values() for state in states(one)} == {State.APPLIES}
    apply_edits(tree, for_version("vllm", version, "gfx1151"), "vllm", version)
    assert ';gfx1151")' in (tree / "CMakeLists.txt").read_text()
    left = [
        path.name
        for path in (tree / "csrc").rglob("*")
        if path.suffix in (".h", ".cu", ".cuh") and "WARP_SIZE warpSize" in path.read_text()
    ]
    assert not left
    for name in ("__init__", "rocm"):
        compile((tree / f"vllm/platforms/{name}.py").read_text(), name, "exec")


def platform_of(function: str, hip: str | None, *, broken: bool) -> object:
    """What vLLM's own function answers with a torch of this kind and a broken amdsmi, or a whole one."""
    code = f"""
import logging, sys, types
from typing import Optional
logger = logging.getLogger("vllm")
torch, version = types.ModuleType("torch"), types.ModuleType("torch.version")
version.hip = {hip!r}
sys.modules |= {{"torch": torch, "torch.version": version}}
amdsmi = types.ModuleType("amdsmi")
def fail(): raise RuntimeError("no driver")
amdsmi.amdsmi_init = fail if {broken} else (lambda: None)
amdsmi.amdsmi_shut_down = lambda: None
amdsmi.amdsmi_get_processor_handles = lambda: [1]
sys.modules["amdsmi"] = amdsmi
{function}
print(rocm_platform_plugin())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.nightly
def test_the_platform_of_vllm_is_told_by_torch_where_amdsmi_fails(
    sdist: Callable[[str, str], Path],
) -> None:
    tree = sdist("vllm", "0.10.2")
    file = tree / "vllm/platforms/__init__.py"

    def function() -> str:
        text = file.read_text()
        start = text.index("def rocm_platform_plugin")
        return text[start : text.index("\ndef ", start)]

    before = function()
    assert platform_of(before, "6.4", broken=True) == "None"
    apply_edits(tree, [one for one in load_edits(DATA, "vllm") if "platforms" in one.file], "vllm", "0.10.2")
    found = "vllm.platforms.rocm.RocmPlatform"
    assert platform_of(function(), "6.4", broken=True) == found
    assert platform_of(function(), None, broken=True) == "None"
    assert platform_of(function(), "6.4", broken=False) == found


def links_and_names(text: str, amdsmi: str) -> str:
    """What the functions of vLLM's rocm.py say of GPUs that torch names, with such an amdsmi."""
    start = text.index("try:\n    from amdsmi")
    imported = text[start : text.index("\ntry:\n    import vllm._C", start)]
    start = min(text.find(one) % len(text) for one in ("# what is known without", "def with_amdsmi_context"))
    decorator = text[start : text.index("@cache\ndef on_gfx1x", start)]
    start = text.index("    @classmethod\n    @with_amdsmi_context\n    def is_fully_connected")
    functions = text[start : text.index("    @classmethod\n    def get_device_total_memory", start)]
    code = f"""
import logging, sys, types
from functools import lru_cache, wraps
logger = logging.getLogger("vllm")
class torch:
    class cuda:
        get_device_name = staticmethod(lambda number: f"torch says {{number}}")
amdsmi = types.ModuleType("amdsmi")
def fail(): raise RuntimeError("no driver")
def no(*given): raise AssertionError(given)
class AmdSmiException(Exception): pass
amdsmi.AmdSmiException = AmdSmiException
amdsmi.amdsmi_init = fail if {amdsmi == "broken"} else (lambda: None)
amdsmi.amdsmi_shut_down = lambda: None
amdsmi.amdsmi_get_processor_handles = lambda: [7, 8]
amdsmi.amdsmi_get_gpu_asic_info = lambda handle: dict(device_id="", market_name=f"amdsmi says {{handle}}")
amdsmi.amdsmi_topo_get_link_type = lambda one, other: dict(hops=1, type=2)
sys.modules["amdsmi"] = None if {amdsmi == "missing"} else amdsmi
{imported}
{decorator}
_ROCM_DEVICE_ID_NAME_MAP = {{}}
class Platform:
    device_id_to_physical_device_id = staticmethod(lambda number: number)
class Rocm(Platform):
{functions}
print(Rocm.get_device_name(1), Rocm.is_fully_connected([0, 1]), sep=", ")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


@pytest.mark.nightly
def test_vllm_names_a_gpu_without_amdsmi(sdist: Callable[[str, str], Path]) -> None:
    tree = sdist("vllm", "0.10.2")
    file = tree / "vllm/platforms/rocm.py"
    assert links_and_names(file.read_text(), "missing").startswith("NameError: name 'amdsmi_init'")
    assert links_and_names(file.read_text(), "whole") == "amdsmi says 8, True"
    apply_edits(tree, [one for one in load_edits(DATA, "vllm") if "rocm.py" in one.file], "vllm", "0.10.2")
    compile(file.read_text(), str(file), "exec")
    for amdsmi in ("missing", "broken"):
        assert links_and_names(file.read_text(), amdsmi) == "torch says 1, False"
    assert links_and_names(file.read_text(), "whole") == "amdsmi says 8, True"


def test_each_gpu_that_vllm_sends_to_its_attention_kernel_has_one(sdist: Callable[[str, str], Path]) -> None:
    tree = sdist("vllm", "0.10.2")
    file = tree / "csrc/rocm/attention.cu"
    start = "#if defined(__HIPCC__) && "
    compiler = shutil.which("clang++-22") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no clang here compiles for AMD GPUs")

    def has_kernel(gpu: str) -> bool:
        """Whether the file's own condition takes the kernel of gfx11 for a GPU."""
        text = file.read_text()
        [line] = [
            one for one in text.splitlines() if "gfx1100__" in one or ("GFX11__)" in one and start in one)
        ]
        unit = f"{line.replace('defined(__HIPCC__)', '1')}\nKERNEL\n#endif\n"
        command = [
            compiler,
            "-x",
            "c++",
            "-target",
            "amdgcn-amd-amdhsa",
            f"-mcpu={gpu}",
            "-nogpulib",
            "-E",
            "-",
        ]
        done = subprocess.run(command, input=unit, capture_output=True, text=True, check=True)
        return "KERNEL" in done.stdout

    assert (
        'any(arch in GPU_ARCH for arch in ["gfx11", "gfx12"])'
        in (tree / "vllm/platforms/rocm.py").read_text()
    )
    assert [has_kernel(one) for one in ("gfx1100", "gfx1103", "gfx1151")] == [True, False, False]
    apply_edits(
        tree,
        [one for one in for_version("vllm", "0.10.2") if one.file.endswith("rocm/attention.cu")],
        "vllm",
        "0.10.2",
    )
    served = [
        one
        for one in builtin_catalog().component("vllm").released("0.10.2").targets
        if one.startswith("gfx11")
    ]
    assert [one for one in (*served, "gfx1150", "gfx1151") if not has_kernel(one)] == []
    assert not has_kernel("gfx1201")


@pytest.mark.nightly
def test_the_edit_of_flash_attention_fits_its_source(sdist: Callable[[str, str], Path]) -> None:
    tree = sdist("flash-attn", "2.8.3")
    (verdicts,) = judged("flash-attention", tree, "2.8.3").values()
    assert states(verdicts) == {State.APPLIES}
    apply_edits(tree, load_edits(DATA, "flash-attention"), "flash-attention", "2.8.3")
    compile((tree / verdicts[0].edit.file).read_text(), "utils.py", "exec")


@pytest.mark.nightly
def test_the_edits_of_llama_cpp_fit_its_source(sdist: Callable[[str, str], Path]) -> None:
    component = builtin_catalog().component("llama.cpp")
    column = check_tree(
        sdist("llama-cpp-python", "0.3.36") / "vendor/llama.cpp", component.edit, ("gfx1151",)
    )
    assert not column.drifted


# CMake 4

REMOVED = "Compatibility with CMake < 3.5 has been removed"


@pytest.fixture(scope="session")
def cmake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CMake of version 4 in an environment that goes away."""
    folder = tmp_path_factory.mktemp("cmake")
    venv.create(folder, with_pip=True)
    pip: list[str | Path] = [
        folder / "bin/python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    subprocess.run([*pip, "cmake>=4,<5", "ninja"], check=True, timeout=300)
    told = subprocess.run([folder / "bin/cmake", "--version"], capture_output=True, text=True, check=True)
    assert told.stdout.startswith("cmake version 4.")
    return folder / "bin"


def configure(cmake: Path, tree: Path, build: Path, *settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [cmake / "cmake", "-G", "Ninja", "-S", tree, "-B", build, *settings],
        env=os.environ | {"PATH": f"{cmake}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def edits_below(folder: str) -> list[Edit]:
    """The edits of torch in one of its third-party trees, as if that tree stood alone."""
    return [
        edit.model_copy(update={"file": edit.file.removeprefix(f"third_party/{folder}/")})
        for edit in load_edits(DATA, "pytorch")
        if edit.file.startswith(f"third_party/{folder}/")
    ]


@pytest.mark.parametrize(
    "folder", ["psimd", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("FP16", "gloo"))]
)
def test_cmake_4_configures_a_third_party_tree_after_the_edits_and_not_before(
    cmake: Path, torch_tree: Path, tmp_path: Path, folder: str
) -> None:
    tree = shutil.copytree(torch_tree / "third_party" / folder, tmp_path / "tree")
    # FP16 would fetch psimd
    psimd = shutil.copytree(torch_tree / "third_party/psimd", tmp_path / "psimd")
    apply_edits(psimd, edits_below("psimd"), "psimd")
    settings = (f"-DPSIMD_SOURCE_DIR={psimd}", "-DFP16_BUILD_TESTS=OFF", "-DFP16_BUILD_BENCHMARKS=OFF")
    before = configure(cmake, tree, tmp_path / "before", *settings)
    assert before.returncode != 0
    assert REMOVED in before.stderr
    apply_edits(tree, edits_below(folder), folder, "2.6.0")
    after = configure(cmake, tree, tmp_path / "after", *settings)
    assert after.returncode == 0, after.stderr
    assert (tmp_path / "after/build.ninja").is_file()


@pytest.mark.nightly
def test_cmake_4_configures_the_archives_onednn_which_needs_no_edit(
    cmake: Path, torch_tree: Path, tmp_path: Path
) -> None:
    tree = torch_tree / "third_party/ideep/mkl-dnn"
    settings = ("-DDNNL_CPU_RUNTIME=SEQ", "-DDNNL_BUILD_TESTS=OFF", "-DDNNL_BUILD_EXAMPLES=OFF")
    done = configure(cmake, tree, tmp_path / "build", *settings)
    assert done.returncode == 0, done.stderr
    told = apply_edits(tree, edits_below("ideep/mkl-dnn"), "oneDNN", "2.7.0")
    assert "applied already" in told[0]


@pytest.mark.nightly
def test_cmake_4_configures_a_tree_with_onednns_old_minimum_after_the_edit(
    cmake: Path, torch_tree: Path, tmp_path: Path
) -> None:
    tree = shutil.copytree(torch_tree / "third_party/ideep/mkl-dnn", tmp_path / "tree")
    lists = tree / "CMakeLists.txt"
    text = lists.read_text()
    assert text.count("VERSION 3.13)") == 1
    lists.write_text(text.replace("VERSION 3.13)", "VERSION 2.8.12)"))
    settings = ("-DDNNL_CPU_RUNTIME=SEQ", "-DDNNL_BUILD_TESTS=OFF", "-DDNNL_BUILD_EXAMPLES=OFF")
    before = configure(cmake, tree, tmp_path / "before", *settings)
    assert before.returncode != 0
    assert REMOVED in before.stderr
    apply_edits(tree, edits_below("ideep/mkl-dnn"), "oneDNN", "2.6.0")
    after = configure(cmake, tree, tmp_path / "after", *settings)
    assert after.returncode == 0, after.stderr
