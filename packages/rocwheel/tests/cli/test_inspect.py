from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rocwheel.cli import ALIASES, VERBS, cli
from rocwheel.cli.inspect import command
from rocwheel_samples.fatbin import entry_id, fatbin, gpu_elf, host_elf, plain_bundle, write_wheel
from rocwheel_samples.tables import each

LIBRARY = host_elf(fatbin([plain_bundle([(entry_id("gfx11-generic"), gpu_elf(0x54 | 1 << 24, abi=4))])]))


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    kernels = {f"x/k{number}.hsaco": gpu_elf(0x4A) for number in range(3)}
    files = {"x/a.so": LIBRARY, "y/k.co": gpu_elf(0x2A), **kernels}
    return write_wheel(tmp_path / "x-1-py3-none-any.whl", files)


def shown(*words: str | Path) -> str:
    done = CliRunner().invoke(command, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_library_is_told_with_what_its_generic_code_covers(wheel: Path) -> None:
    first, second = [line for line in shown(wheel).splitlines() if "x/a.so" in line or "covers" in line][:2]
    assert first.split() == ["x/a.so", f"{len(LIBRARY):,}", "1", "bundle"]
    assert "gfx1151" in second


def test_files_that_are_one_code_object_each_are_told_together(wheel: Path) -> None:
    lines = [line.split() for line in shown(wheel).splitlines()]
    assert ["x/*.hsaco", "204", "3", "files,", "a", "code", "object", "each"] in lines
    assert ["gfx1151", "3", "204"] in lines
    assert ["y/k.co", "68", "a", "code", "object"] in lines


def test_files_that_are_alone_in_their_folders_are_told_by_the_folder_above(tmp_path: Path) -> None:
    code, other = gpu_elf(0x4A), gpu_elf(0x2A)
    files = {
        **{f"x/tuned/n={number}/k.hsaco": code if number % 2 else other for number in range(5)},
        "x/tuned/n=0/k.co": code,  # the only one of its ending
        "x/tuned/two/a.hsaco": code,
        "x/tuned/two/b.hsaco": code,
        "k.hsaco": code,
        "y/k.hsaco": code,
    }
    lines = shown(write_wheel(tmp_path / "x-1-py3-none-any.whl", files)).splitlines()
    told = [line.split() for line in lines if not line.startswith((" ", "file", "all"))]
    size = str(len(code))
    assert [one for one in told if one] == [
        ["k.hsaco", size, "a", "code", "object"],
        ["x/tuned/n=0/k.co", size, "a", "code", "object"],
        ["x/tuned/*/*.hsaco", str(5 * len(code)), "5", "files,", "a", "code", "object", "each"],
        ["x/tuned/two/*.hsaco", str(2 * len(code)), "2", "files,", "a", "code", "object", "each"],
        ["y/k.hsaco", size, "a", "code", "object"],
    ]


def test_the_same_is_there_as_json(wheel: Path) -> None:
    told = json.loads(shown(wheel, "--json"))
    lone = [f"x/k{number}.hsaco" for number in range(3)]
    assert [one["path"] for one in told["libraries"]] == ["x/a.so", *lone, "y/k.co"]
    (target,) = told["libraries"][0]["targets"]
    assert (target["target_id"], target["count"]) == ("gfx11-generic", 1)
    assert [one["generic_version"] for one in told["libraries"][0]["code"]] == [1]
    assert {one["target_id"] for one in told["totals"]} == {"gfx11-generic", "gfx1151", "gfx803"}


def test_a_file_without_gpu_code_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "x.so").write_bytes(host_elf(b"x", name=b".text"))
    assert shown(tmp_path / "x.so").startswith("no GPU code in ")


def test_help_loads_the_names_of_the_verbs_alone() -> None:
    program = (
        "import sys; from rocwheel.cli import cli; cli(['--help'], standalone_mode=False);"
        "print({one for one in sys.modules if one.startswith(('rocbase.', 'rocwheel.'))})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = ast.literal_eval(done.stdout.splitlines()[-1])
    assert {one for one in loaded if not one.startswith(("rocbase.cli", "rocwheel.cli"))} == {
        "rocbase.processes",
        "rocbase.processes.startup",
        "rocbase.terminal",
        "rocwheel.version",
    }
    assert not {one for one in loaded if one.removeprefix("rocwheel.cli.") in VERBS}


def test_what_need_not_be_loaded_is_not(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "x.so").write_bytes(LIBRARY)
    heavy = "{'pydantic', 'rich', 'elftools', 'packaging', 'tarfile', 'zipfile'} & set(sys.modules)"
    for path in (tmp_path / "x.so", wheel):
        program = (
            "import sys; from rocwheel.cli import cli;"
            f"cli(['inspect', {str(path)!r}], standalone_mode=False); print({heavy})"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "set()"


@each(("old", "new"), ALIASES.items())
def test_a_verb_of_before_is_the_verb_of_today_and_help_does_not_name_it(old: str, new: str) -> None:
    told = [CliRunner().invoke(cli, [verb, "--help"]) for verb in (old, new)]
    assert [one.exit_code for one in told] == [0, 0]
    assert told[0].output.partition("\n")[2] == told[1].output.partition("\n")[2]
    assert old not in CliRunner().invoke(cli, ["--help"]).output
