"""An emulated GPU: which emulator is taken, what it is told, no claim before its self-test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from samples.project import TinyProject, make_sources, open_project, put_roots
from tests.verify.stored import put_alpha

from rocbase.errors import CheckError, InputError
from rocbase.files.atomic import sha256_bytes
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import builtin_catalog
from rocwright.home import Home
from rocwright.records.model import Finding, said_of
from rocwright.records.opening import read_records
from rocwright.verify import run
from rocwright.verify.emulated import SELF_TEST, emulation

CATALOG = builtin_catalog()
CHECKS = DATA / "checks/emulator"
KERNELS = {"fp64_literal", "thread_ids", "lds_atomics", "division", "half_product", "high_registers"}

EMULATOR = """#!/bin/sh
[ "$1" = --version ] && { echo "rocjitsu 0.2.0"; exit; }
[ "$1" = --config ] && [ -r "$2" ] && [ "$3" = -- ] || exit 1
shift 3
exec "$@"
"""
"""Takes the words that an emulator takes, and emulates nothing."""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The prefix of an emulator that is first in PATH."""
    prefix = tmp_path / "installed"
    for name, text in {
        "bin/rocjitsu": EMULATOR,
        "lib/librocjitsu.so": "a library",
        "share/rocjitsu/configs/gfx1151.json": json.dumps({"num_threads": 8, "vm": {"arch": "rdna3_5"}}),
    }.items():
        path = prefix / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (prefix / "bin/rocjitsu").chmod(0o755)
    monkeypatch.setenv("PATH", f"{prefix / 'bin'}:{os.environ['PATH']}")
    return prefix


def test_where_none_is_installed_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("rocwright.verify.emulated.emulators", lambda: [elsewhere()])
    with pytest.raises(InputError, match="no emulator of gfx1103 is installed") as told:
        emulation("gfx1103", CATALOG)
    assert "rocjitsu is not in PATH" in told.value.cause
    assert "pacman -S rocjitsu" in told.value.next_step
    assert "amdrocm-emulation" in told.value.next_step


def elsewhere() -> object:
    """The emulator that the catalog knows, which lies in no folder of this machine."""
    from rocwheel.wheels.emulators import emulators

    return emulators()[0].model_copy(update={"places": ("/nowhere/bin",)})


def test_a_gpu_that_none_emulates_is_refused_with_the_reason(installed: Path) -> None:
    with pytest.raises(InputError, match="no emulator is known for gfx803") as told:
        emulation("gfx803", CATALOG)
    assert "below gfx908" in told.value.cause


def test_an_emulator_without_its_library_is_not_whole(installed: Path) -> None:
    (installed / "lib/librocjitsu.so").unlink()
    with pytest.raises(InputError, match=r"not whole: librocjitsu\.so is missing"):
        emulation("gfx1151", CATALOG)


def test_a_configuration_that_cannot_be_read_is_named(installed: Path) -> None:
    path = installed / "share/rocjitsu/configs/gfx1151.json"
    for text, why in (("{", "Expecting property name"), ("[]", "it is no JSON object")):
        path.write_text(text)
        with pytest.raises(InputError, match=str(path)) as told:
            emulation("gfx1151", CATALOG)
        assert why in told.value.cause


def test_an_emulators_own_configuration_gets_one_thread(installed: Path) -> None:
    one = emulation("gfx1151", CATALOG)
    assert json.loads(one.configuration) == {"num_threads": 1, "vm": {"arch": "rdna3_5"}}
    assert sha256_bytes(one.configuration.encode()) in one.identity
    assert sha256_bytes(b"a library") in one.identity


def test_a_gpu_without_one_gets_ours(installed: Path) -> None:
    told = json.loads(emulation("gfx1103", CATALOG).configuration)
    device = told["vm"]["gpu"]["device"]
    assert (told["num_threads"], device["gfx_target_version"]) == (1, 110003)
    (units,) = told["topology"]["root"]["children"][1]["children"][2:]
    assert units["children"][0]["name"] == "cu[0:12]"
    assert device["simd_count"] == 12 * device["simd_per_cu"]


def test_each_run_has_a_folder_of_its_own_and_a_report_of_races(installed: Path) -> None:
    one = emulation("gfx1103", CATALOG)
    folder = one.env["ROCJITSU_RUNTIME_DIR"]
    assert folder.startswith("/trial/"), "only that run's sandbox has it"
    words = one.words
    assert words[words.index("--races") + 1] == f"{folder}/race.log"
    assert words[words.index("--") + 1 :] == [
        "/emulator/bin/rocjitsu",
        "--config",
        "/emulator/configuration",
        "--",
    ]


def test_the_self_test_has_its_kernels_and_says_how_many_must_have_run(installed: Path) -> None:
    test = emulation("gfx1103", CATALOG).self_test(CATALOG)
    assert {path.stem for path in (CHECKS / "programs").glob("*.hip")} == KERNELS
    assert test.least == len(KERNELS) + 2


# the self-test's own program, with a compiler that makes programs which say what they are told to


def self_test(
    folder: Path, says: str, status: int = 0, *, races: str = ""
) -> tuple[int, dict[str, dict[str, object]]]:
    """Exit status and lines of the self-test, where each kernel's program prints that and ends so."""
    (folder / "bin").mkdir()
    report = folder / "race.log"
    program = f"#!/bin/sh\\necho '{races}' > {report}\\necho '{says}'\\nexit {status}\\n"
    hipcc = f"""#!/bin/sh
while [ "$1" != -o ]; do shift; done
printf "{program}" > "$2"
chmod +x "$2"
"""
    for name, text in {"hipcc": hipcc, "rocjitsu": EMULATOR}.items():
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    (folder / "configuration").write_text("{}")
    emulator = str(folder / "bin/rocjitsu")
    words = ["--version", f"{emulator} --version", "--target", "gfx1151", "--races", str(report)]
    words += ["--lds-race", "RACE type=LDS", "--race", "RACE type="]
    words += ["--", emulator, "--config", str(folder / "configuration"), "--"]
    done = subprocess.run(
        [sys.executable, CHECKS / "selftest.py", *words],
        env={"PATH": f"{folder / 'bin'}:/usr/bin:/bin"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [json.loads(one.partition(" ")[2]) for one in done.stdout.splitlines()]
    assert lines, done.stderr
    return done.returncode, {one["name"]: one for one in lines}


def test_kernels_that_compute_what_the_cpu_does_pass_with_the_emulators_version(tmp_path: Path) -> None:
    status, said = self_test(tmp_path, "gfx1151 256 0")
    assert status == 0
    assert set(said) == KERNELS | {"version", "races"}
    assert all(one["ok"] for one in said.values())
    assert said["version"]["detail"] == "rocjitsu 0.2.0"
    assert said["division"]["detail"] == "256 values as on the CPU"


@pytest.mark.parametrize(
    ("says", "status"),
    [
        ("gfx1151 256 3 at 5: 1, the CPU has 2", 1),
        ("gfx1151 256 3 at 5: 1, the CPU has 2", 0),
        ("gfx1151 256 0", 139),
        ("gfx1150 256 0", 0),
        ("", 0),
    ],
)
def test_a_kernel_that_is_wrong_or_ends_or_runs_elsewhere_fails(
    tmp_path: Path, says: str, status: int
) -> None:
    code, said = self_test(tmp_path, says, status)
    assert code == 1
    assert not any(said[name]["ok"] for name in KERNELS)


def test_a_race_in_lds_that_the_emulator_reports_fails_it(tmp_path: Path) -> None:
    code, said = self_test(tmp_path, "gfx1151 256 0", races="RACE type=LDS reg=508")
    assert (code, said["races"]["ok"]) == (1, False)
    assert said["races"]["detail"] == f"{len(KERNELS)} in LDS, as the emulator reports"


def test_a_race_of_registers_is_told_and_is_no_failure(tmp_path: Path) -> None:
    code, said = self_test(tmp_path, "gfx1151 256 0", races="RACE type=VGPR reg=5")
    assert (code, said["races"]["ok"]) == (0, True)
    assert said["races"]["detail"] == f"0 in LDS, {len(KERNELS)} of registers, as the emulator reports"


# in a sandbox, with what a stack has


RECIPE: dict[str, dict[str, object]] = {
    "alpha": {
        "kind": "archive",
        "run": ["true"],
        "output": [{"name": "archive", "pattern": "alpha-*.tar.gz"}],
        "system": {"build": ["shell"], "check": ["shell"]},
        "emulated": [
            {"name": "ran", "script": "checks/ran.py", "arguments": ["{emulated}"], "least": 2},
        ],
    }
}

RAN = """import json, os, subprocess, sys
command = sys.argv[sys.argv.index("--") + 1:]
command += ["cat", "/emulator/configuration"]
done = subprocess.run(command, capture_output=True, text=True, check=True)
for name, detail in {"configuration": done.stdout, "folder": os.environ["ROCJITSU_RUNTIME_DIR"]}.items():
    told = {"name": name, "ok": True, "detail": detail, "device": "AMD Radeon Graphics"}
    print("ROCWRIGHT-CHECK " + json.dumps(told))
"""
PASSES = """import json
for number in range(7):
    print("ROCWRIGHT-CHECK " + json.dumps({"name": str(number), "ok": True, "device": "AMD Radeon Graphics"}))
"""


@pytest.fixture
def built(home: Home, engine: str, python_root: Path, tmp_path: Path) -> TinyProject:
    """A stack of one archive that is in the store, whose check runs on an emulated GPU."""
    folder = tmp_path / "sources"
    make_sources(folder, RECIPE)
    (folder / "catalog/checks/emulator/programs").mkdir(parents=True)
    (folder / "catalog/checks/ran.py").write_text(RAN)
    project = open_project(folder, home.path)
    put_roots(project, python_root)
    put_alpha(project, folder)
    return project


def verified(project: TinyProject, engine: str, self_test: str) -> list[Finding]:
    """What verifying on an emulated GPU finds, where the emulator's self-test is that program."""
    (project.catalog.folders[0] / SELF_TEST).write_text(self_test)
    return run.verify(project, project.locked, engine, print, device="emulated", run_id="emulated-1")


def test_what_ran_in_an_emulator_is_evidence_of_its_own_kind(
    built: TinyProject, installed: Path, engine: str
) -> None:
    found = verified(built, engine, PASSES)
    assert {one.device for one in found} == {"emulated gfx1151 (rocjitsu)"}
    assert said_of("verify", "verified", found) == "ran on an emulated GPU"
    known = {one.name: one for one in found}
    assert json.loads(known["configuration"].detail)["num_threads"] == 1
    assert known["folder"].detail == "/trial/emulated"
    assert (known["emulator"].artifact, known["emulator"].component) == ("librocjitsu.so", "rocjitsu")
    assert known["emulator"].sha256 == sha256_bytes(b"a library")
    with read_records(built.home) as records:
        [kept] = records.runs(limit=1)
    assert (kept.said, kept.device) == ("ran on an emulated GPU", "emulated gfx1151 (rocjitsu)")


WRONG = PASSES.replace('"ok": True', '"ok": number not in (2, 5)')
SHORT = PASSES.replace("range(7)", "range(6)")
FAKED = PASSES + "raise SystemExit(3)"


@pytest.mark.parametrize(
    ("self_test", "why"),
    [(WRONG, "2: ; 5: "), (SHORT, "6 of at least 7 ran"), (FAKED, "ended with 3"), ("", "at least 7 ran")],
)
def test_where_the_self_test_fails_there_is_no_evidence(
    built: TinyProject, installed: Path, engine: str, self_test: str, why: str
) -> None:
    for number in range(5):
        (built.catalog.folders[0] / f"checks/emulator/programs/{number}.hip").touch()
    with pytest.raises(CheckError, match="rocjitsu for gfx1151: self-test fails, no evidence") as told:
        verified(built, engine, self_test)
    assert why in told.value.cause
    with read_records(built.home) as records:
        [kept] = records.runs(limit=1)
        assert (kept.outcome, kept.said, kept.device) == ("failed", "", "")
        assert records.findings(run=kept.id) == []
        assert records.matrix()[0].seen == {}


def test_a_check_that_ends_early_in_an_emulator_has_not_passed(
    built: TinyProject, installed: Path, engine: str
) -> None:
    path = built.catalog.folders[0] / "checks/ran.py"
    path.write_text(RAN.replace("    told =", "    if name == 'folder': break\n    told ="))
    found = verified(built, engine, PASSES)
    [wrong] = [one for one in found if not one.ok]
    assert wrong.detail == "1 of at least 2 ran"


def test_a_verification_without_one_runs_nothing_of_it(built: TinyProject, engine: str) -> None:
    assert run.verify(built, built.locked, engine, print) == []


def test_a_stack_of_which_nothing_runs_in_an_emulator_says_so(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "sources"
    make_sources(
        folder, {"alpha": {key: RECIPE["alpha"][key] for key in ("kind", "run", "output", "system")}}
    )
    project = open_project(folder, home.path)
    with pytest.raises(InputError, match="nothing of tiny runs on an emulated GPU"):
        run.emulations(project, project.locked)
