"""A file is never shown with a sha256 without the word for its form: built for real, each command asked."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from samples.project import make_sources, open_project, put_roots, wheel_recipe
from tests.conftest import Command

from rocbase.files.atomic import sha256_file
from rocwheel.wheels.canonicalize import form_of, normalise
from rocwheel_samples.wheel_making import NAME, small_wheel
from rocwright.home import Home
from rocwright.model.step_environment import EPOCH
from rocwright.plan.resolve.files import read_lock, write_lock, write_request

FORMS = ("as built", "as laid out", "canonical form")
SHOWN = 16
"""Characters of a sha256 that tables show."""


@pytest.mark.usefixtures("engine")
def test_every_command_says_which_form_of_a_wheel_a_sha256_is_of(
    tmp_path: Path, home: Home, tiny_root: Path, rocwright: Command
) -> None:
    raw = small_wheel(tmp_path / "raw")
    (tmp_path / "made").mkdir()
    # deflated by another library than ours, so that it is not in canonical form
    made = with_record(raw, tmp_path / "made")
    make_sources(
        tmp_path / "sources",
        {"small": {**wheel_recipe(made), "check": [{"name": "wheel", "kind": "wheel"}]}},
    )
    put_roots(open_project(tmp_path / "sources", home.path), tiny_root)
    lock = read_lock(tmp_path / "sources/rocwright.lock")
    project = tmp_path / "project"
    write_request(project / "rocwright.toml", lock.request)
    write_lock(project / "rocwright.lock", lock)
    env = {"ROCWRIGHT_CATALOG": str(tmp_path / "sources/catalog")}

    def told(*words: str, code: int = 0) -> str:
        done = rocwright(*words, env=env)
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout

    built = told("build")
    laid = project / "rocwright-out/tiny" / NAME
    of = {
        "as built": sha256_file(made),
        "as laid out": sha256_file(laid),
        "canonical form": form_of(made, epoch=EPOCH).sha256,
    }
    assert len(set(of.values())) == len(FORMS)
    found = told("verify")
    run, *_ = (one["id"] for one in json.loads(told("history", "--json")) if one["command"] == "verify")
    made_by, *_ = (one["id"] for one in json.loads(told("history", "--json")) if one["command"] == "build")
    again = told("reproduce", str(laid))
    shutil.copy(laid, project / NAME)
    texts = {
        "build": built,
        "verify": found,
        "history RUN": told("history", run),
        "history RUN --markdown": told("history", made_by, "--markdown"),
        "sbom": told("sbom", str(laid)),
        "sbom --format cyclonedx": told("sbom", str(laid), "--format", "cyclonedx"),
        "attest show": told("attest", "show", str(laid)),
        "reproduce": again,
        "reproduce --lock": told("reproduce", NAME, "--lock", "rocwright.lock"),
        "store ls": told("store", "ls"),
        "store usage": told("store", "usage"),
    }
    shows: dict[str, set[str]] = {}
    for command, text in texts.items():
        shows[command] = {form for form, sha256 in of.items() if sha256[:SHOWN] in text}
        plain = re.sub(r"as-built:sha256", "as built", text)
        lacking = [form for form in shows[command] if form not in plain]
        assert not lacking, (command, lacking, text)
    # what is looked for is there, so that the loop above can fail
    assert shows["build"] >= {"as laid out"}
    assert shows["verify"] == shows["history RUN"] == {"canonical form"}
    assert shows["history RUN --markdown"] == {"as built", "canonical form"}
    assert shows["sbom --format cyclonedx"] == shows["reproduce"] == {"as built"}
    assert shows["attest show"] == shows["reproduce --lock"] == {"as built", "as laid out"}

    (artifact,) = json.loads(told("build", "--json"))["artifacts"]
    assert (artifact["sha256"], artifact["laid_out"]["sha256"]) == (of["as built"], of["as laid out"])
    (record,) = [one for one in json.loads(told("store", "ls", "--json")) if one["step"] == "small"]
    assert record["outputs"][0]["sha256"] == of["as built"]
    findings = json.loads(told("history", run, "--json"))["findings"]
    assert {one["sha256"] for one in findings} - {""} == {of["as built"]}
    # pip compares what it downloads with this
    index = (project / "rocwright-out/simple/small/index.html").read_text()
    assert f"{NAME}#sha256={of['as laid out']}" in index


def with_record(wheel: Path, folder: Path) -> Path:
    """The wheel with a RECORD, and with the times that it has."""
    return normalise(wheel, folder, epoch=EPOCH + 86400, fix_record=True).path
