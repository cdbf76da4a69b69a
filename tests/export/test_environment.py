"""The image of a wheel stack that serves: its entry point is run, and its environment is installed by pip."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.export.test_rows import ROWS, lock_of_row
from tests.serving.wheel_stack import wheel

from rocwheel_samples.tables import each
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.model import Stack
from rocwright.export.containerfile import containerfile
from rocwright.export.environment import ENTRY, INSTALLED, PLACE, REQUIRED, environment_image
from rocwright.export.environment_stage import image_files
from rocwright.export.model import ExportSubject
from rocwright.export.templates import template
from rocwright.export.write import export
from rocwright.model.steps import FilePin, IndexOrigin
from rocwright.plan.resolve.model import LockedPython


def has_server(stack: Stack) -> bool:
    components = map(builtin_catalog().component, stack.components)
    return any(one.server is not None and one.kind in INSTALLED for one in components)


SERVING = {name: row for name, row in ROWS.items() if has_server(row[0])}
RECORD = '#!/bin/sh\nfor word in "$0" "$@"; do printf "%s\\n" "$word"; done\n'


@functools.cache
def subject_of(row: str) -> ExportSubject:
    return ExportSubject.of(lock_of_row(*ROWS[row]), builtin_catalog())


def test_the_stacks_of_wheels_with_a_server_have_an_image() -> None:
    stacks = {stack.name for stack, _ in SERVING.values()}
    assert stacks == {"comfyui", "vllm", "vllm-debian", "vllm-wheels"}


@each("row", SERVING)
def test_the_last_stage_is_the_image_and_the_artifacts_stay_a_stage(row: str) -> None:
    lines = containerfile(subject_of(row))["Containerfile"].text.splitlines()
    stages = [line.rpartition(" AS ")[2] for line in lines if line.startswith("FROM ")]
    assert "artifacts" in stages[:-1]
    image = lines[next(number for number, line in enumerate(lines) if line.endswith(f" AS {stages[-1]}")) :]
    (entry,) = [json.loads(line.partition(" ")[2]) for line in image if line.startswith("ENTRYPOINT ")]
    assert entry == [ENTRY]
    assert f"COPY image/serve {ENTRY}" in image
    served = environment_image(subject_of(row))
    assert served is not None
    assert f'LABEL org.opencontainers.image.version="{served.locked.version}"' in image
    assert any(line.startswith("EXPOSE ") for line in image)


def served_words(row: str, folder: Path, *words: str, model: bool = True) -> subprocess.CompletedProcess[str]:
    """Run the entry point with the folders of the image below `folder`, and programs that print."""
    inside = {path: folder / path.strip("/") for path in (PLACE, "/models", "/data", "/artifact", "/page")}
    for path in inside.values():
        path.mkdir(parents=True, exist_ok=True)
    (inside[PLACE] / "bin").mkdir(exist_ok=True)
    for program in ("vllm", "python"):
        (inside[PLACE] / "bin" / program).write_text(RECORD)
        (inside[PLACE] / "bin" / program).chmod(0o755)
    if model:
        (inside["/models"] / "model").mkdir(exist_ok=True)
    text = image_files(subject_of(row))["image/serve"].text
    text = re.sub(rf"(?<![\w.])({'|'.join(inside)})(?=[/ \n])", lambda match: str(inside[match[1]]), text)
    (folder / "serve").write_text(text)
    return subprocess.run(["sh", folder / "serve", *words], capture_output=True, text=True, check=False)


@each("row", SERVING)
def test_the_entry_point_starts_the_server_once_for_all_that_reach_the_container(
    row: str, tmp_path: Path
) -> None:
    done = served_words(row, tmp_path)
    assert done.returncode == 0, done.stderr
    program, *words = done.stdout.splitlines()
    assert program.startswith(str(tmp_path / PLACE.strip("/")))
    assert "0.0.0.0" in words
    image = environment_image(subject_of(row))
    assert image is not None
    assert str(image.server.port) in words
    assert words.count("serve") <= 1
    assert not [word for word in words if "{" in word]
    for name in image.server.keeps:
        assert (tmp_path / "data" / name).is_dir()


@each("row", [row for row in SERVING if "vllm" in row])
def test_the_model_is_the_first_argument_or_the_one_in_the_folder(row: str, tmp_path: Path) -> None:
    more = served_words(row, tmp_path, "/models/other", "--max-model-len", "1 000").stdout.splitlines()
    assert more[1:3] == ["serve", "/models/other"]
    assert more[-2:] == ["--max-model-len", "1 000"]
    options = served_words(row, tmp_path, "--max-model-len", "9").stdout.splitlines()
    assert options[1:3] == ["serve", str(tmp_path / "models/model")]
    (tmp_path / "models/model").rmdir()
    missing = served_words(row, tmp_path, model=False)
    assert missing.returncode == 2
    assert "does not exist: put a model there" in missing.stderr


def installed(folder: Path, *wanted: str) -> subprocess.CompletedProcess[str]:
    """Run the script that installs with the Python and the pip of this machine."""
    text = template("install.sh").replace("@PYTHON@", sys.executable).replace("@WANTED@", " ".join(wanted))
    text = text.replace("@PLACE@", str(folder / "place")).replace("@PROGRAM@", str(folder / "place/bin/says"))
    text = text.replace("@WHEELS@", str(folder / "own")).replace("@CHOICE@", str(folder / "choice"))
    assert "@" not in text.replace('"$@"', "")
    (folder / "place").mkdir()
    (folder / "place/install.sh").write_text(text)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return subprocess.run(
        ["sh", folder / "place/install.sh"], capture_output=True, text=True, check=False, env=environment
    )


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """What a stack made, and what is there to choose from: `spare` is required by nothing."""
    (tmp_path / "own").mkdir()
    (tmp_path / "choice").mkdir()
    script = {"entry_points.txt": "[console_scripts]\nsays = own_server:main\n"}
    text = "import needed_part\ndef main():\n    print(needed_part.word)\n"
    wheel(tmp_path / "own", "own_server", text, "needed-part>=1", more=script)
    wheel(tmp_path / "choice", "needed_part", "word = 'served'\n")
    wheel(tmp_path / "choice", "asked_part", "word = 'asked'\n")
    wheel(tmp_path / "choice", "spare", "word = 'spare'\n")
    return tmp_path


def test_the_environment_has_the_wheels_and_what_they_require(wheels: Path) -> None:
    done = installed(wheels, "asked-part")
    assert done.returncode == 0, done.stderr
    says = subprocess.run([wheels / "place/bin/says"], capture_output=True, text=True, check=True)
    assert says.stdout == "served\n"
    names = {path.name for path in wheels.glob("place/lib/python3*/site-packages/*_part.py")}
    assert names == {"needed_part.py", "asked_part.py"}
    assert not list(wheels.glob("place/lib/python3*/site-packages/spare.py"))
    assert not (wheels / "place/install.sh").exists()


def test_a_requirement_that_nothing_brings_ends_the_build_by_its_name(wheels: Path) -> None:
    next((wheels / "choice").glob("needed_part*")).unlink()
    done = installed(wheels)
    assert done.returncode != 0
    assert "needed-part" in done.stderr


def test_what_a_run_has_locked_is_in_the_export_by_hash_and_not_pending() -> None:
    (row,) = [name for name in SERVING if "vllm-debian" in name]
    origin = IndexOrigin(project="fastapi", version="0.115.0")
    pin = FilePin(filename="fastapi-0.115.0-py3-none-any.whl", sha256="ab" * 32, size=1, origin=origin)
    required = LockedPython(version="3.13", wanted=("fastapi",), files=(pin,))
    lock = lock_of_row(*ROWS[row])
    files = export(lock, builtin_catalog(), "pipeline", required)
    assert (
        f"fastapi==0.115.0 \\\n    --hash=sha256:{'ab' * 32}" in files[f"{REQUIRED}/requirements.lock"].text
    )
    assert "REQUIRED_REQUIREMENTS" not in "".join(
        files[name].text for name in ("versions.env", "prepare.sh", "Containerfile")
    )
    assert f"wheels {REQUIRED} 3.13 x86_64\n" in files["prepare.sh"].text
    pending = export(lock, builtin_catalog(), "pipeline")
    assert "pending REQUIRED_REQUIREMENTS_SHA256 " in pending["prepare.sh"].text
