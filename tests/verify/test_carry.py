"""A verification that is carried to another machine: packed, run there by its one script, taken back."""

from __future__ import annotations

import hmac
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from samples.project import TinyProject, make_sources, open_project, put_roots
from tests.verify.stored import put_alpha

from rocbase.errors import CheckError, ExplainedError, InputError
from rocbase.model import canonical_json
from rocwheel_samples.fake_rocm import compile_library
from rocwheel_samples.trees import write_tree
from rocwright.home import Home
from rocwright.records.opening import read_records
from rocwright.verify import carried, carry

SCRIPT = """import json, os, sys
from pathlib import Path
assert Path("/artifact/file").read_text(), "the artifact is there"
drivers = sorted(os.listdir("/driver"))
for name, device in (("answers", "NVIDIA H200"), ("as-the-cpu", "NVIDIA H200")):
    line = {"name": name, "ok": True, "detail": " ".join(drivers), "device": device}
    print("ROCWRIGHT-CHECK " + json.dumps(line))
print("a last word")
sys.exit(os.path.exists("/sys") is False)
"""

SPEED = """import sys
print("device: NVIDIA H200")
for run in range(int(sys.argv[1])):
    print(f"speed: {100 + run} GB/s")
"""

MEASUREMENT = """
[[measurement]]
name = "speed"
components = ["alpha"]
script = "bench/speed.py"
arguments = ["{runs}"]
figure = [{ name = "speed", unit = "GB/s", better = "higher", pattern = '^speed: ([0-9.]+) GB/s$' }]
"""

RECIPE = {
    "alpha": {
        "kind": "archive",
        "run": ["true"],
        "output": [{"name": "archive", "pattern": "alpha-*.tar.gz"}],
        "system": {"build": ["shell"], "check": ["shell"]},
        "check": [{"name": "runs", "kind": "script", "script": "checks/runs.py"}],
    }
}

Packed = tuple[TinyProject, Path]


@pytest.fixture
def packed(
    home: Home, engine: str, python_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Packed:
    """A stack that is built, and the folder that its checks were packed into."""
    monkeypatch.setattr(carry, "PRESET", 0)
    folder = tmp_path / "sources"
    make_sources(folder, RECIPE)
    files = {"checks/runs.py": SCRIPT, "bench/speed.py": SPEED, "bench.toml": MEASUREMENT}
    write_tree(folder / "catalog", files)
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(folder / "catalog"))
    project = open_project(folder, home.path)
    put_roots(project, python_root)
    put_alpha(project, folder)
    carry.pack(project, project.locked, tmp_path / "carry", engine, print)
    return project, tmp_path / "carry"


def ran(folder: Path, **env: str) -> Path:
    """Run the script as another machine does; gives its result."""
    script: list[str | Path] = ["sh", folder / "run.sh"]
    done = subprocess.run(script, env=os.environ | env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "result.json"


def test_what_a_pack_finds_elsewhere_is_evidence_with_its_own_word(packed: Packed, tmp_path: Path) -> None:
    project, folder = packed
    assert sorted(path.name for path in folder.iterdir()) == ["carry.tar.xz", "run.sh"]
    assert (folder / "carry.tar.xz").stat().st_size < carry.MOST
    helper = compile_library(
        tmp_path / "there/libhelp.so", "int help(void) { return 1; }", soname="libhelp.so"
    )
    compile_library(
        tmp_path / "there/libcard.so", "int help(void); int card(void) { return help(); }", needs=(helper,)
    )
    icd = tmp_path / "there/card.json"
    icd.write_text(json.dumps({"ICD": {"library_path": str(tmp_path / "there/libcard.so")}}))
    result = ran(folder, VK_DRIVER_FILES=str(icd))
    findings = carried.take_back(project, project.locked, result, print)
    assert [finding.name for finding in findings] == ["answers", "as-the-cpu"]
    assert {finding.device for finding in findings} == {"another maker's NVIDIA H200"}
    assert {finding.engine for finding in findings} == {"carried"}
    assert {"card.json", "libcard.so", "libhelp.so"} <= {*findings[0].detail.split()}
    with read_records(project.home) as records:
        runs = {run.command: run for run in records.runs()}
    assert (runs["verify"].said, runs["verify"].origin) == ("ran on a GPU of another maker", "carried")
    [figure] = runs["bench"].steps[0].measured
    assert figure.values == (100, 101, 102, 103, 104)
    assert (figure.name, figure.device) == ("speed", "another maker's NVIDIA H200")
    with pytest.raises(CheckError, match="it was taken before"):
        carried.take_back(project, project.locked, result, print)


def edited(document: dict[str, Any]) -> dict[str, Any]:
    document["checks"][0]["lines"] = [
        line.replace("NVIDIA H200", "RX 580") for line in document["checks"][0]["lines"]
    ]
    return document


def elsewhere(document: dict[str, Any]) -> dict[str, Any]:
    return document | {"pack": "0" * 32}


def test_a_measurement_that_failed_there_is_told_and_on_record(
    packed: Packed, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two cards, the second cannot be measured: the checks of both are evidence."""
    project, folder = packed
    result = ran(folder)
    [file] = project.home.carried.iterdir()
    about = carried.CarriedPack.model_validate_json(file.read_text())
    document = json.loads(result.read_text())
    document["checks"][1] |= {"code": 3, "lines": ["no such device"]}
    document.pop("hmac")
    seal = hmac.new(bytes.fromhex(about.key), canonical_json(document), "sha256").hexdigest()
    result.write_text(json.dumps(document | {"hmac": seal}))
    assert len(carried.take_back(project, project.locked, result, print)) == 2
    assert "speed was not measured: it ended with 3: no such device" in capsys.readouterr().out
    with read_records(project.home) as records:
        [run] = [run for run in records.runs() if run.command == "bench"]
    assert (run.steps[0].outcome, run.steps[0].measured) == ("failed", ())


CHANGES: tuple[tuple[Callable[[dict[str, Any]], dict[str, Any]], type[ExplainedError], str], ...] = (
    (edited, CheckError, "it was edited"),
    (elsewhere, InputError, "is of a pack that was not made here"),
    (lambda document: {}, InputError, "is no result of a carried verification"),
)


def test_a_result_that_is_not_what_the_pack_wrote_is_no_evidence(packed: Packed) -> None:
    project, folder = packed
    result = ran(folder)
    text = result.read_text()
    for change, kind, words in CHANGES:
        result.write_text(json.dumps(change(json.loads(text))))
        with pytest.raises(kind, match=words):
            carried.take_back(project, project.locked, result, print)
    with read_records(project.home) as records:
        assert [run for run in records.runs() if run.command == "verify"] == []
    result.write_text(text)
    other_artifact_or_older(project, result)


def other_artifact_or_older(project: TinyProject, result: Path) -> None:
    """A result that was right, after the stack was built anew, and from before it was packed."""
    [file] = project.home.carried.iterdir()
    about = carried.CarriedPack.model_validate_json(file.read_text())
    for change, words in (
        ({"artifacts": {"alpha": "0" * 64}}, "it is of another artifact"),
        ({"packed": "2999-01-01T00:00:00Z"}, "it is older than the artifact"),
    ):
        file.write_text(about.model_copy(update=change).model_dump_json())
        with pytest.raises(CheckError, match=words):
            carried.take_back(project, project.locked, result, print)


def test_what_is_too_large_to_be_carried_is_refused(
    packed: Packed, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, _ = packed
    monkeypatch.setattr(carry, "MOST", 1000)
    with pytest.raises(InputError, match="would have to be carried"):
        carry.pack(project, project.locked, tmp_path / "other", engine, print)
    assert not (tmp_path / "other/run.sh").exists()
