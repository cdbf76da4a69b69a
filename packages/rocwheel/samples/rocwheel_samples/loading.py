"""What a library or program hands to the HIP runtime when it is loaded, seen from within the process."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path

from rocwheel_samples.hip_compiler import RUNTIME, llvm, run

LOADER = """
import ctypes, hashlib, json, sys
library = ctypes.CDLL(sys.argv[1])
library.registered_bundle.restype = ctypes.c_void_p
found = []
for index in range(library.registered_count()):
    address = library.registered_bundle(index)
    head = ctypes.string_at(address, 32)
    if head.startswith(b"CCOB"):
        version = int.from_bytes(head[4:6], "little")
        size = int.from_bytes(head[8:12] if version == 2 else head[8:16], "little")
        found.append(ctypes.string_at(address, size).hex())
        continue
    at, end = address + 32, 32
    for _ in range(int.from_bytes(head[24:], "little")):
        offset, size, length = (ctypes.c_uint64.from_address(at + 8 * i).value for i in range(3))
        at, end = at + 24 + length, max(end, offset + size)
    found.append(ctypes.string_at(address, max(end, at - address)).hex())
print(json.dumps(found))
"""

MAIN = """
#include <stdio.h>
#include <stdint.h>
#include <string.h>
extern int registered_count(void);
extern const void *registered_bundle(int index);
int main(void) {
    for (int i = 0; i < registered_count(); i++) {
        const char *bundle = registered_bundle(i), *row = bundle + 32;
        uint64_t count, field[3];
        if (memcmp(bundle, "__CLANG_OFFLOAD_BUNDLE__", 24)) return 1;
        memcpy(&count, bundle + 24, 8);
        for (uint64_t k = 0; k < count; k++) {
            memcpy(field, row, 24);
            uint64_t hash = 14695981039346656037u;
            for (uint64_t b = 0; b < field[1]; b++)
                hash = (hash ^ (unsigned char)bundle[field[0] + b]) * 1099511628211u;
            printf("%d %.*s %llu %llx\\n", i, (int)field[2], row + 24, (unsigned long long)field[1],
                   (unsigned long long)hash);
            row += 24 + field[2];
        }
    }
    return 0;
}
"""


def registered(library: Path) -> list[bytes]:
    """The bundles that a library registers when another process loads it."""
    done = subprocess.run([sys.executable, "-c", LOADER, str(library)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [bytes.fromhex(one) for one in json.loads(done.stdout)]


@cache
def code_in(bundle: bytes) -> dict[str, bytes]:
    """The code objects of a bundle, by id, as clang-offload-bundler takes them out."""
    bundler = llvm("clang-offload-bundler")
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, "bundle")
        file.write_bytes(bundle)
        common = (bundler, "--type=o", f"--input={file}")
        ids = [one for one in run(*common, "--list").split() if not one.startswith("host-")]
        outs = [Path(name, f"code{number}") for number in range(len(ids))]
        if ids:
            run(*common, "--unbundle", f"--targets={','.join(ids)}", *(f"--output={out}" for out in outs))
        return {one: out.read_bytes() for one, out in zip(ids, outs, strict=True)}


def link_program(folder: Path, objects: list[Path], *flags: str) -> Path:
    """A program that prints the id, size and hash of all code that it registers."""
    source, program = folder / "main.c", folder / "program"
    source.write_text(MAIN)
    run(llvm("clang"), "-O1", source, *objects, *flags, "-o", program)
    return program


EMBEDDED = """
extern void **__hipRegisterFatBinary(const void *);
extern const char bundle{number}[];
__asm__(".section {section},\\"a\\",@progbits\\n.p2align {align}\\n"
        ".globl bundle{number}\\n.hidden bundle{number}\\n"
        "bundle{number}:\\n.incbin \\"{file}\\"\\n.size bundle{number}, .-bundle{number}\\n.text\\n");
"""
REGISTERED = """
__attribute__((section(".hipFatBinSegment"), used))
static struct {{ unsigned magic, version; const void *bundle; void *unused; }} wrapper{number} =
    {{ 0x48495046, 1, bundle{number}, 0 }};
__attribute__((constructor)) static void register{number}(void) {{
    __hipRegisterFatBinary(&wrapper{number});
}}
"""


def embed(
    folder: Path,
    bundles: Sequence[bytes],
    *,
    section: str = ".hip_fatbin",
    align: int = 12,
    unreached: Collection[int] = (),
    flags: Sequence[str] = (),
) -> Path:
    """A library that carries these bundles and registers them, but those that are `unreached`."""
    source = folder / "embedded.c"
    text = ""
    for number, bundle in enumerate(bundles):
        file = folder / f"bundle{number}"
        file.write_bytes(bundle)
        text += EMBEDDED.format(number=number, section=section, align=align, file=file)
        text += "" if number in unreached else REGISTERED.format(number=number)
    source.write_text(text)
    (folder / "runtime.c").write_text(RUNTIME)
    library = folder / "libembedded.so"
    run(
        *(llvm("clang"), "-shared", "-fPIC", "-O1", "-fuse-ld=lld", *flags),
        *(source, folder / "runtime.c", "-o", library),
    )
    return library
