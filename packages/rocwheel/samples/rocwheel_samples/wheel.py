"""Small wheels that install."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

from rocwheel_samples.fatbin import entry_id, fatbin, gpu_elf, host_elf, plain_bundle

CODE = {
    "gfx1030": gpu_elf(0x036),
    "gfx1100": gpu_elf(0x041),
    "gfx1151": gpu_elf(0x04A),
    "gfx11-generic": gpu_elf(0x054 | 1 << 24, abi=4),
}


def make_wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    *,
    tag: str = "py3-none-any",
    requires: str = ">=3.9",
    needs: tuple[str, ...] = (),
    targets: tuple[str, ...] = (),
    files: Mapping[str, bytes] | None = None,
    metadata: bytes | None = None,
) -> Path:
    """A wheel that installs; with `targets`, one whose library holds code for those."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Python: {requires}"] if requires else []
    lines += [f"Requires-Dist: {one}" for one in needs]
    told = "\n".join([*lines, "", "About it.", ""]).encode()
    content = {
        f"{name}/__init__.py": f"VERSION = {version!r}\n".encode(),
        f"{info}/METADATA": told if metadata is None else metadata,
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n".encode(),
    }
    if targets:
        bundle = plain_bundle([(entry_id(one), CODE[one]) for one in targets])
        content[f"{name}/lib.so"] = host_elf(fatbin([bundle]))
    content |= files or {}
    record = "".join(f"{path},,\n" for path in (*content, f"{info}/RECORD"))
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, data in (content | {f"{info}/RECORD": record.encode()}).items():
            archive.writestr(place, data)
    return path
