"""How a provider's ROCm is found by builds: its set-up run in a sandbox, on small stand-ins for its files."""

from __future__ import annotations

import ensurepip
import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.execution.conftest import Workshop, put_root
from tests.making import lock_of, make_tiny_root, put_output
from tests.sources.conftest import Index

from rocbase.errors import CompileError
from rocwright.catalog.load import builtin_catalog
from rocwright.model.steps import FilePin, Input, OutputSpec, Resources, RunAction, Step
from rocwright.plan.packages import fetched
from rocwright.plan.resolve.network import NetworkUpstream
from rocwright.plan.values import environment_of

pytestmark = pytest.mark.real

VERSION = "7.14.0"
TARGET = "gfx1151"
LOOK = (
    "command -v hipcc > result",
    # the folder of the packages, or what they lie below
    'ls "$CMAKE_PREFIX_PATH"/hip/hip-config.cmake || ls "$CMAKE_PREFIX_PATH"/lib/cmake/hip/hip-config.cmake',
    'test -f "$HIP_DEVICE_LIB_PATH"/ocml.bc',
    'test "$ROCM_HOME" = "$ROCM_PATH"',
    '{ hipcc; echo "$ROCM_PATH"; } >> result',
    "cp result $OUT/result",
)
"""What a recipe that needs ROCm counts on."""

TREE = {
    "bin/hipcc": "#!/bin/sh\necho compiles\n",
    "lib/cmake/hip/hip-config.cmake": "",
    "lib/llvm/amdgcn/bitcode/ocml.bc": "",
}

COMMAND = """
import sys, tarfile
from pathlib import Path
import rocm_sdk_devel

def main():
    place = Path(rocm_sdk_devel.__file__).parent
    root = place.parent / "_rocm_sdk_devel"
    if not root.exists():
        with tarfile.open(place / "_devel.tar") as packed:
            packed.extractall(root)
    print({"--root": root, "--cmake": root / "lib/cmake", "--bin": root / "bin"}[sys.argv[2]])
"""
"""As the real one: the devel package is unpacked into the environment by the first call."""


def packed_tree(prefix: str = "") -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz" if prefix else "w") as archive:
        for name, text in TREE.items():
            told = tarfile.TarInfo(prefix + name)
            told.size, told.mode = len(text), 0o755
            archive.addfile(told, io.BytesIO(text.encode()))
    return data.getvalue()


def wheel(name: str, files: Mapping[str, bytes], *, needs: str = "", script: str = "") -> bytes:
    about = f"{name}-{VERSION}.dist-info"
    listed = {
        **files,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {VERSION}\n{needs}".encode(),
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if script:
        listed[f"{about}/entry_points.txt"] = f"[console_scripts]\n{script}\n".encode()
    listed[f"{about}/RECORD"] = "".join(f"{one},,\n" for one in (*listed, f"{about}/RECORD")).encode()
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path, content in listed.items():
            archive.writestr(path, content)
    return data.getvalue()


@pytest.fixture
def wheels(index: Index, monkeypatch: pytest.MonkeyPatch) -> Index:
    """TheRock's index, on this machine."""
    extras = ("libraries", "devel", f"device-{TARGET}")
    needed = f"Requires-Dist: rocm-sdk-devel=={VERSION}"
    needs = "".join(f'Provides-Extra: {one}\n{needed}; extra == "{one}"\n' for one in extras)
    devel = {"rocm_sdk_devel/__init__.py": b"", "rocm_sdk_devel/_devel.tar": packed_tree()}
    command = {"rocm_sdk/__init__.py": b"", "rocm_sdk/__main__.py": COMMAND.encode()}
    index.files = {
        "rocm": {
            f"rocm-{VERSION}-py3-none-any.whl": wheel(
                "rocm", command, needs=needs, script="rocm-sdk = rocm_sdk.__main__:main"
            )
        },
        "rocm-sdk-devel": {f"rocm_sdk_devel-{VERSION}-py3-none-any.whl": wheel("rocm_sdk_devel", devel)},
    }
    endpoint = builtin_catalog().provider("therock-wheels").shelf_of(VERSION).index
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", f"{endpoint}={index.url}/simple/")
    return index


@pytest.fixture(scope="module")
def whole_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with all of Python, so that pip works in it."""
    folder = tmp_path_factory.mktemp("whole-root")
    make_tiny_root(folder / "root.tar.zst", folder, python=True, whole=True)
    return folder / "root.tar.zst"


@pytest.fixture
def with_python(workshop: Workshop, whole_root: Path) -> Workshop:
    workshop.store.local.remove("record", workshop.root.key)
    put_root(workshop.store, whole_root)
    return workshop


def pip() -> Path:
    """The wheel of pip that comes with Python, or with Debian's."""
    folders = (Path(ensurepip.__file__).parent / "_bundled", Path("/usr/share/python-wheels"))
    return next(path for folder in folders for path in sorted(folder.glob("pip-*.whl")))


def step_of(
    workshop: Workshop, commands: tuple[str, ...], inputs: tuple[Input, ...], install: tuple[str, ...] = ()
) -> Step:
    base, _ = builtin_catalog().base("arch:2025-10-28")
    lock = lock_of("pytorch", "gfx1103", base="arch:2025-10-28")
    [locked] = [one for one in lock.components if one.name == "pytorch"]
    component = builtin_catalog().component("pytorch")
    step = Step(
        name="needs-rocm",
        component="needs-rocm",
        action=RunAction(
            commands=commands,
            # on a base whose own ROCm would lie elsewhere
            env=environment_of(component, locked, lock, base.env),
            outputs=(OutputSpec(name="out", pattern="result"),),
            install=install,
        ),
        inputs=(
            Input(name="root", key=workshop.root.key, output="root"),
            Input(name="src", key=workshop.tree("needs-rocm").key, output="tree"),
            *inputs,
        ),
        resources=Resources(limit=60),
    )
    workshop.store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
    return step


def fetched_into(workshop: Workshop, name: str, pins: tuple[FilePin, ...]) -> Input:
    step = fetched(name, name, pins)
    workshop.store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
    workshop.run(step)
    return Input(name=name, key=step.key, output="*")


def installed(workshop: Workshop, pins: tuple[FilePin, ...]) -> tuple[Input, ...]:
    sha256, size = workshop.store.put_file(pip())
    installer = pins[0].model_copy(update={"filename": pip().name, "sha256": sha256, "size": size})
    return (fetched_into(workshop, "rocm", pins), fetched_into(workshop, "python", (installer,)))


def locked_wheels(workshop: Workshop) -> tuple[FilePin, ...]:
    catalog = builtin_catalog()
    base, release = catalog.base("ubuntu:24.04")
    with NetworkUpstream(base, release, catalog, workshop.store, workshop.home, print) as online:
        found = online.rocm(catalog.provider("therock-wheels"), VERSION, (TARGET,))
    assert found.wanted == (f"rocm[libraries,devel,device-{TARGET}]=={VERSION}",)
    return found.files


def test_rocm_of_wheels_is_found_by_what_builds_with_it(with_python: Workshop, wheels: Index) -> None:
    inputs = installed(with_python, locked_wheels(with_python))
    setup = builtin_catalog().provider("therock-wheels").setup
    record = with_python.run(step_of(with_python, (*setup, *LOOK), inputs, ("rocm", "python")))
    place, compiles, root = with_python.text(record).splitlines()
    assert compiles == "compiles"
    assert root.startswith("/build/env/lib/python3")
    assert place == f"{root}/bin/hipcc"


@pytest.mark.nightly
def test_wheels_that_do_not_unpack_end_the_step_at_once(with_python: Workshop, wheels: Index) -> None:
    devel = {"rocm_sdk_devel/__init__.py": b"", "rocm_sdk_devel/_devel.tar": b"cut off"}
    wheels.files["rocm-sdk-devel"] = {
        f"rocm_sdk_devel-{VERSION}-py3-none-any.whl": wheel("rocm_sdk_devel", devel)
    }
    inputs = installed(with_python, locked_wheels(with_python))
    setup = builtin_catalog().provider("therock-wheels").setup
    step = step_of(with_python, (*setup, "echo compiling", "touch $OUT/result"), inputs, ("rocm", "python"))
    with pytest.raises(CompileError):
        with_python.run(step)
    assert "compiling" not in with_python.lines


def test_rocm_of_source_is_laid_where_its_own_files_look_for_it(workshop: Workshop) -> None:
    built = Step(
        name="rocm",
        component="rocm",
        action=RunAction(
            commands=("true",), outputs=(OutputSpec(name="archive", pattern="therock-*.tar.gz"),)
        ),
    )
    put_output(workshop.store, built, "archive", packed_tree("rocm/"), workshop.folder)
    inputs = (Input(name="rocm", key=built.key, output="archive"),)
    setup = builtin_catalog().provider("therock-source").setup
    record = workshop.run(step_of(workshop, (*setup, *LOOK), inputs))
    assert workshop.text(record).splitlines() == ["/build/rocm/bin/hipcc", "compiles", "/build/rocm"]


def test_a_base_says_where_its_own_rocm_lies(workshop: Workshop) -> None:
    look = ('echo "$ROCM_PATH $ROCM_HOME $CMAKE_PREFIX_PATH" > $OUT/result', 'echo "$PATH" >> $OUT/result')
    record = workshop.run(step_of(workshop, look, ()))
    told, path = workshop.text(record).splitlines()
    assert told == "/opt/rocm /opt/rocm /opt/rocm"
    assert path.endswith(":/usr/bin:/bin:/opt/rocm/bin:/opt/rocm/llvm/bin")
