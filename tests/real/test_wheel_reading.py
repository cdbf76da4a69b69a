"""Wheels that others built, read by rocwright."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.real.real_wheels import real_wheel

from rocwright.wheels.codeobjects import fat_binaries

pytestmark = pytest.mark.real

EIGHT = {"gfx1030", "gfx1100", "gfx1101", "gfx1200", "gfx1201", "gfx908", "gfx90a", "gfx942"}


def test_onnxruntime_has_95_plain_bundles_of_eight_targets() -> None:
    ((member, _, found),) = fat_binaries(real_wheel("onnxruntime-rocm", "1.22.2.post3"))
    assert member.path == "onnxruntime/capi/libonnxruntime_providers_rocm.so"
    assert len(found.bundles) == 95
    assert [one.bundle for one in found.wrappers] == [one.offset for one in found.bundles]
    assert {tuple(one.target for one in bundle.code) for bundle in found.bundles} == {tuple(sorted(EIGHT))}


def test_bitsandbytes_has_compressed_bundles_of_two_versions() -> None:
    found = [one for _, _, one in fat_binaries(real_wheel("bitsandbytes", "0.50.2"))]
    forms = Counter((one.compression, one.version) for binary in found for one in binary.bundles)
    assert set(forms) == {("zstd", 2), ("zstd", 3)}
    assert all(not binary.unreached for binary in found)
