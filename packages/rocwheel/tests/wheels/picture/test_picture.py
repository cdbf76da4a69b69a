"""The picture of a wheel: every byte is for something, and what strangers wrote stays text."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.cli import cli
from rocwheel.wheels.devicecode.gpu import machines
from rocwheel.wheels.picture.anatomy import HOST, OTHER, SEVERAL, Anatomy, FileParts, Part, anatomy, colours
from rocwheel.wheels.picture.draw import html, svg
from rocwheel_samples.fatbin import (
    compressed_bundle,
    entry_id,
    fatbin,
    gpu_elf,
    host_elf,
    plain_bundle,
    write_wheel,
)

NUMBERS = {name: number for number, name in machines().items()}
SVG = "{http://www.w3.org/2000/svg}"


def bundle(*targets: str, body: bytes = b"x" * 5000) -> bytes:
    return plain_bundle([(entry_id(one), gpu_elf(NUMBERS[one], body=body)) for one in targets])


def parts(found: Anatomy, path: str) -> dict[str, int]:
    (one,) = [file for file in found.files if file.path == path]
    return {part.what: part.size for part in one.parts}


def a_wheel(folder: Path) -> Path:
    return write_wheel(
        folder / "x.whl",
        {
            "x/lib.so": host_elf(fatbin([bundle("gfx1151", "gfx803"), bundle("gfx803")])),
            "x/packed.so": host_elf(fatbin([compressed_bundle(bundle("gfx803"), version=2, method=1)])),
            "x/plain.so": host_elf(b"text", name=b".text"),
            "x/db/gfx90a68.kdb": b"k" * 100,
            "x/aotriton.images/amd-gfx11xx/a": b"a" * 50,
            "x/__init__.py": b"pass\n",
        },
    )


def test_every_byte_of_every_file_is_for_something(tmp_path: Path) -> None:
    found = anatomy(a_wheel(tmp_path))
    for one in found.files:
        assert sum(part.size for part in one.parts) == one.size, one.path
    assert sum(part.size for part in found.totals) == found.size
    assert parts(found, "x/lib.so")["gfx803"] == 2 * (64 + 5000)
    assert parts(found, "x/lib.so")["gfx1151"] == 64 + 5000
    assert 0 < parts(found, "x/packed.so")["gfx803"] < 5000  # its share of the compressed bundle
    assert parts(found, "x/plain.so").keys() == {HOST}
    assert parts(found, "x/db/gfx90a68.kdb") == {"gfx90a": 100}
    assert parts(found, "x/aotriton.images/amd-gfx11xx/a") == {SEVERAL: 50}
    assert parts(found, "x/__init__.py") == {OTHER: 5}


def test_the_picture_has_a_bar_for_each_target(tmp_path: Path) -> None:
    root = ElementTree.fromstring(svg(anatomy(a_wheel(tmp_path))))
    told = [one.text for one in root.iter(f"{SVG}text")]
    assert {"x.whl", "gfx803", "gfx1151", "gfx90a", HOST, OTHER} <= set(told)
    assert any("3 code objects" in (one or "") for one in told)


def test_many_small_files_are_one_bar(tmp_path: Path) -> None:
    files = {f"x/{number}.py": b"x" * 10 for number in range(40)} | {"x/big.bin": b"y" * 5000}
    told = svg(anatomy(write_wheel(tmp_path / "x.whl", files)))
    assert "40 smaller files" in told and "x/big.bin" in told


@given(name=st.text(min_size=1, max_size=60).filter(lambda text: text.isprintable()))
def test_names_of_strangers_stay_text(name: str) -> None:
    evil = f'{name}"><script>alert(1)</script>'
    found = Anatomy(
        name=evil, packed=1, files=(FileParts(path=evil, size=9, parts=(Part(what=OTHER, size=9),)),)
    )
    assert "<script>" not in svg(found)
    assert "<script>" not in html(found)
    ElementTree.fromstring(svg(found))


def test_an_empty_wheel_has_a_picture_too() -> None:
    ElementTree.fromstring(svg(Anatomy(name="x", packed=0, files=())))


def test_targets_have_colours_of_their_own() -> None:
    found = colours([Part(what=f"gfx{number}", size=1) for number in range(900, 920)])
    assert len(set(found.values())) == len(found)


@pytest.mark.parametrize("option", ["--svg", "--html"])
def test_the_command_writes_it(tmp_path: Path, option: str) -> None:
    out = tmp_path / "out" / "x"
    done = CliRunner().invoke(cli, ["inspect", str(a_wheel(tmp_path)), option, str(out)])
    assert done.exit_code == 0, done.output
    assert "gfx1151" in out.read_text()
