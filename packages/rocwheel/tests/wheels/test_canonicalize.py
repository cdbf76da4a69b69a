from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from rocbase.errors import CheckError, InputError
from rocwheel.cli import cli
from rocwheel.wheels.canonicalize import OTHERWISE, form_of, normalise, wheels_in
from rocwheel.wheels.metadata import RecordRow, record_bytes
from rocwheel_samples.wheel_making import FILES, NAME, small_wheel

INFO = "small-1.0.dist-info"
EPOCH = 1_700_000_000


def sound_wheel(folder: Path, name: str = NAME) -> Path:
    """A wheel with a right RECORD in no particular form."""
    rows = [
        RecordRow(path=path, sha256=hashlib.sha256(data).hexdigest(), size=len(data))
        for path, data in FILES.items()
    ]
    record = record_bytes([RecordRow(path=f"{INFO}/RECORD"), *reversed(rows)])
    return small_wheel(folder, {f"{INFO}/RECORD": record, **FILES}, name)


def test_two_builds_of_the_same_content_become_the_same_bytes(tmp_path: Path) -> None:
    one = sound_wheel(tmp_path / "one")
    two = small_wheel(tmp_path / "two", dict(reversed(FILES.items())))
    assert one.read_bytes() != two.read_bytes()
    made = normalise(one, one, epoch=EPOCH)
    assert made.changed
    normalise(two, two, epoch=EPOCH, fix_record=True)
    assert one.read_bytes() == two.read_bytes()


def test_what_is_in_its_one_form_stays_so(tmp_path: Path) -> None:
    wheel = sound_wheel(tmp_path)
    normalise(wheel, wheel, epoch=EPOCH)
    before = wheel.read_bytes()
    assert not normalise(wheel, wheel, epoch=EPOCH).changed
    assert wheel.read_bytes() == before


def test_an_unpacked_wheel_gives_the_same_bytes_as_the_wheel(tmp_path: Path) -> None:
    wheel = sound_wheel(tmp_path)
    folder = tmp_path / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    made = normalise(folder, tmp_path, epoch=EPOCH)
    assert made.path == wheel
    unpacked = wheel.read_bytes()
    sound_wheel(tmp_path)
    normalise(wheel, wheel, epoch=EPOCH)
    assert wheel.read_bytes() == unpacked


def test_an_unpacked_wheel_with_a_link_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "unpacked"
    with zipfile.ZipFile(sound_wheel(tmp_path)) as archive:
        archive.extractall(folder)
    (folder / "small/link").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match="link"):
        normalise(folder, tmp_path, epoch=EPOCH)


def test_a_record_that_contradicts_the_files_is_not_hidden(tmp_path: Path) -> None:
    wheel = small_wheel(tmp_path, {**FILES, f"{INFO}/RECORD": b"small/__init__.py,,\nx,,\n"})
    before = wheel.read_bytes()
    with pytest.raises(CheckError, match="contradict") as told:
        normalise(wheel, wheel, epoch=EPOCH)
    assert "x, which is missing" in told.value.detail
    assert wheel.read_bytes() == before
    normalise(wheel, wheel, epoch=EPOCH, fix_record=True)
    assert form_of(wheel).differences == ()


def test_what_differs_from_the_one_form_is_told(tmp_path: Path) -> None:
    wheel = sound_wheel(tmp_path)
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.mkdir("small")
    told = form_of(wheel).differences
    assert "folders have entries of their own" in told
    assert "files are not in order" in told
    assert "files have modes that are not 0644 or 0755" in told

    normalise(wheel, wheel, epoch=EPOCH)
    assert form_of(wheel).differences == ()
    assert form_of(wheel, epoch=EPOCH).differences == ()
    assert form_of(wheel, epoch=0).differences == ("the files have another time",)

    with zipfile.ZipFile(wheel, "a") as archive:
        archive.comment = b"packed by hand"
    assert form_of(wheel).differences == (OTHERWISE,)


def test_a_folder_stands_for_its_wheels(tmp_path: Path) -> None:
    wheels = [sound_wheel(tmp_path, f"small-1.0-{build}-py3-none-any.whl") for build in (1, 2)]
    assert wheels_in(tmp_path) == wheels
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match="neither a folder of wheels"):
        wheels_in(empty)


def run(*words: str | int | Path) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["canonicalize", *map(str, words)])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout


def test_the_command_checks_writes_and_checks_again(tmp_path: Path) -> None:
    wheel = sound_wheel(tmp_path)
    with pytest.raises(CheckError, match="1 of 1 wheels not in canonical form"):
        run(tmp_path, "--check")
    code, told = run(tmp_path, "--check", "--json")
    assert code == 12
    assert not json.loads(told)[0]["normal"]

    code, told = run(tmp_path, "--epoch", EPOCH, "--json")
    assert (code, json.loads(told)[0]["sha256"]) == (0, hashlib.sha256(wheel.read_bytes()).hexdigest())
    assert run(tmp_path, "--check")[0] == 0
    assert run(wheel, "--check", "--epoch", EPOCH)[0] == 0
    assert "already canonical" in run(wheel, "--epoch", EPOCH)[1]


def test_the_command_writes_where_it_is_told_and_takes_the_time_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(EPOCH))
    wheel = sound_wheel(tmp_path)
    before = wheel.read_bytes()
    out = tmp_path / "out"
    out.mkdir()
    run(wheel, "-o", out)
    run(wheel, "-o", tmp_path / "other.whl", "--epoch", EPOCH)
    assert wheel.read_bytes() == before
    assert (out / NAME).read_bytes() == (tmp_path / "other.whl").read_bytes()


def test_pip_and_unzip_take_a_normalised_wheel(tmp_path: Path) -> None:
    wheel = sound_wheel(tmp_path)
    normalise(wheel, wheel, epoch=EPOCH)
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target")
    subprocess.run([*pip, tmp_path / "site", wheel], check=True)
    subprocess.run(["unzip", "-tq", wheel], check=True)
    assert (tmp_path / "site/small/__init__.py").is_file()
