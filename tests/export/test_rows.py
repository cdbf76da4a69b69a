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

from rocbase.files.atomic import sha256_bytes, write_atomic
from rocbase.model import canonical_json
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.model import Stack, StackRow
from rocwright.cli import cli
from rocwright.export.containerfile import labels
from rocwright.export.model import ExportSubject, Files, slug, variable
from rocwright.export.pipeline import VERSIONS
from rocwright.export.powershell import builds_there
from rocwright.export.run import served
from rocwright.export.write import FORMATS, carried_sources, export
from rocwright.model.steps import ImageOrigin
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.lock import make_lock
from rocwright.plan.resolve.model import Lock
from rocwright.plan.resolve.shipped import name_of, request_of, rows, shipped_lock
from rocwright.plan.resolve.upstream import OfflineUpstream

HASH = re.compile(r"\b[0-9a-f]{64}\b")
ROWS = {name_of(request_of(stack, row)): (stack, row) for stack, row in rows(builtin_catalog())}
DIGESTS = Path(__file__).with_name("rows.json")
"""Digests of each row by the name of its lock: over all keys of its steps, and over all files of its exports.

A refactoring that changes one is wrong: everything that anybody has built would be built anew. If facts of a
row have changed, or an export says something else, the new digests go into the file in the same commit.
"""


def lock_of_row(stack: Stack, row: StackRow) -> Lock:
    """The lock that comes with rocwright, or the one that can be made without looking outside."""
    catalog = builtin_catalog()
    request = request_of(stack, row)
    lock = shipped_lock(catalog, request) or make_lock(request, catalog, OfflineUpstream(), lambda _: None)
    return lock.model_copy(update={"created": "2026-01-01T00:00:00Z"})


@pytest.fixture(scope="module")
def locks() -> dict[str, Lock]:
    """The lock of each row."""
    return {name: lock_of_row(stack, row) for name, (stack, row) in ROWS.items()}


@pytest.fixture(scope="module")
def exports(locks: dict[str, Lock]) -> dict[str, Files]:
    """All files of each row."""
    return {name: export(lock, builtin_catalog(), "all") for name, lock in locks.items()}


def distinct(exports: dict[str, Files], ending: str) -> dict[str, str]:
    """Texts of all rows by row and file name: one of those that differ in numbers and hashes alone."""
    texts = {
        re.sub(r"[0-9a-f]{8,}|[0-9]+", "0", file.text): (f"{row}: {name}", file.text)
        for row, files in exports.items()
        for name, file in files.items()
        if name.endswith(ending)
    }
    return dict(texts.values())


def written(files: Files, folder: Path) -> Iterator[Path]:
    for name, file in files.items():
        write_atomic(folder / name, file.data)
        yield folder / name


def shellcheck(*scripts: Path) -> None:
    program = shutil.which("shellcheck")
    if program is None:
        assert os.environ.get("CI") != "true", "shellcheck is not installed"
        pytest.skip("shellcheck is not installed")
    done = subprocess.run([program, *scripts], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]


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


def test_keys_and_exports_of_every_row_are_those_written_down(
    locks: dict[str, Lock], exports: dict[str, Files]
) -> None:
    digests = {}
    for name, lock in locks.items():
        keys = {step.name: step.key for step in make_plan(lock, builtin_catalog()).steps}
        files = {path: [file.executable, sha256_bytes(file.data)] for path, file in exports[name].items()}
        digests[name] = " ".join(sha256_bytes(canonical_json(said)) for said in (keys, files))
    assert digests == json.loads(DIGESTS.read_text()), json.dumps(digests, indent=1, sort_keys=True)


def test_no_script_names_a_variable_that_the_shell_would_read_otherwise(exports: dict[str, Files]) -> None:
    """`${WHEELS-X}` is the variable WHEELS, and X where it is not set."""
    wrong = {
        f"{row}: {name}: {found}"
        for row, files in exports.items()
        for name, file in files.items()
        if name.endswith(".sh")
        for found in re.findall(r"\$\{[A-Z0-9_]+-[A-Z0-9_-]*[A-Z]", file.text)
    }
    assert not wrong


def test_each_row_is_exported_in_every_format_that_fits_it(
    locks: dict[str, Lock], exports: dict[str, Files]
) -> None:
    wrong = []
    for name, (stack, _) in ROWS.items():
        subject = ExportSubject.of(locks[name], builtin_catalog())
        runs = bool(list(served(subject)))
        images = any(builtin_catalog().component(one).kind == "image" for one in stack.components)
        formats = {path.partition("/")[0] for path in exports[name]}
        needed = set(FORMATS) - ({"run", "quadlet", "compose"} if not runs else set())
        # a build there is written where recipes know Windows: tests/export/test_windows.py
        needed -= {"powershell"} if not runs and not builds_there(subject) else set()
        wrong += [(name, formats ^ needed)] if formats != needed or (images and not runs) else []
    assert wrong == []


def test_each_component_has_a_compiler_cache_of_its_own(
    locks: dict[str, Lock], exports: dict[str, Files]
) -> None:
    wrong = []
    for name, files in exports.items():
        plan = ExportSubject.of(locks[name], builtin_catalog()).plan
        domains = sorted(step.domain[:32] for step in plan.steps if step.kind == "run")
        mounted = re.findall(r"id=rocwright-ccache-(\S+),", files["pipeline/Containerfile"].text)
        script = files["nspawn/build-nspawn.sh"].text
        bound = re.findall(r"^component \S+ \S+ rocwright-ccache-(\S+) ", script, re.MULTILINE)
        steps = [file.text for path, file in files.items() if path.startswith("pipeline/steps/")]
        unset = [text for text in steps if domains and "export CCACHE_CONFIGPATH=/dev/null" not in text]
        wrong += [name] if not sorted(mounted) == sorted(bound) == domains or unset else []
    assert wrong == []


def test_nothing_of_the_building_machine_is_in_an_export(
    locks: dict[str, Lock], machine_words: list[str]
) -> None:
    present = {
        (row, name, word)
        for row, lock in locks.items()
        for name, file in export(lock, builtin_catalog(), "all").items()
        for word in machine_words
        if word.encode() in file.data
    }
    assert present == set()


def hashes_of(lock: Lock) -> set[str]:
    """Each hash that a lock, its recipes and what rocwright carries know."""
    parts = [part for part in (*lock.components, lock.python, lock.rocm) if part]
    pins = [pin for part in parts for pin in part.files] + [p for root in lock.roots for p in root.packages]
    known = {pin.sha256 for pin in pins}
    known |= {
        pin.origin.digest.removeprefix("sha256:") for pin in pins if isinstance(pin.origin, ImageOrigin)
    }
    known |= {sha256_bytes(data) for data in carried_sources(lock, builtin_catalog()).values()}
    for part in lock.components:
        known |= {one.sha256 for one in builtin_catalog().component(part.name).downloads(part.version)}
    return known | set(HASH.findall(lock.model_dump_json()))


def test_what_is_pending_must_be_given_and_is_never_made_up(
    locks: dict[str, Lock], exports: dict[str, Files]
) -> None:
    wrong: list[tuple[str, ...]] = []
    for row, lock in locks.items():
        known = hashes_of(lock)
        files = {
            path.removeprefix("pipeline/"): file.data.decode(errors="replace")
            for path, file in exports[row].items()
            if path.startswith("pipeline/")
        }
        for name, text in files.items():
            made_up = set() if name.startswith("edits/") else set(HASH.findall(text)) - known
            wrong += [(row, name, digest) for digest in made_up]
        empty = [one for one in files[VERSIONS].splitlines() if one.endswith("=") and one[:2] != "# "]
        wrong += [(row, VERSIONS, line) for line in empty]
        pending = any(root.pending for root in ExportSubject.of(lock, builtin_catalog()).roots)
        if pending and "PENDING" not in files["Containerfile"] and "pending" not in files["prepare.sh"]:
            wrong.append((row, "pending"))
    assert wrong == []


def test_every_script_passes_shellcheck(exports: dict[str, Files], tmp_path: Path) -> None:
    scripts = distinct(exports, ".sh")
    for name, text in scripts.items():
        (tmp_path / name.replace("/", "_")).write_text(text)
    shellcheck(*tmp_path.iterdir())


def services_of(units: Path) -> dict[str, str]:
    """The services that podman's generator makes of units; without one, what systemd itself reads of them."""
    places = ("systemd/system-generators/podman-system-generator", "podman/quadlet")
    generators = [path for lib in ("/usr/lib", "/usr/libexec") for path in map(Path(lib).joinpath, places)]
    generator = next((path for path in generators if path.exists()), None)
    if generator is None:
        return {unit.with_suffix(".service").name: as_service(unit.read_text()) for unit in units.iterdir()}
    done = subprocess.run(
        [generator, "--dryrun"],
        env=os.environ | {"QUADLET_UNIT_DIRS": str(units)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    services = re.split(r"---(.+\.service)---\n", done.stdout)[1:]
    return dict(zip(services[::2], services[1::2], strict=True))


def test_every_unit_is_one_that_systemd_takes(exports: dict[str, Files], tmp_path: Path) -> None:
    units, folder = distinct(exports, ".container"), tmp_path / "services"
    (tmp_path / "units").mkdir()
    folder.mkdir()
    for number, text in enumerate(units.values()):
        (tmp_path / "units" / f"unit{number}.container").write_text(text)
    services = services_of(tmp_path / "units")
    assert len(services) == len(units) > 0
    for name, text in services.items():
        (folder / name).write_text(text)
    verify = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *map(str, folder.iterdir())]
    done = subprocess.run(verify, capture_output=True, text=True, check=False)
    ours = [
        line for line in done.stderr.splitlines() if str(tmp_path) in line or "unit" in line.split(":")[0]
    ]
    assert done.returncode == 0 and ours == [], done.stderr


def test_every_setting_for_a_container_is_one_of_quadlet(exports: dict[str, Files]) -> None:
    """Without podman's generator, systemd reads only some of them: the others are passed over."""
    used = set()
    for text in distinct(exports, ".container").values():
        part = text.partition("[Container]")[2].partition("[Service]")[0]
        used |= {line.partition("=")[0] for line in part.split("\n") if line and not line.startswith("#")}
    assert used == {
        *("AddDevice", "ContainerName", "Environment", "Exec", "Image", "PodmanArgs", "PublishPort", "Volume")
    }


def as_service(unit: str) -> str:
    """The parts of a .container unit that systemd itself reads, with the settings of quadlet left out."""
    own = unit.partition("[Container]")
    rest = own[2].partition("[Service]")
    environment = [line for line in rest[0].splitlines() if line.startswith("Environment=")]
    command = next((line for line in rest[0].splitlines() if line.startswith("Exec=")), "Exec=")
    start = [f"ExecStart=/bin/echo {command.removeprefix('Exec=')}", *environment]
    return "\n".join([own[0], "[Service]", *start, rest[2].strip(), ""])


def test_every_other_file_can_be_read_by_its_reader(exports: dict[str, Files]) -> None:
    for files in exports.values():
        for name, file in files.items():
            if name.endswith(".json"):
                json.loads(file.text)
    for text in distinct(exports, ".py").values():
        ast.parse(text)


def test_a_source_distribution_is_fetched_by_hash_and_built_in_a_stage_of_its_own(tmp_path: Path) -> None:
    (lock,) = (lock_of_row(stack, row) for stack, row in ROWS.values() if stack.name == "rocm")
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
    shellcheck(*(path for path in written(files, tmp_path) if path.suffix == ".sh"))


def test_what_a_build_downloads_is_fetched_by_hash_before_it() -> None:
    (lock,) = (lock_of_row(stack, row) for stack, row in ROWS.values() if stack.name == "rocm")
    files = export(lock, builtin_catalog(), "pipeline")
    rocm = builtin_catalog().component("rocm")
    (one,) = (one for one in rocm.downloads(lock.components[0].version) if "zlib" in one.url)
    assert f"fetched downloads-rocm {one.filename} {one.url}\n" in files["prepare.sh"].text
    assert f"hashed downloads-rocm/{one.filename} sha256 {one.sha256}\n" in files["prepare.sh"].text
    assert "COPY downloads-rocm/ /in/downloads/\n" in files["Containerfile"].text


def test_hadolint_has_nothing_to_say(exports: dict[str, Files], tmp_path: Path) -> None:
    hadolint = tool("hadolint")
    assert hadolint is not None, "hadolint is not installed: requirements/dev.txt has it"
    for number, text in enumerate(distinct(exports, "containerfile/Containerfile").values()):
        (tmp_path / f"Containerfile.{number}").write_text(text)
    words = [hadolint, "--failure-threshold", "warning", *map(str, tmp_path.iterdir())]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_labels_tell_every_version_commit_and_hash() -> None:
    lock = lock_of("torch-extensions", "gfx803")
    found = labels(ExportSubject.of(lock, builtin_catalog()))
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


def test_an_image_on_a_digest_has_the_variables_its_port_and_its_entry_point_inside(
    exports: dict[str, Files],
) -> None:
    name, stack = next((name, one) for name, (one, _) in ROWS.items() if one.name == "vllm-spoof-locked")
    lines = exports[name]["containerfile/Containerfile"].text.splitlines()
    (image,) = [line for line in lines if line.startswith("ARG ")]
    assert re.search(r"@sha256:[0-9a-f]{64}\"$", image)
    component = builtin_catalog().component(stack.components[0])
    assert component.serve is not None
    for name in component.serve.env:
        assert any(line.startswith(f"ENV {name}=") for line in lines)
    assert f"EXPOSE {component.serve.ports[0]}" in lines
    assert f"ENTRYPOINT {json.dumps(list(component.serve.entrypoint))}" in lines


def test_the_labels_of_an_image_are_of_the_stack_and_not_of_what_it_needs_first(
    locks: dict[str, Lock],
) -> None:
    built_along = 0
    for name, lock in locks.items():
        subject = ExportSubject.of(lock, builtin_catalog())
        own = subject.catalog.stack(lock.request.stack).components[0]
        written_down = labels(subject)["org.opencontainers.image.version"]
        assert written_down == next(entry.version for entry in lock.components if entry.name == own), name
        built_along += lock.components[0].name != own
    assert built_along


ENGINE = """#!/bin/sh
for word; do printf '%s\\n' "$word"; done
"""


def test_a_script_starts_the_program_that_a_pulled_image_has_in_every_other_form(
    exports: dict[str, Files], tmp_path: Path
) -> None:
    """Each script runs with an engine that prints its arguments: the image's entry point may be another."""
    engine = tmp_path / "engine"
    engine.write_text(ENGINE)
    engine.chmod(0o755)
    tried = set()
    for name, files in exports.items():
        subject = ExportSubject.of(lock_of_row(*ROWS[name]), builtin_catalog())
        for entry in served(subject):
            component = slug(entry.component.name)
            whole = [*entry.serve.entrypoint, *entry.serve.command]
            (script,) = written({f"{name}.sh": files[f"run/run-{component}.sh"]}, tmp_path)
            env = {
                "ENGINE": str(engine),
                "DATA": str(tmp_path / "data"),
                variable(entry.component.name, "image"): "IMAGE",
            }
            done = subprocess.run(
                ["sh", script, "more"], env=os.environ | env, capture_output=True, text=True, check=True
            )
            words = done.stdout.splitlines()
            program = [words[words.index("--entrypoint") + 1]] if "--entrypoint" in words else []
            assert [*program, *words[words.index("IMAGE") + 1 :]] == [*whole, "more"], name
            unit = files[f"quadlet/{component}.container"].text.splitlines()
            started = [shlex.split(line)[-1] for line in unit if "--entrypoint" in line]
            arguments = next(
                (shlex.split(line.removeprefix("Exec=")) for line in unit if line.startswith("Exec=")), []
            )
            assert [*started, *arguments] == whole, name
            if not entry.built:
                lines = files["containerfile/Containerfile"].text.splitlines()
                inside = [
                    json.loads(line.partition(" ")[2]) for line in lines if re.match("ENTRYPOINT|CMD", line)
                ]
                assert [word for words in inside for word in words] == whole, name
                # the first word is a program, not an argument of the image's own
                assert whole[0] != "serve", name
                tried.add(component)
    assert tried >= {"ollama", "vllm-image", "sglang-image"}
