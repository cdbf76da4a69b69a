"""The page of an artifact: what it is made of, who signed it, how it is installed, its files."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from rocbase.files.atomic import sha256_bytes
from rocwright.home import Home
from rocwright.records.model import Artifact, Finding
from rocwright.records.read import Records
from rocwright.store.model import verified
from rocwright.store.signing.keys import make_key
from rocwright.web.app import app
from tests.provenance.workplace import BETA, WHEEL_BYTES, Workplace, make_workplace
from tests.web.serving import Served, a_run, serve_site

EVIL = "<script>alert('x')</script>"


@pytest.fixture
def work(home: Home, tmp_path: Path) -> Workplace:
    return make_workplace(home, tmp_path / "project")


@pytest.fixture
def here(served: Served, work: Workplace) -> Served:
    """A server in the folder of that project."""
    site = replace(served.site, folder=work.project.output.parent)
    return replace(served, site=site, made=app(site, ("localhost",)))


def put(records: Records, filename: str = BETA, data: bytes = WHEEL_BYTES) -> str:
    made = Artifact(
        component="beta", step="beta", filename=filename, sha256=sha256_bytes(data), size=len(data)
    )
    records.put(a_run(f"run-{sha256_bytes(filename.encode())[:8]}", said="built"), artifacts=[made])
    return f"/artifacts/{made.sha256}"


def test_an_artifact_shows_its_components_and_gives_its_proof(
    here: Served, records: Records, work: Workplace
) -> None:
    at = put(records)
    client = here.client()
    before = client.get(at).text
    assert "not in the rocwright-out folder" in before and "Components" not in before
    laid = work.lay_out()[BETA]
    page = client.get(at).text
    assert "not signed" in page and "rocwright attest key" in page
    rows = {word: row for row in page.split("<tr>") for word in ("as laid out", "as built") if word in row}
    assert laid.sha256 in rows["as laid out"] and sha256_bytes(WHEEL_BYTES) in rows["as built"]
    bill = json.loads(client.get(f"{at}/proof/sbom").content)
    for one in bill["components"]:
        assert f'<th scope="row">{one["name"]}</th>' in page
    assert sha256_bytes(client.get(f"{at}/proof/laid-out").content) == laid.sha256
    assert client.get(f"{at}/file").content == WHEEL_BYTES
    assert (
        client.get(f"{at}/proof/provenance").content
        == laid.path.with_name(f"{BETA}.intoto.jsonl").read_bytes()
    )
    for path in (f"{at}/proof/other", f"/artifacts/{'0' * 64}/proof/sbom", "/artifacts/../tokens.json"):
        assert client.get(path).status_code == 404


def test_files_come_in_parts_and_what_was_changed_does_not_come(
    here: Served, records: Records, work: Workplace
) -> None:
    at = put(records)
    laid = work.lay_out()[BETA]
    client = here.client()
    for address, data in ((f"{at}/file", WHEEL_BYTES), (f"{at}/proof/laid-out", laid.path.read_bytes())):
        part = client.get(address, headers={"range": "bytes=5-9"})
        assert (part.status_code, part.content) == (206, data[5:10])
        assert part.headers["content-disposition"] == f'attachment; filename="{BETA}"'
        same = {"if-none-match": part.headers["etag"]}
        assert client.get(address, headers=same).status_code == 304
    stored = verified(work.project.store, sha256_bytes(WHEEL_BYTES))
    for path, address, status in ((stored, f"{at}/file", 503), (laid.path, f"{at}/proof/laid-out", 409)):
        path.chmod(0o644)
        data = path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        answer = client.get(address, headers={"range": "bytes=5-9"})
        assert answer.status_code == status and data[5:10] not in answer.content


def test_a_signature_is_checked_when_asked_for(here: Served, records: Records, work: Workplace) -> None:
    key = make_key()
    at = put(records)
    laid = work.lay_out()[BETA]
    client = here.client()
    assert "not verified yet" in client.get(at).text
    right = client.get(f"{at}?check=yes").text
    assert "file, statement and signature match" in right and key.keyid in right
    laid.path.write_bytes(laid.path.read_bytes() + b"more")
    wrong = client.get(f"{at}?check=yes").text
    assert "not the file that was signed" in wrong and "go together" not in wrong
    key.public.unlink()
    assert "no key here" in client.get(at).text


def test_a_file_of_that_name_that_is_another_build_is_not_taken_for_it(
    here: Served, records: Records, work: Workplace
) -> None:
    work.lay_out()
    at = put(records, BETA, b"another build")
    page = here.client().get(at).text
    assert "not in the rocwright-out folder" in page and "no longer in the store" in page
    assert here.client().get(f"{at}/proof/sbom").status_code == 404


def test_what_was_damaged_beside_it_is_left_out(here: Served, records: Records, work: Workplace) -> None:
    at = put(records, "alpha-1.0.tar.gz", verified(work.project.store, alpha(work)).read_bytes())
    laid = work.lay_out()["alpha-1.0.tar.gz"]
    client = here.client()
    assert "Components" in client.get(at).text
    laid.path.with_name(f"{laid.path.name}.cdx.json").write_text("{")
    page = client.get(at)
    assert page.status_code == 200 and "Components" not in page.text and "How it was built" in page.text
    laid.path.with_name(f"{laid.path.name}.intoto.jsonl").write_text('{"payload": 1}')
    assert "How it was built" not in client.get(at).text


@pytest.mark.parametrize("suffix", [".cdx.json", ".intoto.jsonl", ""])
@pytest.mark.parametrize("replace", ["link", "pipe", "folder"])
def test_a_server_gives_nothing_that_a_link_or_a_pipe_stands_for(
    here: Served, records: Records, work: Workplace, suffix: str, replace: str, tmp_path: Path
) -> None:
    at = put(records)
    place = work.lay_out()[BETA].path
    place = place.with_name(place.name + suffix)
    if replace == "folder":
        place = place.parent
    place.rename(tmp_path / "elsewhere")
    if replace == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(tmp_path / "elsewhere")
    client = here.client()
    assert "not in the rocwright-out folder" in client.get(at).text
    for proof in ("sbom", "provenance", "laid-out"):
        assert client.get(f"{at}/proof/{proof}").status_code == 404


def alpha(work: Workplace) -> str:
    record = work.project.store.record(work.step("alpha").key)
    assert record is not None
    return record.outputs[0].sha256


def test_a_check_that_ran_twice_is_told_once_and_what_is_wrong_first(
    here: Served, records: Records, work: Workplace
) -> None:
    at = put(records)
    sha256 = at.rpartition("/")[2]
    right, wrong = (
        Finding(component="beta", check="runs", name=name, ok=ok, sha256=sha256, device="cpu")
        for name, ok in (("starts/beta", True), ("answers", False))
    )
    for ident in ("first", "second"):
        # an image and a wheel of a component say the same
        records.put(a_run(ident, command="verify"), findings=[right, right, wrong])
    for path in (at, "/runs/second", "/cell?stack=tiny&gpu=gfx1151&base=debian:sid"):
        page = here.client().get(path).text
        assert page.count("starts/beta") == 1
        assert page.index("answers") < page.index("starts/beta")


def test_only_what_the_index_has_is_offered_to_pip(here: Served, records: Records, work: Workplace) -> None:
    at = put(records)
    before = here.client().get(at).text
    assert "pip install" not in before and "rocwright build" in before
    work.lay_out()
    page = here.client().get(at).text
    assert "pip install" in page and "TOKEN" not in page


def test_where_reading_needs_a_token_the_page_says_where_it_is_had(
    home: Home, here: Served, records: Records, work: Workplace
) -> None:
    work.lay_out()
    at = put(records)
    site = replace(serve_site(home, records, open_=False).site, folder=here.site.folder)
    closed = replace(here, site=site, made=app(site, ("localhost",))).client("read")
    for path in (at, "/gpu/gfx1151", "/cell?stack=tiny&gpu=gfx1151&base=debian:sid"):
        page = closed.get(path).text
        assert "http://me:TOKEN@127.0.0.1/simple/" in page
        assert "rocwright serve token add NAME" in page


def test_names_of_artifacts_are_never_paths(here: Served, records: Records, work: Workplace) -> None:
    work.lay_out()
    for number, name in enumerate(("../../tokens.json", "..", "*", "/etc/passwd")):
        at = put(records, name, bytes([number]))
        assert here.client().get(at).status_code == 200
        assert here.client().get(f"{at}/proof/laid-out").status_code == 404


@pytest.mark.parametrize(
    "content", [b"stack = [", b"\xff", b'stack = "tiny"\ngpu = "gfx1151"\n', b"[channel]\n"]
)
def test_a_project_file_that_cannot_be_read_is_told_on_the_page_of_a_cell(
    here: Served, records: Records, content: bytes
) -> None:
    put(records)
    (here.site.folder / "rocwright.toml").write_bytes(content)
    answer = here.client().get("/cell?stack=tiny&gpu=gfx1151&base=debian:sid")
    assert answer.status_code == 200
    assert 'role="alert"' in answer.text
    assert "rocwright.toml is not" in answer.text
