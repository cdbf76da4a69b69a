"""Looking after a shared store from the command line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.store.sharers import Machine

from rocwright.home import Home
from rocwright.store.blobs import Damage, blob_name
from rocwright.store.bucket import Bucket
from rocwright.store.model import Record
from rocwright.store.shared import word_name

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def lab(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "lab", "lab")


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    return Bucket((tmp_path / "shared").as_uri())


@pytest.fixture
def made(lab: Machine, bucket: Bucket) -> Record:
    record = lab.make()
    lab.push(bucket, record)
    return record


def test_usage_names_steps_and_those_who_are_trusted(
    rocwright: Command, bucket: Bucket, lab: Machine, made: Record
) -> None:
    bucket.add("blobs/aa/" + "a" * 64, b"nobody's")
    told = rocwright("store", "usage", "--of", bucket.url)
    assert told.returncode == 0
    assert made.step in told.stdout
    assert lab.key.keyid in told.stdout
    assert "2 files, 22 B in file://" in told.stdout
    assert "no record names 1 file, 8 B" in told.stdout
    rocwright("trust", "add", bucket.url, "--yes")
    assert lab.key.keyid not in rocwright("store", "usage", "--of", bucket.url).stdout
    found = json.loads(rocwright("store", "usage", "--of", bucket.url, "--json").stdout)
    assert (found["files"], found["unnamed"], found["size"]) == (2, 1, 22)
    assert found["steps"] == [{"name": "engine", "records": 1, "files": 1, "size": 14}]


def test_verify_ends_with_12_where_something_is_wrong(
    rocwright: Command, bucket: Bucket, made: Record
) -> None:
    told = rocwright("store", "verify", "--of", bucket.url)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout == "2 signed objects by 1 key, 1 file, 14 B: 0 wrong\n"
    bucket.replace(blob_name(made.outputs[0].sha256), b"what was BUILT")
    assert rocwright("store", "verify", "--of", bucket.url, "--quick").returncode == 0
    told = rocwright("store", "verify", "--of", bucket.url)
    assert told.returncode == 12
    assert "other bytes than its name says" in told.stdout
    found = json.loads(rocwright("store", "verify", "--of", bucket.url, "--json").stdout)
    assert found["wrong"] == [[blob_name(made.outputs[0].sha256), "other bytes than its name says"]]
    # it is noted, for the next push of this machine
    assert Damage(Home.default().store).has(bucket, made.outputs[0].sha256)


def test_sync_copies_what_is_trusted_and_says_what_it_left_out(
    rocwright: Command, bucket: Bucket, lab: Machine, made: Record, tmp_path: Path
) -> None:
    target = (tmp_path / "mirror").as_uri()
    told = rocwright("store", "sync", bucket.url, target)
    assert told.returncode != 0
    assert "no key is trusted" in told.stderr
    assert f"rocwright trust add {bucket.url}" in told.stderr
    assert not (tmp_path / "mirror").exists()
    rocwright("trust", "add", bucket.url, "--yes")
    told = rocwright("store", "sync", bucket.url, target)
    assert told.returncode == 0
    assert "1 record and 0 locks copied, 0 there already, 1 file, 14 B" in told.stdout
    assert rocwright("store", "verify", "--of", target).returncode == 0
    other = lab.make(b"other", "other")
    lab.push(bucket, other)
    bucket.replace(blob_name(other.outputs[0].sha256), b"OTHER")
    told = rocwright("store", "sync", bucket.url, target, "--json")
    assert told.returncode == 12
    assert "other bytes" in json.loads(told.stdout)["left_out"][0]


def test_gc_removes_old_records_of_ones_own_key_alone(
    rocwright: Command, bucket: Bucket, lab: Machine, made: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--of" in rocwright("store", "gc", "--last", "1").stderr
    words = ("store", "gc", "--of", bucket.url, "--last", "0", "--keep", "0")
    assert "there is no key to sign with" in rocwright(*words).stderr
    monkeypatch.setenv("ROCWRIGHT_ATTEST_KEY", str(lab.path / "lab.key"))
    assert json.loads(rocwright(*words[:-1], "1", "--json").stdout)["records"] == 0
    assert "1 record, 0 files, 0 B would be removed" in rocwright(*words, "--dry-run").stdout
    assert bucket.size(word_name("record", made.key, lab.key.keyid)) is not None
    assert "1 record, 0 files, 0 B removed" in rocwright(*words).stdout
    assert bucket.size(word_name("record", made.key, lab.key.keyid)) is None
    # its file is young, and stays two days
    assert bucket.size(blob_name(made.outputs[0].sha256)) is not None


def test_a_policy_is_for_the_key_that_is_named(rocwright: Command, lab: Machine, tmp_path: Path) -> None:
    (tmp_path / "lab.pub").write_text(lab.key.pem)
    told = rocwright("store", "policy", "s3://lab/store", "--key", str(tmp_path / "lab.pub"))
    assert f"records/*/{lab.key.keyid}" in told.stdout
    assert json.loads(told.stdout)["Version"] == "2012-10-17"
    reader = json.loads(rocwright("store", "policy", "s3://lab/store", "--for", "reader").stdout)
    assert [one["Sid"] for one in reader["Statement"]] == ["List", "Read"]
    told = rocwright("store", "policy", "https://builds.lab.example/x")
    assert told.returncode != 0
    assert "has no policies" in told.stderr
