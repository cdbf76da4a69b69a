"""A folder of wheels as static pages."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocwheel.wheels.index.write import write
from rocwheel.wheels.index.yanks import unyank, yank
from rocwheel_samples.fatbin import compressed_bundle, host_elf, plain_bundle
from rocwheel_samples.index_making import anchors, index, make_wheel, names, page

MARKER = "simple/.rocwright-index.json"


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """Two projects without GPU code, and one with a wheel for each of two GPUs."""
    folder = tmp_path / "wheels"
    make_wheel(folder, "plain")
    make_wheel(folder / "deeper", "Other_Name", "2.0")
    make_wheel(folder, "kernels", "1.0+one", targets=("gfx1030",))
    make_wheel(folder, "kernels", "1.0+two", targets=("gfx1100", "gfx1151"))
    return folder


def test_a_page_tells_hash_size_time_python_and_metadata_of_each_wheel(wheels: Path) -> None:
    path = wheels / "plain-1.0-py3-none-any.whl"
    os.utime(path, ns=(0, 1_600_000_000_123_456_789))
    index(wheels)
    found = page(wheels, "plain")
    metadata = (wheels / "plain-1.0-py3-none-any.whl.metadata").read_bytes()
    assert metadata.startswith(b"Metadata-Version: 2.1\nName: plain\n")
    told = {"sha256": hashlib.sha256(metadata).hexdigest()}
    assert found == {
        "meta": {"api-version": "1.1"},
        "name": "plain",
        "versions": ["1.0"],
        "files": [
            {
                "filename": path.name,
                "url": "../../plain-1.0-py3-none-any.whl",
                "hashes": {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()},
                "size": path.stat().st_size,
                "upload-time": "2020-09-13T12:26:40.123456Z",
                "core-metadata": told,
                "dist-info-metadata": told,
                "requires-python": ">=3.9",
            }
        ],
    }


def test_html_says_the_same_as_json(wheels: Path) -> None:
    yank(wheels, "kernels", "1.0+one", 'it "computes" <nonsense>')
    index(wheels)
    links = anchors((wheels / "simple/kernels/index.html").read_text())
    files = page(wheels, "kernels")["files"]
    assert len(links) == len(files) == 2
    for (address, told, text), file in zip(links, files, strict=True):
        assert address == f"{file['url']}#sha256={file['hashes']['sha256']}"
        assert text == file["filename"]
        assert told["data-requires-python"] == file["requires-python"]
        assert told["data-core-metadata"] == f"sha256={file['core-metadata']['sha256']}"
        assert told["data-dist-info-metadata"] == told["data-core-metadata"]
        assert told.get("data-yanked") == file.get("yanked")
    assert files[0]["yanked"] == 'it "computes" <nonsense>'


def test_projects_have_normalised_names_on_the_page_of_all(wheels: Path) -> None:
    index(wheels)
    assert [one["name"] for one in page(wheels)["projects"]] == ["kernels", "other-name", "plain"]
    assert names(wheels, "other-name") == ["Other_Name-2.0-py3-none-any.whl"]
    assert page(wheels, "other-name")["files"][0]["url"].startswith("../../deeper/")


def test_a_view_holds_the_wheels_for_its_gpu_and_those_without_gpu_code(wheels: Path) -> None:
    index(wheels)
    assert names(wheels, "kernels", "gfx1151") == ["kernels-1.0+two-py3-none-any.whl"]
    assert names(wheels, "kernels", "gfx1030") == ["kernels-1.0+one-py3-none-any.whl"]
    assert names(wheels, "plain", "gfx1151") == names(wheels, "plain")
    assert not (wheels / "gfx803").exists()
    link = page(wheels, "kernels", "gfx1151")["files"][0]["url"]
    assert link == "../../../kernels-1.0%2Btwo-py3-none-any.whl"


def test_code_for_a_generic_target_is_for_all_that_it_covers(wheels: Path) -> None:
    make_wheel(wheels, "kernels", "1.0+generic", targets=("gfx11-generic",))
    index(wheels)
    generic = "kernels-1.0+generic-py3-none-any.whl"
    assert names(wheels, "kernels", "gfx1151") == [generic, "kernels-1.0+two-py3-none-any.whl"]
    for view in ("gfx11-generic", "gfx1103"):
        assert names(wheels, "kernels", view) == [generic]
    assert generic not in names(wheels, "kernels", "gfx1030")


def test_spir_v_is_for_every_gpu_and_has_a_view_of_its_own(wheels: Path) -> None:
    spirv = plain_bundle([("hip-spirv64-amd-amdhsa--amdgcnspirv", b"\x03\x02\x23\x07" + bytes(60))])
    make_wheel(wheels, "portable", files={"portable/lib.so": host_elf(spirv)})
    index(wheels)
    for view in ("", "amdgcnspirv", "gfx1030", "gfx1151"):
        assert names(wheels, "portable", *([view] if view else [])) == ["portable-1.0-py3-none-any.whl"]
    assert not (wheels / "amdgcnspirv" / "simple" / "kernels").exists()


def test_code_that_cannot_be_read_is_in_no_gpus_view(wheels: Path) -> None:
    newer = b"CCOB\x09\x00" + compressed_bundle(plain_bundle([]), version=3, method=1)[6:]
    make_wheel(wheels, "newer", files={"newer/lib.so": host_elf(newer, name=b".rodata")})
    index(wheels)
    assert names(wheels, "newer") == ["newer-1.0-py3-none-any.whl"]
    assert not (wheels / "gfx1151" / "simple" / "newer").exists()


def test_only_pages_that_change_are_written_again(wheels: Path) -> None:
    index(wheels)
    before = {path: path.stat().st_ino for path in wheels.rglob("*") if path.is_file()}
    assert index(wheels)[1].pages == 0
    make_wheel(wheels, "plain", "1.1")
    look, written = index(wheels)
    assert look.read == 1
    changed = {path for path, inode in before.items() if path.stat().st_ino != inode}
    views = ("", "gfx1030", "gfx1100", "gfx1151")
    pages = {
        wheels / view / "simple/plain" / name for view in views for name in ("index.html", "index.v1_json")
    }
    assert changed == pages | {wheels / MARKER}
    assert written.pages == len(pages) + 1  # and the metadata of the new wheel


def test_what_is_taken_away_goes_from_the_pages_with_its_views(wheels: Path) -> None:
    index(wheels)
    (wheels / "kernels-1.0+one-py3-none-any.whl").unlink()
    (wheels / "deeper/Other_Name-2.0-py3-none-any.whl").unlink()
    index(wheels)
    assert names(wheels, "kernels") == ["kernels-1.0+two-py3-none-any.whl"]
    assert [one["name"] for one in page(wheels)["projects"]] == ["kernels", "plain"]
    assert not (wheels / "gfx1030").exists()
    assert not (wheels / "simple/other-name").exists()
    assert not list(wheels.rglob("*+one*.metadata"))


def test_a_wheel_that_is_replaced_has_its_new_hash(wheels: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    index(wheels, out)
    old = page(out, "plain")["files"][0]
    path = make_wheel(wheels, "plain", files={"more.py": b"pass\n"})
    index(wheels, out)
    new = page(out, "plain")["files"][0]
    assert new["hashes"]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest() != old["hashes"]["sha256"]
    assert (out / "simple/plain" / new["url"]).read_bytes() == path.read_bytes()


def test_another_folder_gets_the_wheels_too(wheels: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert index(wheels, out)[1].wheels == 4
    for view in ("", "gfx1151"):
        for file in page(out, "kernels", view)["files"]:
            place = out / view / "simple/kernels" / file["url"].replace("%2B", "+")
            assert hashlib.sha256(place.read_bytes()).hexdigest() == file["hashes"]["sha256"]
            metadata = place.with_name(place.name + ".metadata").read_bytes()
            assert hashlib.sha256(metadata).hexdigest() == file["core-metadata"]["sha256"]
    assert not (wheels / "simple").exists()


def test_a_tree_within_the_folder_is_not_taken_for_wheels(wheels: Path) -> None:
    index(wheels, wheels / "out")
    look, written = index(wheels, wheels / "out")
    assert (len(look.wheels), look.read, written.pages) == (4, 0, 0)


def test_a_damaged_marker_is_begun_anew(wheels: Path, tmp_path: Path) -> None:
    for out in (wheels, tmp_path / "out"):
        index(wheels, out)
        (out / MARKER).write_text("no marker")
        look, written = index(wheels, out)
        assert (look.read, written.wheels, written.pages) == (4, 0, 0)


def test_a_forged_marker_removes_nothing_outside(wheels: Path, tmp_path: Path) -> None:
    index(wheels)
    marker = json.loads((wheels / MARKER).read_text())
    victims = [tmp_path / "simple/index.html", tmp_path / "x-1-py3-none-any.whl.metadata"]
    victims[0].parent.mkdir()
    for victim in victims:
        victim.write_text("mine")
    forged = {**marker["wheels"][0], "seen": ["../x-1-py3-none-any.whl", 1, 1, 1]}
    (wheels / MARKER).write_text(json.dumps({**marker, "wheels": [*marker["wheels"], forged]}))
    with pytest.raises(InputError, match="outside of the index"):
        index(wheels)
    (wheels / MARKER).write_text(json.dumps({**marker, "whole": False, "views": [".."]}))
    index(wheels)
    assert [victim.read_text() for victim in victims] == ["mine", "mine"]


def test_a_tree_written_in_part_is_written_to_the_end(wheels: Path) -> None:
    index(wheels)
    marker = wheels / MARKER
    make_wheel(wheels, "plain", "1.1")
    before = marker.read_text()
    index(wheels)
    whole = {path: path.read_bytes() for path in wheels.rglob("*.*_*")}
    # as a kill before the end leaves it: pages of before, a cache that knows the wheel already
    marker.write_text(before)
    shutil.rmtree(wheels / "simple/plain")
    index(wheels)
    assert {path: path.read_bytes() for path in wheels.rglob("*.*_*")} == whole


def test_a_tree_that_was_left_at_once_is_still_known_as_ours(wheels: Path) -> None:
    index(wheels)
    marker = wheels / MARKER
    marker.write_text(json.dumps(json.loads(marker.read_text()) | {"whole": False}))
    (wheels / "simple/plain/index.html").unlink()
    assert index(wheels)[1].pages == 1


def test_pages_of_others_are_not_written_over(wheels: Path) -> None:
    (wheels / "simple/plain").mkdir(parents=True)
    (wheels / "simple/plain/index.html").write_text("mine")
    with pytest.raises(InputError, match="simple already exists"):
        index(wheels)
    assert (wheels / "simple/plain/index.html").read_text() == "mine"


@pytest.mark.parametrize("place", ["simple", "simple/plain", "gfx1030", "gfx1030/simple"])
def test_a_link_where_pages_belong_is_not_followed(wheels: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (wheels / place).parent.mkdir(exist_ok=True)
    (wheels / place).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is a link"):
        write(wheels, wheels, ours=True)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_page_that_became_a_link_is_a_page_again(wheels: Path, tmp_path: Path) -> None:
    index(wheels)
    page = wheels / "simple/plain/index.html"
    page.rename(tmp_path / "mine")
    page.symlink_to(tmp_path / "mine")
    write(wheels, wheels, everything=True)
    assert not page.is_symlink()


def test_a_yank_is_on_the_pages_until_it_is_taken_back(wheels: Path) -> None:
    (wheels / "yanked.toml").write_text("# why: see the log\n")
    yank(wheels, "Other.Name", "2", "")
    index(wheels)
    assert page(wheels, "other-name")["files"][0]["yanked"] is True
    assert 'data-yanked=""' in (wheels / "simple/other-name/index.html").read_text()
    unyank(wheels, "other-name", "2.0")
    index(wheels)
    assert "yanked" not in page(wheels, "other-name")["files"][0]
    assert (wheels / "yanked.toml").read_text().startswith("# why: see the log\n")


def test_a_yank_of_nothing_is_told(wheels: Path) -> None:
    yank(wheels, "plain", "9.9", "gone wrong")
    (problem,) = index(wheels)[0].problems
    assert "plain 9.9" in problem.what


def test_many_new_wheels_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    for number in range(260):
        make_wheel(folder, f"p{number % 26}", f"1.{number}")
    look, written = index(folder)
    assert (len(look.wheels), look.problems) == (260, ())
    assert written.pages == 260 + 2 * 27
    assert len(names(folder, "p7")) == 10


def test_a_second_look_reads_only_what_changed(wheels: Path) -> None:
    index(wheels)
    path = wheels / "plain-1.0-py3-none-any.whl"
    os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns + 1))
    look, _ = index(wheels)
    assert (look.read, len(look.wheels)) == (1, 4)
