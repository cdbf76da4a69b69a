"""Device code goes through the compiler cache by the catalog's launcher, with a real clang and ccache."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from rocwright import sandbox
from rocwright.catalog.load import builtin_catalog
from rocwright.home import Home
from rocwright.sandbox.model import Mount, SandboxJob

UNIT = """
struct dim3 { unsigned x, y, z; };
typedef struct stream *hipStream_t;
extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, hipStream_t);
__attribute__((global)) void set(float *x) { x[0] = NUMBER; }
"""
COMPILE = (
    '"$(hipconfig -l)/clang++" -Wall -Werror -x hip --offload-arch=gfx1030 --offload-arch=gfx803 '
    "-nogpulib -nogpuinc -O2 -DNUMBER={number} -c unit.hip -o {name}.o"
)


def clang() -> Path | None:
    """The folder of a clang of this machine that compiles for AMD GPUs, and links such code."""
    for folder in sorted(Path("/usr/lib").glob("llvm-*/bin")):
        if all((folder / name).exists() for name in ("clang++", "ld.lld")):
            asked = subprocess.run([folder / "clang++", "-print-targets"], capture_output=True, text=True)
            if "amdgcn" in asked.stdout:
                return folder
    return None


CLANG = clang()
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(CLANG is None, reason="no clang here compiles for AMD GPUs"),
    pytest.mark.skipif(shutil.which("ccache") is None, reason="ccache is not installed"),
]


class Bench:
    """A folder that a sandbox sees as /build, with one unit of HIP; the root is that of this machine."""

    def __init__(self, folder: Path, home: Home, engine: str) -> None:
        self.folder, self.engine = folder, sandbox.pick(engine, home.probes)
        (folder / "bin").mkdir(parents=True)
        # in the place of ROCm's own program, which says where the compiler is, or what HIP_CLANG_PATH says
        asked = folder / "bin/hipconfig"
        asked.write_text(f'#!/bin/sh\necho "${{HIP_CLANG_PATH:-{CLANG}}}"\n')
        asked.chmod(0o755)
        (folder / "unit.hip").write_text(UNIT)

    def run(self, *commands: str, **env: str) -> str:
        """What these commands say, behind those of the launcher."""
        [launcher] = [one for one in builtin_catalog().launchers if one.package == "hip-compiler"]
        sandbox.make_writable(self.folder)
        said: list[str] = []
        job = SandboxJob(
            root=Path("/"),
            argv=("/bin/sh", "-eu", "-c", "\n".join([*launcher.setup, *commands])),
            env={"PATH": "/build/bin:/usr/bin:/bin", "CCACHE_DIR": "/build/ccache"} | env,
            workdir="/build",
            mounts=(Mount(source=self.folder, target="/build", writable=True),),
        )
        outcome = sandbox.run(self.engine, job, said.append)
        assert outcome.ok, said
        return "\n".join(said)

    def counted(self) -> tuple[int, int]:
        """Hits and misses, by ccache's own statistics."""
        self.run("ccache --print-stats > statistics")
        told = dict(line.split("\t") for line in (self.folder / "statistics").read_text().splitlines())
        hits = int(told["direct_cache_hit"]) + int(told["preprocessed_cache_hit"])
        return hits, int(told["cache_miss"])

    def bytes_of(self, name: str) -> bytes:
        return (self.folder / f"{name}.o").read_bytes()


@pytest.fixture
def bench(tmp_path: Path, home: Home, engine: str) -> Bench:
    return Bench(tmp_path / "build", home, engine)


def test_the_second_time_the_cache_has_it_and_the_bytes_are_those_without_a_cache(bench: Bench) -> None:
    compiled = COMPILE.format(name="unit", number=1)
    bench.run(compiled)
    first = bench.bytes_of("unit")
    assert bench.counted() == (0, 1)
    bench.run("rm unit.o", compiled)
    assert bench.counted() == (1, 1)
    assert bench.bytes_of("unit") == first
    bench.run("rm unit.o", compiled, CCACHE_DISABLE="1")
    assert bench.counted() == (1, 1)
    assert bench.bytes_of("unit") == first
    assert b"gfx1030" in first
    assert b"gfx803" in first


def test_each_unit_has_an_id_of_its_own(bench: Bench) -> None:
    """Two with the same would not link."""
    bench.run(*(COMPILE.format(name=name, number=1) for name in ("one", "two")))
    ids = [
        {word for word in bench.bytes_of(name).split(b"\0") if word.startswith(b"__hip_cuid_")}
        for name in ("one", "two")
    ]
    assert all(len(one) == 1 for one in ids)
    assert ids[0] != ids[1]
    assert bench.counted() == (0, 2)


def test_other_code_and_other_flags_are_no_hit(bench: Bench) -> None:
    bench.run(*(COMPILE.format(name="unit", number=number) for number in (1, 2)))
    assert bench.counted() == (0, 2)


def test_what_is_no_device_code_is_compiled_and_linked_as_ever(bench: Bench) -> None:
    (bench.folder / "host.cpp").write_text("int main() { return 0; }\n")
    said = bench.run(
        '"$(hipconfig -l)/clang++" -Wall -Werror -c host.cpp -o host.o',
        '"$(hipconfig -l)/clang++" -Wall -Werror host.o -o host',
        "./host && echo it runs",
        '"$(hipconfig -l)/clang" -print-resource-dir',
        '"$(hipconfig -l)/llvm-ar" --version | head -n 1',
    )
    assert "it runs" in said
    assert f"{CLANG.parent if CLANG else ''}/lib/clang/" in said


def test_without_ccache_or_a_compiler_nothing_is_set(bench: Bench) -> None:
    (bench.folder / "bin/hipconfig").write_text("#!/bin/sh\nexit 1\n")
    assert bench.run('echo "${HIP_CLANG_PATH:-nothing is set}"') == "nothing is set"
