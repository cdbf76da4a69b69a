"""The checks of a stack: what a card lacks is told to the programs that run on it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from samples.project import make_sources, open_project, put_roots
from tests.verify.stored import put_alpha

from rocwheel_samples.trees import write_tree
from rocwright.home import Home
from rocwright.records.model import Finding
from rocwright.verify import run, subject

SCRIPT = """import json, sys
said = {"name": "told", "ok": True, "detail": " ".join(sys.argv[1:]), "device": "cpu"}
print("ROCWRIGHT-CHECK " + json.dumps(said))
"""

RECIPE = {
    "alpha": {
        "kind": "archive",
        "run": ["true"],
        "output": [{"name": "archive", "pattern": "alpha-*.tar.gz"}],
        "system": {"build": ["shell"], "check": ["shell"]},
        "check": [
            {
                "name": "told",
                "kind": "script",
                "script": "checks/told.py",
                "arguments": ["--marks", "{lacks}", "{targets}", "{python}"],
            }
        ],
    }
}

TARGET = "--target gfx1151:32 python3"
"""What `{targets}` and `{python}` become for the lock's GPU."""


def told(home: Home, engine: str, python_root: Path, folder: Path) -> str:
    """Verify a stack that is in the store; gives the arguments that its check was given."""
    [found] = verify(home, engine, python_root, folder, SCRIPT)
    assert found.ok, found.detail
    return found.detail


def verify(home: Home, engine: str, python_root: Path, folder: Path, script: str) -> list[Finding]:
    """Verify a stack that is in the store by this program."""
    make_sources(folder, RECIPE)
    write_tree(folder / "catalog", {"checks/told.py": script})
    with (folder / "catalog/targets.toml").open("a") as file:
        file.write('features = { bf16 = "no", fp16 = "yes", triton = "not upstream" }\nwave = 32\n')
    project = open_project(folder, home.path)
    put_roots(project, python_root)
    put_alpha(project, folder)
    return run.verify(project, project.locked, engine, print)


def test_what_the_card_lacks_is_told_to_a_check_that_has_the_card(
    home: Home, engine: str, python_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "GPU_DEVICES", ("/dev/null",))
    said = told(home, engine, python_root, tmp_path / "sources")
    assert said == f"--marks --lacks bf16=gfx1151: no --lacks triton=gfx1151: not upstream {TARGET}"


def test_the_processor_is_tried_whole(
    home: Home, engine: str, python_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "GPU_DEVICES", ("/dev/no such device",))
    assert told(home, engine, python_root, tmp_path / "sources") == f"--marks {TARGET}"


HOSTILE = """import json, os
for number in range(2000):
    os.mkdir("d")
    os.chdir("d")
os.chdir("/trial")
os.mkfifo("pipe")
os.symlink("/etc", "link")
os.mkdir("shut")
os.chmod("shut", 0)
say = lambda name: print("ROCWRIGHT-CHECK " + name)
say("[" * 60000)
say(json.dumps({"name": "\\ud800\\x1b[2J\\x00", "ok": True}))
for number in range(20000):
    say(json.dumps({"name": str(number), "ok": True}))
"""


def test_a_check_that_leaves_and_tells_odd_things_is_survived(
    home: Home,
    engine: str,
    python_root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    found = verify(home, engine, python_root, tmp_path / "sources", HOSTILE)
    assert len(found) == subject.MOST_FINDINGS + 1
    assert found[0].detail.startswith("cannot be read")
    assert found[1].name == "\\ud800\\x1b[2J\\x00"
    assert not found[-1].ok
    assert "more than 10,000 findings" in found[-1].detail
    assert list((tmp_path / "temporary").glob("rocwright-verify-*")) == []


MAPS = """import json, shutil, subprocess
shutil.copy("/bin/sh", "librocjitsu.so")
lines = [{"name": one, "ok": True, "device": one} for one in ("AMD Radeon 780M Graphics", "cpu")]
for line in lines:
    print("ROCWRIGHT-CHECK " + json.dumps(line))
subprocess.run(["./librocjitsu.so", "-c", "echo 'ROCWRIGHT-CHECK " + json.dumps(lines[0]) + "'; sleep 3; :"])
"""
"""A program that has a file of that name mapped: itself."""


def test_a_check_that_maps_an_emulator_ran_on_no_gpu(
    home: Home, engine: str, python_root: Path, tmp_path: Path
) -> None:
    found = verify(home, engine, python_root, tmp_path / "sources", MAPS)
    emulated = "emulated AMD Radeon 780M Graphics"
    assert [one.device for one in found] == [emulated, "cpu", emulated]


def test_a_check_that_wants_all_outputs_finds_them(
    home: Home, engine: str, python_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RECIPE["alpha"]["check"][0], "outputs", True)  # type: ignore[index]
    lists = "import os\n" + SCRIPT.replace('" ".join(sys.argv[1:])', '" ".join(os.listdir("/outputs"))')
    [found] = verify(home, engine, python_root, tmp_path / "sources", lists)
    assert (found.ok, found.detail) == (True, "alpha-1.0.tar.gz")
