from __future__ import annotations

import os
from pathlib import Path

import pytest

from rocbase.errors import CheckError, InputError
from rocwheel.wheels.audit.llvm import check_listing, find_disassembler
from rocwheel_samples.gpu_assembly import assemble, kernel_source, llvm_tool


def fake(folder: Path, version: str, *processors: str) -> Path:
    """An llvm-objdump that says that it has this version and knows these processors."""
    folder.mkdir(parents=True)
    listed = "".join(f"  {one:<15} - Select the {one} processor.\\n" for one in processors)
    path = folder / "llvm-objdump"
    path.write_text(
        f'#!/bin/sh\ncase "$1" in --version) echo "LLVM version {version}";; *) printf "{listed}";; esac\n'
    )
    path.chmod(0o755)
    return folder


def test_the_newest_that_knows_both_processors_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [
        fake(tmp_path / "old", "99.2", "gfx1", "gfx2"),
        fake(tmp_path / "mid", "100.1", "gfx1", "gfx2"),
        fake(tmp_path / "new", "101.0", "gfx1"),
    ]
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, [*folders, os.environ["PATH"]])))
    found = find_disassembler(["gfx1", "gfx2"])
    assert (found.version, found.path.parent.name, found.spelling) == ("100.1", "mid", ())


def test_where_none_knows_both_what_was_found_and_what_to_install_is_told(tmp_path: Path) -> None:
    folder = fake(tmp_path / "bin", "99.2", "gfx1")
    with pytest.raises(InputError, match="no llvm-objdump that knows gfx1 and gfx2") as error:
        find_disassembler(["gfx1", "gfx2"], tmp_path)
    assert f"{folder / 'llvm-objdump'} (99.2)" in error.value.cause
    assert "apt-get install llvm" in error.value.next_step


def test_a_folder_without_llvm_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        find_disassembler(["gfx1100"], tmp_path)
    assert str(tmp_path) in error.value.cause


def test_the_llvm_of_this_machine_is_found_with_its_switches_for_spelling() -> None:
    llvm_tool("llvm-objdump")
    found = find_disassembler(["gfx1100", "gfx1151"])
    assert {"gfx1100", "gfx1151"} <= found.processors
    assert found.spelling in ((), ("real-true16",))


def test_a_listing_of_what_is_no_code_is_refused(tmp_path: Path) -> None:
    llvm_tool("llvm-objdump")
    (tmp_path / "x").write_bytes(b"no code")
    with find_disassembler(["gfx1100"]).listing(tmp_path / "x", "gfx1100") as running:
        assert b"Disassembly" not in running.output.read()
        with pytest.raises(CheckError, match="cannot read x"):
            check_listing(running.finish(), "x")


def test_a_processor_that_is_ignored_is_an_error(tmp_path: Path) -> None:
    llvm_tool("llvm-objdump")
    path = assemble(tmp_path, kernel_source(), "gfx906")
    with find_disassembler(["gfx906"]).listing(path, "gfx99999") as running:
        running.output.read()
        with pytest.raises(CheckError):
            check_listing(running.finish(), "x")
