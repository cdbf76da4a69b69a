"""The OCI image layout that a step packs: every digest in it is right, and it holds root and binaries."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.execution.conftest import put_root
from tests.making import put_output, small_plan

from rocbase.errors import FetchError
from rocwheel_samples.tables import each
from rocwright.execution.exec_step import execute
from rocwright.home import Home
from rocwright.model.steps import ImageAction, Input, Step
from rocwright.store.local import LocalStore
from rocwright.store.model import records, verified


@pytest.fixture
def step(store: LocalStore, tiny_root: Path, tmp_path: Path) -> Step:
    """An image of the tiny root and an archive with a program and a link."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as file:
        for name, kind in (("x-1", tarfile.DIRTYPE), ("x-1/bin", tarfile.DIRTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.uid = kind, 0o755, 4711
            file.addfile(info)
        info = tarfile.TarInfo("x-1/bin/program")
        info.size, info.mode, info.uid, info.mtime = 4, 0o755, 4711, 99
        file.addfile(info, io.BytesIO(b"data"))
        info = tarfile.TarInfo("x-1/bin/link")
        info.type, info.linkname = tarfile.SYMTYPE, "program"
        file.addfile(info)
    made = small_plan().steps[-1]
    put_output(store, made, "archive", packed.getvalue(), tmp_path)
    image = Step(
        name="image/x",
        component="x",
        action=ImageAction(
            name="x",
            reference="rocwright/x:1",
            prefix="/opt/x",
            entrypoint=("/opt/x/bin/program",),
            env={"A": "1"},
            labels={"l": "v"},
            architecture="amd64",
        ),
        inputs=(
            Input(name="root", key=put_root(store, tiny_root).key, output="root"),
            Input(name="archive", key=made.key, output="archive"),
        ),
    )
    store.put_step(image.key, image.model_dump_json(by_alias=True).encode())
    return image


def layout(store: LocalStore, home: Home, step: Step) -> dict[str, bytes]:
    [output] = execute(step.key, store, home, print).outputs
    assert output.filename == "x.oci.tar"
    with tarfile.open(verified(store, output.sha256)) as file:
        return {one.name: file.extractfile(one).read() for one in file if one.isreg()}  # type: ignore[union-attr]


def blob(files: dict[str, bytes], named: dict[str, Any]) -> bytes:
    data = files[f"blobs/sha256/{named['digest'].removeprefix('sha256:')}"]
    assert len(data) == named["size"]
    return data


def test_the_layout_is_whole_and_every_digest_in_it_is_right(
    store: LocalStore, home: Home, step: Step
) -> None:
    files = layout(store, home, step)
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    for name, data in files.items():
        if name.startswith("blobs/"):
            assert sha256(data).hexdigest() == name.removeprefix("blobs/sha256/")
    [named] = json.loads(files["index.json"])["manifests"]
    manifest = json.loads(blob(files, named))
    config = json.loads(blob(files, manifest["config"]))
    layers = [blob(files, layer) for layer in manifest["layers"]]
    plain = [zstandard.ZstdDecompressor().decompressobj().decompress(layers[0]), gzip.decompress(layers[1])]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{sha256(one).hexdigest()}" for one in plain]
    assert len(files) == 2 + 2 + len(layers)


def test_the_image_says_what_it_is_and_how_it_starts(store: LocalStore, home: Home, step: Step) -> None:
    files = layout(store, home, step)
    [named] = json.loads(files["index.json"])["manifests"]
    manifest = json.loads(blob(files, named))
    config = json.loads(blob(files, manifest["config"]))
    assert (config["architecture"], config["os"]) == ("amd64", "linux")
    assert config["config"]["Entrypoint"] == ["/opt/x/bin/program"]
    assert "A=1" in config["config"]["Env"]
    assert config["config"]["Labels"] == manifest["annotations"] == {"l": "v"}


def test_the_binaries_lie_under_the_prefix_as_roots_with_one_time(
    store: LocalStore, home: Home, step: Step
) -> None:
    files = layout(store, home, step)
    [named] = json.loads(files["index.json"])["manifests"]
    top = blob(files, json.loads(blob(files, named))["layers"][1])
    with tarfile.open(fileobj=io.BytesIO(top)) as file:
        members = {one.name: one for one in file}
    assert sorted(members) == ["opt", "opt/x", "opt/x/bin", "opt/x/bin/link", "opt/x/bin/program"]
    assert {(one.uid, one.gid, one.uname) for one in members.values()} == {(0, 0, "")}
    assert len({one.mtime for one in members.values()}) == 1
    assert members["opt/x/bin/program"].mode == 0o755
    assert members["opt/x/bin/link"].linkname == "program"


def test_an_image_is_packed_to_the_same_bytes_every_time(store: LocalStore, home: Home, step: Step) -> None:
    one = execute(step.key, store, home, print).outputs
    store.local.remove("record", step.key)
    for record in records(store):
        if record.step == "image/x":
            store.local.remove("record", record.key)
    store.local.remove("file", one[0].sha256)
    assert execute(step.key, store, home, print).outputs == one


HOSTILE = {
    "a name that leads out": {"name": "x-1/../../etc/shadow"},
    "a device": {"type": tarfile.CHRTYPE, "devmajor": 1},
    "a link that leads out": {"type": tarfile.SYMTYPE, "linkname": "/etc/shadow"},
}


@each("change", HOSTILE.values(), ids=HOSTILE)
def test_an_archive_that_is_not_safe_to_unpack_is_refused(
    store: LocalStore, home: Home, step: Step, tmp_path: Path, change: dict[str, Any]
) -> None:
    info = tarfile.TarInfo("x-1/file")
    for name, value in change.items():
        setattr(info, name, value)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as file:
        file.addfile(tarfile.TarInfo("x-1/other"))
        file.addfile(info)
    made = small_plan().steps[-1]
    store.local.remove("record", made.key)
    put_output(store, made, "archive", packed.getvalue(), tmp_path)
    with pytest.raises(FetchError, match="archive is refused: its member"):
        execute(step.key, store, home, print)
