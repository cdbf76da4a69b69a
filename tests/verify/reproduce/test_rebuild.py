"""Builds made twice, for real: one that gives the same bytes, one that does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import zstandard
from samples.project import make_sources, open_project, put_roots
from tests.conftest import Command

from rocwright.home import Home
from rocwright.plan.resolve.files import read_lock, write_lock, write_request
from rocwright.store.local import LocalStore
from rocwright.store.model import records, verified

PACK = "tar --sort=name --mtime=@$SOURCE_DATE_EPOCH --owner=0 --group=0 -czf"

RECIPES = {
    "alpha": {
        "kind": "archive",
        "run": ["mkdir a", "cp file a/", "ln -s file a/link", f"{PACK} $OUT/alpha-1.0.tar.gz a"],
        "output": [{"name": "archive", "pattern": "alpha-*.tar.gz"}],
    },
    "beta": {
        "kind": "archive",
        "run": ["mkdir b", "date +%N > b/when", "cp file b/", f"{PACK} $OUT/beta.tar.gz b"],
        "output": [{"name": "archive", "pattern": "beta.tar.gz"}],
    },
}


def built(tmp_path: Path, home: Home, root: Path, rocwright: Command, *names: str) -> dict[str, str]:
    """A project in the command's folder, built; the environment that knows its catalog."""
    make_sources(tmp_path / "sources", {name: RECIPES[name] for name in names})
    put_roots(open_project(tmp_path / "sources", home.path), root)
    lock = read_lock(tmp_path / "sources/rocwright.lock")
    write_request(tmp_path / "project/rocwright.toml", lock.request)
    write_lock(tmp_path / "project/rocwright.lock", lock)
    env = {"ROCWRIGHT_CATALOG": str(tmp_path / "sources/catalog")}
    told = rocwright("build", "--jobs", "2", env=env)
    assert told.returncode == 0, told.stderr
    return env


@pytest.mark.usefixtures("engine")
def test_the_same_bytes_are_told_as_such(
    tmp_path: Path, home: Home, tiny_root: Path, rocwright: Command
) -> None:
    env = built(tmp_path, home, tiny_root, rocwright, "alpha")
    told = rocwright("reproduce", env=env)
    assert told.returncode == 0, told.stderr
    assert "same     alpha  alpha-1.0.tar.gz" in told.stdout
    assert "bit for bit the same: 2 of 2" in told.stdout
    assert "in another folder, no compiler cache" in told.stdout
    assert not any((home.path / "reproduce").iterdir()), "the second build's folder is gone"
    for file in ("rocwright-out/tiny/alpha-1.0.tar.gz", "rocwright.lock"):
        told = rocwright("reproduce", file, "--json", env=env)
        assert told.returncode == 0, told.stderr
        found = json.loads(told.stdout)
        assert (found["same"], len(found["outputs"])) == (True, 2)
    told = rocwright("reproduce", file, "--base", "debian:sid", env=env)
    assert told.returncode == 2
    assert "leave out --gpu, --base and --set" in told.stderr


@pytest.mark.usefixtures("engine")
def test_what_was_packed_by_another_libzstd_is_the_same(
    tmp_path: Path, home: Home, tiny_root: Path, rocwright: Command
) -> None:
    """The tree of the first build is put into the store as such a machine leaves it."""
    env = built(tmp_path, home, tiny_root, rocwright, "alpha")
    store = LocalStore(home.store)
    (record,) = [one for one in records(store) if one.kind == "tree" and one.key != one.content_key]
    [output] = record.outputs
    path = tmp_path / "tree.tar.zst"
    plain = zstandard.ZstdDecompressor().stream_reader(verified(store, output.sha256).open("rb")).read()
    path.write_bytes(zstandard.ZstdCompressor(level=19).compress(plain))
    sha256, size = store.put_file(path)
    assert sha256 != output.sha256
    other = {"sha256": sha256, "size": size}
    store.write_record(record.model_copy(update={"outputs": (output.model_copy(update=other),)}))
    told = rocwright("reproduce", env=env)
    assert told.returncode == 0, told.stderr
    assert f"{sha256[:16]} then {output.sha256[:16]}, packed otherwise" in told.stdout
    assert "bit for bit the same: 2 of 2" in told.stdout
    found = json.loads(rocwright("reproduce", "--json", env=env).stdout)
    assert [one["packed_otherwise"] for one in found["outputs"]] == [True, False]


@pytest.mark.usefixtures("engine")
def test_what_differs_is_named(tmp_path: Path, home: Home, tiny_root: Path, rocwright: Command) -> None:
    env = built(tmp_path, home, tiny_root, rocwright, "alpha", "beta")
    told = rocwright("reproduce", "--keep", env=env)
    assert told.returncode == 12, told.stderr
    lines = told.stdout.splitlines()
    (kept,) = [line.split()[1] for line in lines if line.startswith("kept ")]
    assert (Path(kept) / "store").is_dir()
    assert any(line.endswith("start with beta") for line in lines), told.stdout
    assert any(line.startswith("same     alpha") for line in lines)
    assert any(line.startswith("DIFFERS  beta") for line in lines)
    assert any("b/when" in line for line in lines), told.stdout
    assert not any("b/file" in line for line in lines)


def test_what_was_built_nowhere_here_is_refused(tmp_path: Path, rocwright: Command) -> None:
    (tmp_path / "project/elsewhere.whl").write_bytes(b"x")
    told = rocwright("reproduce", "elsewhere.whl")
    assert told.returncode == 2
    assert "this file was not built on this machine" in told.stderr
    told = rocwright("reproduce", "nowhere.whl")
    assert told.returncode == 2
    assert "nowhere.whl is neither a stack nor a file" in told.stderr
