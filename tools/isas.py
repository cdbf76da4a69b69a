"""Make isas.toml of rocwheel from LLVM's own tables.

    cd llvm/lib/Target/AMDGPU
    llvm-tblgen -I ../../../include -I . --dump-json AMDGPU.td -o /tmp/amdgpu.json
    python tools/isas.py /tmp/amdgpu.json 22.1.8 > packages/rocwheel/src/rocwheel/data/isas.toml

A feature that machine_code.toml does not know, and that LLVM's disassembler does not go by, is an error: read
what LLVM does with it, and give it a row.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent.parent / "packages/rocwheel/src/rocwheel/data/machine_code.toml"

HEAD = """\
# What each processor is, as far as machine code can tell.
# Made by tools/isas.py from LLVM's tables; not edited by hand.
#
# `features` are those of machine_code.toml that the processor has. Of a work-group: `lds` bytes at most,
# `simds` units that its waves share, `cu_simds` where a kernel asks for the CU mode (the same number where
# there is no choice), `waves` at most on one unit. Of a wave: `sgprs` and `scratch` bytes at most, and for
# each size of waves `vgprs` vector registers in one unit, given out by the `granule`, told in descriptors
# in steps of `told`, `most` for one wave.

source = [
  "LLVM {version} llvm/lib/Target/AMDGPU: AMDGPU.td, GCNProcessors.td, through llvm-tblgen --dump-json",
  "LLVM {version} llvm/lib/Target/AMDGPU: Utils/AMDGPUBaseInfo.cpp (IsaInfo), GCNSubtarget.h",
]
"""

# What the processors share where they do not say otherwise.
LIMITS = ("lds", "simds", "cu_simds", "waves", "sgprs", "scratch")


def main(path: str, version: str) -> None:
    records = json.loads(Path(path).read_text())
    known = tomllib.loads(DATA.read_text())
    rows = {name for kind in ("hazard", "relied", "differs") for name in known[kind]}
    silent = rows | set(known["other"]["told"]) | set(known["other"]["speed"])
    decoded = decoded_features(records)
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    unknown: set[str] = set()
    for name, features in processors(records).items():
        if name.startswith("gfx"):
            unknown |= features - silent - decoded
            groups.setdefault(tuple(described(features, rows).items()), []).append(name)
    if unknown:
        sys.exit(f"machine_code.toml does not know: {', '.join(sorted(unknown))}")
    shared = {key: Counter(dict(isa)[key] for isa in groups).most_common(1)[0][0] for key in LIMITS}
    print(HEAD.format(version=version))
    print("\n".join(["[default.isa]", *(f"{key:8} = {value}" for key, value in shared.items())]))
    for isa, names in groups.items():
        print(f"\n[[isa]]\nnames    = {listed(names)}")
        print("\n".join(f"{key:8} = {value}" for key, value in isa if shared.get(key) != value))


def processors(records: dict[str, Any]) -> dict[str, set[str]]:
    """Every feature of each processor, and what those imply."""

    def closure(name: str) -> set[str]:
        record = records[name]
        return {record["Name"]}.union(*(closure(one["def"]) for one in record["Implies"]))

    return {
        records[one]["Name"]: set().union(*(closure(feature["def"]) for feature in records[one]["Features"]))
        for one in records["!instanceof"]["Processor"]
    }


def decoded_features(records: dict[str, Any]) -> set[str]:
    """The features that conditions of the assembler and disassembler name."""
    names = {one: records[one]["Name"] for one in records["!instanceof"]["SubtargetFeature"]}
    found: set[str] = set()

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            if part.get("def") in names:
                found.add(names[part["def"]])
            for one in part.values():
                walk(one)
        elif isinstance(part, list):
            for one in part:
                walk(one)

    for one in records["!instanceof"]["AssemblerPredicate"]:
        walk(records[one]["AssemblerCondDag"])
    return found


def described(features: set[str], rows: set[str]) -> dict[str, str]:
    gfx10 = "gfx10-insts" in features
    gfx90a, family1250 = "gfx90a-insts" in features, "gfx1250-insts" in features
    waves = [32] if family1250 else [32, 64] if gfx10 else [64]
    lds = next((one for one in features if one.startswith("addressablelocalmemorysize")), "32768")
    return {
        "features": listed(sorted(features & rows)),
        "lds": lds.removeprefix("addressablelocalmemorysize"),
        "simds": "4",
        "cu_simds": "2" if gfx10 and not family1250 else "4",
        "waves": str(8 if gfx90a else 10 if not gfx10 else 16 if "gfx10-3-insts" in features else 20),
        "sgprs": str(scalar_registers(features)),
        "scratch": str(scratch(features)),
    } | {key: value for size in waves for key, value in registers(size, features).items()}


def scalar_registers(features: set[str]) -> int:
    if "sgpr-init-bug" in features:
        return 96
    return 106 if "gfx10-insts" in features else 102 if "gfx8-insts" in features else 104


def scratch(features: set[str]) -> int:
    """Bytes for a wave: the width of the field WAVESIZE of COMPUTE_TMPRING_SIZE, and its unit."""
    bits, unit = (18, 256) if "gfx12" in features else (15, 256) if "gfx11" in features else (13, 1024)
    return unit * ((1 << bits) - 1)


def registers(wave: int, features: set[str]) -> dict[str, str]:
    """Vector registers as a wave of this size sees them; half as many in a wave of 64 as in one of 32."""
    share = wave // 32
    if "gfx90a-insts" in features:
        counts = (512, 8, 8, 512)
    elif "gfx10-insts" not in features:
        counts = (256, 4, 4, 256)
    else:
        large = "allocate1_5xvgprs" in features
        many = "1024-addressable-vgprs" in features
        granule = 24 if large else 16 if "gfx10-3-insts" in features else 8
        most = 1024 // share if many else 256
        counts = ((1536 if large else 1024) // share, granule // share, (16 if many else 8) // share, most)
    vgprs, granule, told, most = counts
    return {f"wave{wave}": f"{{ vgprs = {vgprs}, granule = {granule}, told = {told}, most = {most} }}"}


def listed(names: list[str]) -> str:
    text = "[" + ", ".join(f'"{name}"' for name in names) + "]"
    if len(text) < 100:
        return text
    lines, line = [], " "
    for name in names:
        if len(line) > 90:
            lines.append(line)
            line = " "
        line += f' "{name}",'
    return "[\n" + "\n".join([*lines, line]) + "\n]"


if __name__ == "__main__":
    main(*sys.argv[1:])
