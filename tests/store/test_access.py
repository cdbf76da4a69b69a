"""A builder gets along with the rights that the printed policy gives, and can remove nothing of others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from tests.store.servers import reach, s3
from tests.store.sharers import Machine

from rocbase.errors import InputError
from rocwright.store.access import policy, rights
from rocwright.store.blobs import blob_name
from rocwright.store.bucket import Bucket
from rocwright.store.contents import read_contents
from rocwright.store.shared import word_name


@pytest.fixture
def server() -> Iterator[str]:
    with s3() as url:
        yield url


@pytest.fixture
def lab(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "lab", "lab")


class Cloud:
    """The S3 server as it lets in users of its identity management, each with one policy."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
        from moto.core.authorization import ActionAuthenticatorMixin
        from moto.iam.models import iam_backends

        self.iam: Any = iam_backends["123456789012"]["aws"]
        self.monkeypatch, self.url = monkeypatch, url
        monkeypatch.setattr(ActionAuthenticatorMixin, "request_count", 0)

    def be(self, name: str, said: Any) -> None:
        """Be a user who may do what a policy says, and no more."""
        self.iam.create_user("us-east-1", name)
        self.iam.put_user_policy(name, "rocwright", json.dumps(said))
        key = self.iam.create_access_key(user_name=name)
        reach(self.monkeypatch, self.url, key.secret_access_key)
        self.monkeypatch.setenv("AWS_ACCESS_KEY_ID", key.access_key_id)
        # from here on it asks who is there
        self.monkeypatch.setattr("moto.core.authorization.settings.INITIAL_NO_AUTH_ACTION_COUNT", 0)


def test_a_builder_builds_with_its_rights_and_removes_nothing(
    monkeypatch: pytest.MonkeyPatch, server: str, lab: Machine, tmp_path: Path
) -> None:
    friend = Machine(tmp_path / "friend", "friend")
    cloud = Cloud(monkeypatch, server)
    cloud.be("friend", policy("s3://lab", "builder", friend.key.keyid))
    theirs = friend.make(b"another thing", "other")
    friend.push(Bucket("s3://lab"), theirs)
    cloud.be("lab", policy("s3://lab", "builder", lab.key.keyid))
    bucket = Bucket("s3://lab")
    made = lab.make(b"x" * 9_000_000)
    lab.push(bucket, made)
    lab.pusher(bucket).lock("d" * 64, "a lock")
    lab.pusher(bucket).lock("d" * 64, "a newer lock")
    for refused in (
        lambda: bucket.remove(blob_name(theirs.outputs[0].sha256)),
        lambda: bucket.remove(word_name("record", theirs.key, friend.key.keyid)),
        lambda: bucket.replace(word_name("record", theirs.key, friend.key.keyid), b"x"),
        lambda: bucket.replace(word_name("lock", "e" * 64, friend.key.keyid), b"x"),
        lambda: bucket.add("elsewhere", b"x"),
    ):
        with pytest.raises(InputError, match="does not let us"):
            refused()

    cloud.be("reader", policy("s3://lab", "reader"))
    bucket = Bucket("s3://lab")
    assert len(read_contents(bucket).records) == 2
    assert bucket.size("nothing") is None
    with pytest.raises(InputError, match="does not let us"):
        bucket.add("leases/x", b"")


def test_a_builder_of_s3_removes_its_leases_and_nothing_else() -> None:
    # the server above knows no rights of single objects when several are removed by one request
    [row] = [
        one for one in policy("s3://lab/x", "builder", "K")["Statement"] if "s3:DeleteObject" in one["Action"]
    ]

    def may(name: str) -> bool:
        return any(fnmatchcase(f"arn:aws:s3:::lab/x/{name}", one) for one in row["Resource"])

    assert may("leases/push-1")
    assert may("probe/1")
    assert not any(map(may, ("blobs/ab/abc", "records/ab/abc/K", "keys.json", "../leases/x")))
    [row] = [one for one in policy("s3://lab/x", "keeper")["Statement"] if "s3:DeleteObject" in one["Action"]]
    assert may("blobs/ab/abc")


def test_s3_limits_the_list_to_the_folder_and_names_only_its_objects() -> None:
    said = policy("s3://lab/rocm/store", "builder", "K")
    by_name = {one["Sid"]: one for one in said["Statement"]}
    assert by_name["List"]["Resource"] == ["arn:aws:s3:::lab"]
    assert by_name["List"]["Condition"] == {"StringLikeIfExists": {"s3:prefix": ["rocm/store/*"]}}
    objects = [one for name, row in by_name.items() if name != "List" for one in row["Resource"]]
    assert all(one.startswith("arn:aws:s3:::lab/rocm/store/") for one in objects)
    assert "arn:aws:s3:::lab/rocm/store/records/*/K" in by_name["Add"]["Resource"]


def test_google_lets_a_builder_add_and_write_over_only_its_own_words() -> None:
    said = policy("gs://lab/store", "builder", "K")
    by_role = {one["role"].rpartition(".")[2]: one["condition"]["expression"] for one in said["bindings"]}
    begin = 'resource.name.startsWith("projects/_/buckets/lab/objects/store/'
    assert f'({begin}records/") && resource.name.endsWith("/K"))' in by_role["objectCreator"]
    assert f'{begin}blobs/")' in by_role["objectCreator"]
    assert "blobs/" not in by_role["objectUser"]
    assert f'{begin}leases/")' in by_role["objectUser"]
    assert f'({begin}evidence/") && resource.name.endsWith("/K"))' in by_role["objectUser"]
    assert [one["role"] for one in policy("gs://lab", "reader")["bindings"]] == ["roles/storage.objectViewer"]


def test_azure_limits_writing_and_removing_by_path() -> None:
    reader, builder = policy("az://lab/store", "builder", "K")
    assert reader["role"] == "Storage Blob Data Reader"
    write, _, remove = builder["condition"].partition(" AND ((")
    assert "'store/records/*/K'" in write
    assert "blobs/delete" in remove
    assert "'store/leases/*'" in remove
    assert "records" not in remove
    assert builder["condition"].count("(") == builder["condition"].count(")")
    assert len(policy("az://lab", "reader")) == 1


def test_a_folder_and_a_web_server_have_no_policies(tmp_path: Path) -> None:
    for url in (tmp_path.as_uri(), "https://builds.lab.example/store"):
        with pytest.raises(InputError, match="has no policies"):
            policy(url, "builder")


def test_no_right_of_a_builder_covers_the_word_of_another() -> None:
    given = rights("builder", "K")
    for name in ("records/ab/abc/L", "locks/ab/abc/L", "evidence/ab/abc/L", "keys/L"):
        assert not any(fnmatchcase(name, one) for one in (*given.add, *given.replace, *given.remove))
