"""What rocwheel sees in real wheels is what LLVM's tools and a second reader see: `make truth`."""

from __future__ import annotations

import os
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.real.independent import Compared, Seen, Tools, code_in_package, code_in_wheel
from tests.real.real_wheels import debian_package, real_wheel

from rocbase.files.atomic import sha256_bytes
from rocwheel.wheels.devicecode.code_objects import code_objects
from rocwheel_samples.code_object import code_object as linked_code_object
from rocwheel_samples.fatbin import compressed_bundle, entry_id, gpu_elf, host_elf, plain_bundle, write_wheel
from rocwheel_samples.hip_compiler import llvm

LIST = Path(__file__).with_name("truth.toml")
WANTED = os.environ.get("TRUTH", "").split()
"""Names of wheels and packages, where not all are wanted."""

ALL: dict[str, list[dict[str, Any]]] = tomllib.loads(LIST.read_text())
KNOWN = [(kind, one) for kind in ("wheel", "package") for one in ALL[kind]]
CHOSEN = [(kind, one) for kind, one in KNOWN if not WANTED or one["name"] in WANTED]
if unknown := sorted(set(WANTED) - {one["name"] for _, one in KNOWN}):
    raise pytest.UsageError(f"TRUTH names {', '.join(unknown)}: not in {LIST.name}")


def tools() -> Tools:
    return Tools(
        readelf=llvm("llvm-readelf"),
        bundler=llvm("clang-offload-bundler"),
        objdump=llvm("llvm-objdump"),
    )


def ours(path: Path) -> Seen:
    return Counter(
        (one.path, ":".join([one.target, *sorted(one.features)]), one.sha256)
        for one in code_objects(path, hashes=True)
    )


@pytest.mark.real
def test_the_independent_reader_sees_code_of_every_form_that_there_is(tmp_path: Path) -> None:
    alone = linked_code_object(0x4A)
    two = [(entry_id("gfx1100"), gpu_elf(0x41)), (entry_id("gfx90a:sramecc+:xnack-"), gpu_elf(0xE3F))]
    packed = [
        compressed_bundle(plain_bundle(two), version=version, method=method)
        for version in (1, 2, 3)
        for method in (0, 1)
    ]
    words = b"the words __CLANG_OFFLOAD_BUNDLE__ and CCOB"
    path = write_wheel(
        tmp_path / "x-1-py3-none-any.whl",
        {
            "x/fat.so": host_elf(plain_bundle(two)),
            **{f"x/{number}.so": host_elf(words + one, name=b".rodata") for number, one in enumerate(packed)},
            "x/alone.so": host_elf(words + alone + words, name=b".rodata"),
            "x/k.hsaco": alone,
        },
    )
    compared = Compared()
    found = code_in_wheel(path, tmp_path, tools(), compared)
    # the plain bundle, in its section as it is, and the compressed ones of version 2
    assert compared == Compared(bundles=3, code_objects=2)
    assert Counter(target for _, target, _ in found.elements()) == {
        "gfx1100": 7,
        "gfx90a:sramecc+:xnack-": 7,
        "gfx1151": 2,
    }
    assert found == ours(path)
    assert {digest for path_, _, digest in found if path_ in ("x/k.hsaco", "x/alone.so")} == {
        sha256_bytes(alone)
    }


@pytest.mark.real
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("kind", "one"), CHOSEN, ids=[f"{one['name']}-{one.get('version') or one['suite']}" for _, one in CHOSEN]
)
def test_a_file_holds_what_an_independent_reader_sees(kind: str, one: dict[str, Any], tmp_path: Path) -> None:
    compared = Compared()
    if kind == "wheel":
        path = real_wheel(one["name"], one["version"])
        theirs = code_in_wheel(path, tmp_path, tools(), compared)
    else:
        path = debian_package(one["name"], one["suite"])
        theirs = code_in_package(path, tmp_path, tools(), compared)
    _compare(path, theirs, one["objects"], compared)


def _compare(path: Path, theirs: Seen, objects: int, compared: Compared) -> None:
    found = ours(path)
    print(f"{path.name}: {theirs.total():,} code objects, targets {sorted({key[1] for key in theirs})}")
    print(f"LLVM listed {compared.bundles:,} of the bundles, took out {compared.code_objects:,} code objects")
    assert sorted((theirs - found).items())[:5] == []
    assert sorted((found - theirs).items())[:5] == []
    assert found.total() >= objects
