"""Every row of every stack is exported in every format without a network, and what is written holds up."""

from __future__ import annotations

import ast
import getpass
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.making import lock_of, with_sdist
from tests.tools import tool

from rocwheel.files.atomic import sha256_bytes, write_atomic
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.model import Row, Stack
from rocwright.cli import cli
from rocwright.export.containerfile import labels
from rocwright.export.model import File, Files, Subject
from rocwright.export.pipeline import VERSIONS
from rocwright.export.run import served
from rocwright.export.windows import builds_there
from rocwright.export.write import FORMATS, carried_sources, export
from rocwright.model.steps import ImageOrigin
from rocwright.resolve.lock import make_lock
from rocwright.resolve.model import Lock
from rocwright.resolve.shipped import request_of, rows, shipped_lock
from rocwright.resolve.upstream import OfflineUpstream

ROWS = list(rows(builtin_catalog()))
NAMES = [f"{stack.name} {row.gpu} {row.base} {row.provider}" for stack, row in ROWS]

every_row = pytest.mark.parametrize(("stack", "row"), ROWS, ids=NAMES)


def lock_of_row(stack: Stack, row: Row) -> Lock:
    """The lock that comes with rocwright, or the one that can be made without looking outside."""
    catalog = builtin_catalog()
    request = request_of(stack, row)
    return shipped_lock(catalog, request) or make_lock(request, catalog, OfflineUpstream(), lambda _: None)


def all_files(stack: Stack, row: Row) -> Files:
    return export(lock_of_row(stack, row), builtin_catalog(), "all")


def written(files: Files, folder: Path) -> Iterator[Path]:
    for name, file in files.items():
        write_atomic(folder / name, file.data)
        yield folder / name


@pytest.fixture
def machine_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What tells of this machine and must stand in no export: folders, names, and where it fetches from."""
    for name in ("HOME", "TMPDIR"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("USER", "anyone-at-all")
    monkeypatch.setenv("LOGNAME", "anyone-at-all")
    monkeypatch.setenv("PIP_INDEX_URL", "https://someone:secret@index.example/simple")
    words = [str(tmp_path), str(Path.cwd()), os.environ["ROCWRIGHT_HOME"], "anyone-at-all", "index.example"]
    words += [socket.gethostname(), *([getpass.getuser()] if getpass.getuser() != "root" else [])]
    for command in (["pip", "config", "list"], ["apt-config", "dump"]):
        if shutil.which(command[0]):
            shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
            words += re.findall(r"https?://([^\s'\"/]+)", shown)
    for listed in (*Path("/etc/apt").rglob("*.list"), *Path("/etc/apt").rglob("*.sources")):
        words += re.findall(r"https?://([^\s/]+)", listed.read_text())
    return sorted({word for word in words if len(word) > 3 and word not in ("localhost", "rocwright")})


@every_row
def test_a_row_is_exported_in_every_format(stack: Stack, row: Row) -> None:
    lock = lock_of_row(stack, row)
    subject = Subject.of(lock, builtin_catalog())
    runs = bool(list(served(subject)))
    for name in FORMATS:
        if name in ("run", "quadlet", "compose") and not runs:
            continue
        # a build there is written where recipes know Windows: tests/export/test_windows.py
        if name == "powershell" and not runs and not builds_there(subject):
            continue
        assert export(lock, builtin_catalog(), name), name
    if any(builtin_catalog().component(name).kind == "image" for name in stack.components):
        assert runs


@every_row
def test_each_component_has_a_compiler_cache_of_its_own(stack: Stack, row: Row) -> None:
    lock = lock_of_row(stack, row)
    steps = [step for step in Subject.of(lock, builtin_catalog()).plan.steps if step.kind == "run"]
    files = export(lock, builtin_catalog(), "pipeline")
    mounted = re.findall(r"id=rocwright-ccache-(\S+),", files["Containerfile"].text)
    assert sorted(mounted) == sorted(step.domain[:32] for step in steps)
    script = export(lock, builtin_catalog(), "nspawn")["build-nspawn.sh"].text
    bound = re.findall(r"^component \S+ \S+ rocwright-ccache-(\S+) ", script, re.MULTILINE)
    assert sorted(bound) == sorted(mounted)
    assert not steps or all("export CCACHE_CONFIGPATH=/dev/null" in one.text for one in scripts_of(files))


def scripts_of(files: Files) -> list[File]:
    return [file for name, file in files.items() if name.startswith("steps/")]


@every_row
def test_nothing_of_the_building_machine_is_in_an_export(
    stack: Stack, row: Row, machine_words: list[str]
) -> None:
    for name, file in all_files(stack, row).items():
        text = file.data.decode(errors="replace")
        assert [word for word in machine_words if word in text] == [], name


@every_row
def test_what_is_pending_must_be_given_and_is_never_made_up(stack: Stack, row: Row) -> None:
    lock = lock_of_row(stack, row)
    files = export(lock, builtin_catalog(), "pipeline")
    known = {pin.sha256 for part in (*lock.components, lock.python, lock.rocm) if part for pin in part.files}
    known |= {pin.sha256 for root in lock.roots for pin in root.packages}
    known |= {
        pin.origin.digest.removeprefix("sha256:")
        for part in (*lock.components, *lock.roots)
        for pin in getattr(part, "files", getattr(part, "packages", ()))
        if isinstance(pin.origin, ImageOrigin)
    }
    carried = carried_sources(lock, builtin_catalog())
    known |= {sha256_bytes(data) for data in carried.values()}
    components = [builtin_catalog().component(one.name).downloads(one.version) for one in lock.components]
    known |= {one.sha256 for downloads in components for one in downloads}
    said = lock.model_dump_json()
    for name, file in files.items():
        if name.startswith("edits/"):
            continue
        for digest in re.findall(r"\b[0-9a-f]{64}\b", file.data.decode(errors="replace")):
            assert digest in known or digest in said, (name, digest)
    for line in files[VERSIONS].text.splitlines():
        assert not line.endswith("=") or line.startswith("# "), line
    if any(root.pending for root in Subject.of(lock, builtin_catalog()).roots):
        assert "PENDING" in files["Containerfile"].text or "pending" in files["prepare.sh"].text


@every_row
def test_every_script_passes_shellcheck(stack: Stack, row: Row, tmp_path: Path) -> None:
    shellcheck = shutil.which("shellcheck")
    if shellcheck is None:
        assert os.environ.get("CI") != "true", "shellcheck is not installed"
        pytest.skip("shellcheck is not installed")
    scripts = [path for path in written(all_files(stack, row), tmp_path) if path.suffix == ".sh"]
    assert scripts
    done = subprocess.run([shellcheck, *scripts], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]


@every_row
def test_every_unit_is_one_that_systemd_takes(stack: Stack, row: Row, tmp_path: Path) -> None:
    files = {name: file for name, file in all_files(stack, row).items() if name.endswith(".container")}
    if not files:
        return
    units = list(written(files, tmp_path))
    generator = next(
        (
            path
            for folder in ("/usr/lib/systemd", "/usr/libexec")
            for path in (
                Path(folder, "system-generators/podman-system-generator"),
                Path(folder, "podman/quadlet"),
            )
            if path.exists()
        ),
        None,
    )
    if generator is not None:
        done = subprocess.run(
            [generator, "--dryrun"],
            env=os.environ | {"QUADLET_UNIT_DIRS": str(units[0].parent)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        services = re.split(r"---(.+\.service)---\n", done.stdout)[1:]
        assert services
        found = dict(zip(services[::2], services[1::2], strict=True))
    else:
        found = {unit.with_suffix(".service").name: as_service(unit.read_text()) for unit in units}
    for name, text in found.items():
        (tmp_path / name).write_text(text)
        verify = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(tmp_path / name)]
        done = subprocess.run(verify, capture_output=True, text=True, check=False)
        ours = [line for line in done.stderr.splitlines() if name in line or str(tmp_path) in line]
        assert done.returncode == 0 and ours == [], done.stderr


def as_service(unit: str) -> str:
    """The parts of a .container unit that systemd itself reads, with the settings of quadlet left out."""
    own = unit.partition("[Container]")
    rest = own[2].partition("[Service]")
    environment = [line for line in rest[0].splitlines() if line.startswith("Environment=")]
    command = next((line for line in rest[0].splitlines() if line.startswith("Exec=")), "Exec=")
    start = [f"ExecStart=/bin/echo {command.removeprefix('Exec=')}", *environment]
    return "\n".join([own[0], "[Service]", *start, rest[2].strip(), ""])


@every_row
def test_every_other_file_can_be_read_by_its_reader(stack: Stack, row: Row) -> None:
    for name, file in all_files(stack, row).items():
        if name.endswith(".json"):
            json.loads(file.text)
        elif name.endswith(".py"):
            ast.parse(file.text)


def test_a_source_distribution_is_fetched_by_hash_and_built_in_a_stage_of_its_own(tmp_path: Path) -> None:
    (lock,) = (lock_of_row(stack, row) for stack, row in ROWS if stack.name == "rocm")
    lock = with_sdist(lock, "https://index.example/simple/")
    files = export(lock, builtin_catalog(), "all")
    script, stages = files["pipeline/prepare.sh"].text, files["pipeline/Containerfile"].text
    assert "sdist python-old-style old-style 1.0 https://index.example/simple/\n" in script
    assert "checked sources/python-old-style\n" in script
    assert "wheels python-old-style-requires 3.13 x86_64\n" in script
    assert "COPY python-old-style-requires/ /in/requires/\n" in stages
    assert "COPY --from=python-old-style /out/*.whl /in/python-old-style/\n" in stages
    assert "python-old-style-requires/." in files["nspawn/build-nspawn.sh"].text
    assert "old-style==1.0" in files["requirements/python/requirements.lock"].text
    assert "[packages.sdist]" in files["requirements/python/pylock.toml"].text
    if shellcheck := shutil.which("shellcheck"):
        scripts = [path for path in written(files, tmp_path) if path.suffix == ".sh"]
        done = subprocess.run([shellcheck, *scripts], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-4000:]


def test_what_a_build_downloads_is_fetched_by_hash_before_it() -> None:
    (lock,) = (lock_of_row(stack, row) for stack, row in ROWS if stack.name == "rocm")
    files = export(lock, builtin_catalog(), "pipeline")
    rocm = builtin_catalog().component("rocm")
    (one,) = (one for one in rocm.downloads(lock.components[0].version) if "zlib" in one.url)
    assert f"fetched downloads-rocm {one.filename} {one.url}\n" in files["prepare.sh"].text
    assert f"hashed downloads-rocm/{one.filename} sha256 {one.sha256}\n" in files["prepare.sh"].text
    assert "COPY downloads-rocm/ /in/downloads/\n" in files["Containerfile"].text


def test_hadolint_has_nothing_to_say(tmp_path: Path) -> None:
    hadolint = tool("hadolint")
    assert hadolint is not None, "hadolint is not installed: requirements/dev.txt has it"
    for number, (stack, row) in enumerate(ROWS):
        files = export(lock_of_row(stack, row), builtin_catalog(), "containerfile")
        (path,) = written({"Containerfile": files["Containerfile"]}, tmp_path / str(number))
        done = subprocess.run(
            [hadolint, "--failure-threshold", "warning", path], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout


def test_labels_tell_every_version_commit_and_hash() -> None:
    lock = lock_of("torch-extensions", "gfx803")
    found = labels(Subject.of(lock, builtin_catalog()))
    for one in lock.components:
        assert found[f"rocwright.{one.name}.version"] == one.version
        assert found[f"rocwright.{one.name}.sha256"] == one.files[0].sha256
    assert found["org.opencontainers.image.base.name"] == lock.request.base


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_takes_the_timer_of_a_folder(tmp_path: Path) -> None:
    name = next(iter(builtin_catalog().stacks))
    stack = builtin_catalog().stacks[name]
    files = export(lock_of_row(stack, stack.row[0]), builtin_catalog(), "timer")
    for path, file in files.items():
        # a template is judged by an instance
        (tmp_path / path.replace("@.", "@tmp.")).write_bytes(file.data)
    units = sorted(map(str, tmp_path.iterdir()))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *units],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_cycle_that_cannot_run_is_told_by_a_unit_of_the_same_export() -> None:
    """A candidate that failed is no failure of the unit: the cycle tells that itself, once."""
    stack = next(iter(builtin_catalog().stacks.values()))
    files = export(lock_of_row(stack, stack.row[0]), builtin_catalog(), "timer")
    service = files["rocwright-cycle@.service"].text
    assert "\nOnFailure=rocwright-failed@%i.service\n" in service
    assert "\nSuccessExitStatus=1\n" in service
    told = files["rocwright-failed@.service"].text
    [line] = [one for one in told.splitlines() if one.startswith("ExecStart=")]
    # systemd makes one $ of two, before the shell sees it
    words = shlex.split(line.removeprefix("ExecStart=").replace("$$", "$"))
    done = subprocess.run(
        ["/bin/sh", "-c", words[2].replace("exec rocwright", "echo"), *words[3:]],
        capture_output=True,
        text=True,
        check=True,
    )
    verb, name, unit = done.stdout.split()
    assert unit == "rocwright-cycle@%i.service"
    group = cli.get_command(None, verb)  # type: ignore[arg-type]
    assert isinstance(group, click.Group)
    assert name in group.commands


def test_an_image_on_a_digest_has_the_variables_its_port_and_its_entry_point_inside() -> None:
    stack, row = next((stack, row) for stack, row in ROWS if stack.name == "vllm-spoof-locked")
    lines = all_files(stack, row)["containerfile/Containerfile"].text.splitlines()
    (image,) = [line for line in lines if line.startswith("ARG ")]
    assert re.search(r"@sha256:[0-9a-f]{64}\"$", image)
    component = builtin_catalog().component(stack.components[0])
    assert component.serve is not None
    for name in component.serve.env:
        assert any(line.startswith(f"ENV {name}=") for line in lines)
    assert f"EXPOSE {component.serve.ports[0]}" in lines
    assert f"ENTRYPOINT {json.dumps(list(component.serve.command))}" in lines
