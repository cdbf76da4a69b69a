"""Libraries that are not here, made up so that a real library loads: every symbol, and none that works."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection, GNUVerSymSection
from elftools.elf.sections import SymbolTableSection

from rocwheel_samples.hip_compiler import RUNTIME, llvm, run

HOST = """
static void *table[4096], *object[64] = {table};
static void *itself(void) { return object; }
__attribute__((constructor)) static void fill(void) { for (int i = 0; i < 4096; i++) table[i] = itself; }
"""
"""A C++ object each of whose virtual functions gives that object."""


def stub_libraries(
    folder: Path, library: Path, present: Collection[str], objects: Collection[str] = ()
) -> None:
    """Put a library into `folder` for each that `library` needs and that is not `present` (sonames).

    What has no version goes into the first. Functions give 0, those named in `objects` an object; those of
    the HIP runtime that `RUNTIME` has keep what is registered, so that it can be asked for.
    """
    needed, symbols = _undefined(library)
    missing = [name for name in needed if name not in present]
    folder.mkdir(exist_ok=True)
    wanted: dict[str, dict[str, set[str]]] = {name: defaultdict(set) for name in missing}
    for (source, version), names in symbols.items():
        place = source or missing[0]
        if place in wanted:
            wanted[place][version] |= names
    for soname, versions in wanted.items():
        every = set().union(*versions.values())
        text = (RUNTIME if "__hipRegisterFatBinary" in every else "") + HOST
        for name in sorted(every):
            if f" {name}(" not in text and f"*{name}(" not in text:
                text += f"void *{name}(void) {{ return {'object' if name in objects else 0}; }}\n"
        script = "".join(
            f"{version} {{ global: {' '.join(f'{name};' for name in sorted(names))} }};\n"
            for version, names in versions.items()
            if version
        )
        source_file, map_file = folder / f"{soname}.c", folder / f"{soname}.map"
        source_file.write_text(text)
        map_file.write_text(script)
        flags = [f"-Wl,--version-script={map_file}"] if script else []
        run(
            *(llvm("clang"), "-shared", "-fPIC", "-w", "-fuse-ld=lld", f"-Wl,-soname={soname}", *flags),
            *(source_file, "-o", folder / soname),
        )


def _undefined(library: Path) -> tuple[list[str], dict[tuple[str, str], set[str]]]:
    """The libraries that are needed, and undefined symbols by library and version."""
    with library.open("rb") as file:
        elf = ELFFile(file)
        dynamic, dynsym = elf.get_section_by_name(".dynamic"), elf.get_section_by_name(".dynsym")
        assert isinstance(dynamic, DynamicSection) and isinstance(dynsym, SymbolTableSection)
        needed = [str(vars(one)["needed"]) for one in dynamic.iter_tags("DT_NEEDED")]
        versions: dict[int, tuple[str, str]] = {}
        for section in elf.iter_sections():
            if isinstance(section, GNUVerNeedSection):
                for one, auxiliary in section.iter_versions():
                    versions |= {aux["vna_other"]: (one.name, aux.name) for aux in auxiliary}
        table = next(one for one in elf.iter_sections() if isinstance(one, GNUVerSymSection))
        symbols: dict[tuple[str, str], set[str]] = defaultdict(set)
        for number, symbol in enumerate(dynsym.iter_symbols()):
            if symbol["st_shndx"] != "SHN_UNDEF" or symbol["st_info"]["bind"] != "STB_GLOBAL":
                continue
            index = table.get_symbol(number)["ndx"]
            symbols[versions.get(index, ("", ""))].add(symbol.name)
    return needed, symbols
