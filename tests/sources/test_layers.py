"""Layers laid over each other as the OCI image specification says, and packed the same way everywhere."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from rocbase.errors import FetchError
from rocwright.sources.layers import ImageConfig, pack_layers

Member = tuple[str, str]
"""A path, and what is there: "d" a folder, "f:TEXT" a file, "s:AIM" a symlink, "h:AIM" a hard link."""


def member(path: str, what: str, **more: object) -> tuple[tarfile.TarInfo, bytes]:
    sort, _, text = what.partition(":")
    info = tarfile.TarInfo(path)
    info.mtime, info.mode = 1_600_000_000, 0o755 if sort == "d" else 0o644
    data = text.encode() if sort == "f" else b""
    info.size = len(data)
    info.type = {
        "d": tarfile.DIRTYPE, "f": tarfile.REGTYPE, "s": tarfile.SYMTYPE,
        "h": tarfile.LNKTYPE, "c": tarfile.CHRTYPE,
    }[sort]  # fmt: skip
    info.linkname = text if sort in "sh" else ""
    for name, value in more.items():
        setattr(info, name, value)
    return info, data


def layer(*members: Member | tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for one in members:
            info, data = member(*one) if isinstance(one[0], str) else one
            tar.addfile(info, io.BytesIO(data) if info.isreg() else None)
    return out.getvalue()


def config_of(layers: Sequence[bytes], config: dict[str, object] | None) -> bytes:
    described = {
        "architecture": "amd64",
        "config": {"Env": ["PATH=/bin", "A=b=c"]},
        "rootfs": {"diff_ids": [f"sha256:{hashlib.sha256(one).hexdigest()}" for one in layers]},
    } | (config or {})
    return json.dumps(described).encode()


def save(folder: Path, *layers: bytes, config: dict[str, object] | None = None) -> Path:
    """The archive of an image of these layers, as an engine saves it."""
    names = [f"{number}/layer.tar" for number in range(len(layers))]
    files = dict(zip(names, layers, strict=True))
    files["config.json"] = config_of(layers, config)
    files["manifest.json"] = json.dumps([{"Config": "config.json", "Layers": names}]).encode()
    path = folder / "image.tar"
    with tarfile.open(path, "w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def bring(
    folder: Path, *layers: bytes, packed: Sequence[bytes] = (), config: dict[str, object] | None = None
) -> Path:
    """The folder of an image of these layers, as skopeo fills it."""

    def blob(data: bytes) -> dict[str, str]:
        (image / hashlib.sha256(data).hexdigest()).write_bytes(data)
        return {"digest": f"sha256:{hashlib.sha256(data).hexdigest()}"}

    image = folder / "image"
    image.mkdir(exist_ok=True)
    manifest = {"config": blob(config_of(layers, config)), "layers": [blob(one) for one in packed or layers]}
    (image / "manifest.json").write_text(json.dumps(manifest))
    return image


def pack(folder: Path, saved: Path) -> ImageConfig:
    return pack_layers(saved, folder / "root.tar.zst", folder, "registry.example/x:1")


def root(folder: Path, *layers: bytes, **more: Sequence[bytes]) -> dict[str, str]:
    """What is in the packed root, in its order."""
    pack(folder, bring(folder, *layers, packed=more.get("packed", ())))
    plain = zstandard.ZstdDecompressor().stream_reader((folder / "root.tar.zst").open("rb"))
    found = {}
    with tarfile.open(fileobj=io.BytesIO(plain.read()), mode="r:") as tar:
        for info in tar:
            body = tar.extractfile(info) if info.isreg() else None
            found[info.name] = (
                "d" if info.isdir()
                else f"s:{info.linkname}" if info.issym()
                else f"h:{info.linkname}" if info.islnk()
                else f"f:{body.read().decode()}" if body
                else "?"
            )  # fmt: skip
    return found


def test_what_a_layer_brings_is_there_in_the_order_of_names(tmp_path: Path) -> None:
    found = root(tmp_path, layer(("./b", "d"), ("./b/x", "f:1"), ("./a", "s:b/x"), ("etc/c", "f:2")))
    assert list(found.items()) == [("a", "s:b/x"), ("b", "d"), ("b/x", "f:1"), ("etc", "d"), ("etc/c", "f:2")]


def test_a_layer_above_replaces_removes_and_hides(tmp_path: Path) -> None:
    below = layer(
        ("a", "f:old"), ("b", "f:gone"), ("c", "d"), ("c/x", "f:hidden"), ("d", "d"), ("d/y", "f:kept")
    )
    above = layer(("a", "f:new"), (".wh.b", "f:"), ("c/z", "f:own"), ("c/.wh..wh..opq", "f:"), ("d", "d"))
    assert root(tmp_path, below, above) == {
        "a": "f:new", "c": "d", "c/z": "f:own", "d": "d", "d/y": "f:kept",
    }  # fmt: skip


def test_a_layer_removes_from_the_layers_below_it_only(tmp_path: Path) -> None:
    assert root(tmp_path, layer(("a", "f:old")), layer(("a", "f:new"), (".wh.a", "f:"))) == {"a": "f:new"}


def test_a_folder_becomes_a_file_and_a_file_a_folder(tmp_path: Path) -> None:
    below = layer(("a", "d"), ("a/x", "f:1"), ("b", "f:2"))
    assert root(tmp_path, below, layer(("a", "f:3"), ("b/y", "f:4"))) == {"a": "f:3", "b": "d", "b/y": "f:4"}


def test_names_under_a_link_are_where_it_leads(tmp_path: Path) -> None:
    below = layer(("usr/lib", "d"), ("lib", "s:/usr/lib"), ("up", "s:../../../usr"))
    found = root(tmp_path, below, layer(("lib/x", "f:1"), ("up/y", "f:2")))
    assert found["usr/lib/x"] == "f:1"
    assert found["usr/y"] == "f:2"
    assert found["lib"] == "s:/usr/lib"


def test_hard_links_stay_links_to_the_first_of_their_names(tmp_path: Path) -> None:
    found = root(tmp_path, layer(("m", "f:1"), ("a", "h:m"), ("z", "h:./m")))
    assert found == {"a": "f:1", "m": "h:a", "z": "h:a"}


def test_a_hard_link_keeps_its_content_when_the_other_name_is_replaced(tmp_path: Path) -> None:
    below = layer(("m", "f:1"), ("z", "h:m"))
    assert root(tmp_path, below, layer(("m", "f:2"))) == {"m": "f:2", "z": "f:1"}
    assert root(tmp_path, below, layer((".wh.m", "f:"))) == {"z": "f:1"}


def test_devices_and_what_is_the_kernels_are_left_out(tmp_path: Path) -> None:
    members = [("dev", "d"), ("dev/x", "f:1"), ("proc/y", "f:1"), ("sys/z", "f:1"), ("etc/null", "c")]
    assert root(tmp_path, layer(*members)) == {"dev": "d", "etc": "d", "proc": "d", "sys": "d"}


def test_owners_modes_times_and_capabilities_are_kept(tmp_path: Path) -> None:
    pax = {"SCHILY.xattr.security.capability": "x", "comment": "y", "mtime": "1600000000.5"}
    odd = member("ping", "f:1", uid=1, gid=42, mode=0o4755, uname="me", pax_headers=pax)
    root(tmp_path, layer(odd))
    plain = zstandard.ZstdDecompressor().stream_reader((tmp_path / "root.tar.zst").open("rb")).read()
    with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as tar:
        [info] = tar.getmembers()
    assert (info.uid, info.gid, info.mode, info.uname, info.mtime) == (1, 42, 0o4755, "", 1_600_000_000)
    assert info.pax_headers == {"SCHILY.xattr.security.capability": "x"}


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_a_compressed_layer_is_the_same(tmp_path: Path, compress: object) -> None:
    plain = layer(("a", "f:1"))
    assert root(tmp_path, plain, packed=[compress(plain)]) == {"a": "f:1"}  # type: ignore[operator]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**16))
def test_the_order_of_members_does_not_change_the_bytes(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("order")
    members = [("a", "d"), ("a/x", "f:1"), ("a/y", "s:x"), ("b", "f:2"), ("c", "d")]
    pack(folder, bring(folder, layer(*members)))
    first = (folder / "root.tar.zst").read_bytes()
    random.Random(seed).shuffle(members)
    pack(folder, bring(folder, layer(*members)))
    assert (folder / "root.tar.zst").read_bytes() == first


def test_the_image_says_its_architecture_and_environment(tmp_path: Path) -> None:
    config = pack(tmp_path, bring(tmp_path, layer(("a", "f:1"))))
    assert config == ImageConfig(architecture="amd64", env={"PATH": "/bin", "A": "b=c"})


@pytest.mark.parametrize("path", ["../x", "a/../../x", "a/.."])
def test_a_name_that_leads_out_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(FetchError, match="not safe"):
        root(tmp_path, layer((path, "f:1")))


def test_a_layer_that_is_not_what_the_image_says_is_refused(tmp_path: Path) -> None:
    good, other = layer(("a", "f:1")), layer(("a", "f:2"))
    with pytest.raises(FetchError, match=r"a layer of .* does not match the image's manifest"):
        root(tmp_path, good, packed=[other])


@pytest.mark.parametrize("cut", [0, 100, 600, 1500, 5000])
def test_an_archive_that_is_cut_short_is_refused(tmp_path: Path, cut: int) -> None:
    content = layer(("a", "f:" + "1" * 5000))
    saved = bring(tmp_path, content, packed=[gzip.compress(content, 0)])
    blob = max(saved.iterdir(), key=lambda path: path.stat().st_size)
    blob.write_bytes(blob.read_bytes()[:cut])
    with pytest.raises(FetchError, match=r"not a complete image|does not match the image"):
        pack(tmp_path, saved)


@pytest.mark.parametrize(
    "config", [{"rootfs": {}}, {"rootfs": {"diff_ids": []}}, {"rootfs": None}, {"config": {"Env": ["x"]}}]
)
def test_a_config_that_says_something_else_is_refused(tmp_path: Path, config: dict[str, object]) -> None:
    with pytest.raises(FetchError, match="not a complete image"):
        pack(tmp_path, bring(tmp_path, layer(("a", "f:1")), config=config))


def test_a_link_to_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="not a complete image"):
        root(tmp_path, layer(("a", "h:nothing")))
