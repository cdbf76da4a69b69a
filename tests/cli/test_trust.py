"""A first user with an empty home and a trusted store gets an artifact without a compiler."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from samples.project import make_sources, open_project, put_roots
from tests.making import record_of
from tests.store.servers import static_host
from tests.store.sharers import Machine

from rocbase.errors import InputError
from rocwright import api
from rocwright.config import store_of
from rocwright.execution.options import BuildOptions
from rocwright.flow import current_lock
from rocwright.home import Home
from rocwright.model.steps import FetchAction, Step
from rocwright.plan.decide import State
from rocwright.plan.resolve.files import lock_text
from rocwright.store.blobs import blob_name
from rocwright.store.bucket import Bucket
from rocwright.store.local import LocalStore
from rocwright.store.model import Output
from rocwright.store.push import Pusher
from rocwright.store.sharing import SharingStore
from rocwright.store.signing.keys import fingerprint
from rocwright.store.trust import Trust, TrustedStore, read_trust, trust_file, write_trust

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def lab(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "lab", "lab")


@pytest.fixture
def bucket(tmp_path: Path, lab: Machine) -> Bucket:
    bucket = Bucket((tmp_path / "shared").as_uri())
    lab.pusher(bucket).open("lab-store")
    return bucket


def test_a_store_is_trusted_after_its_fingerprint_was_shown_and_confirmed(
    rocwright: Command, bucket: Bucket, lab: Machine
) -> None:
    refused = rocwright("trust", "add", bucket.url, before=["sh", "-c", 'echo n | "$@"', "sh"])
    assert refused.returncode == 1
    assert fingerprint(lab.key.pem.encode()) in refused.stderr
    silent = rocwright("trust", "add", bucket.url, before=["sh", "-c", 'exec "$@" < /dev/null', "sh"])
    assert "there is nobody to ask" in silent.stderr
    assert "--yes" in silent.stderr
    assert "nothing is trusted" in rocwright("trust", "list").stdout
    assert rocwright("trust", "add", bucket.url, "--yes", "--agree", "1").returncode == 0
    told = json.loads(rocwright("trust", "list", "--json").stdout)
    assert [one["keyid"] for one in told["keys"]] == [lab.key.keyid]
    assert told["stores"] == [{"name": "lab-store", "url": bucket.url, "agree": 1}]
    # a second time changes nothing
    assert rocwright("trust", "add", bucket.url, "--yes").returncode == 0
    assert json.loads(rocwright("trust", "list", "--json").stdout) == told


def test_a_key_can_be_trusted_from_its_file_revoked_and_removed(
    rocwright: Command, lab: Machine, tmp_path: Path
) -> None:
    (tmp_path / "friend.pub").write_text(lab.key.pem)
    assert rocwright("trust", "add", str(tmp_path / "friend.pub"), "--yes").returncode == 0
    assert rocwright("trust", "revoke", "friend", "--since", "2026-11-24").returncode == 0
    told = json.loads(rocwright("trust", "list", "--json").stdout)
    assert told["keys"][0]["revoked"] == "2026-11-24T00:00:00Z"
    wrong = rocwright("trust", "revoke", "friend", "--since", "yesterday")
    assert wrong.returncode != 0
    assert "yesterday is not a day" in wrong.stderr
    assert rocwright("trust", "remove", "friend").returncode == 0
    assert "nothing that is trusted is called friend" in rocwright("trust", "remove", "friend").stderr
    assert json.loads(rocwright("trust", "list", "--json").stdout)["keys"] == []


def test_what_is_no_store_and_no_key_is_told(rocwright: Command, tmp_path: Path) -> None:
    with static_host(tmp_path) as url:
        told = rocwright("trust", "add", url, "--yes")
    assert "there is no store of rocwright at" in told.stderr
    (tmp_path / "x.pub").write_text("not a key")
    assert "is not a public key" in rocwright("trust", "add", str(tmp_path / "x.pub"), "--yes").stderr
    assert "Traceback" not in told.stderr


def test_nothing_is_pushed_without_a_key_and_nothing_that_was_not_built(
    rocwright: Command, tmp_path: Path
) -> None:
    url = (tmp_path / "shared").as_uri()
    words = ("store", "push", "gfx-smoke", "--gpu", "gfx803", "--to", url)
    told = rocwright(*words)
    assert told.returncode != 0
    assert "there is no key to sign with" in told.stderr
    assert "rocwright attest key" in told.stderr
    assert rocwright("attest", "key").returncode == 0
    told = rocwright(*words)
    assert "nothing of gfx-smoke is built here" in told.stderr
    assert "rocwright build gfx-smoke --gpu gfx803 first" in told.stderr
    assert not (tmp_path / "shared").exists(), "no store was made for nothing"
    assert "no trusted store has any of it" in rocwright("store", "pull", *words[2:5]).stdout


def test_all_that_was_built_here_can_be_pushed_without_a_project(
    rocwright: Command, home: Home, tmp_path: Path
) -> None:
    (tmp_path / "made").write_bytes(b"what was built")
    store = LocalStore(home.store)
    sha256, size = store.put_file(tmp_path / "made")
    step = Step(name="engine", component="engine", action=FetchAction(pending="engine"))
    output = Output(name="out", filename="made", sha256=sha256, size=size)
    # by the key over its inputs' digests, as of a step that has inputs
    store.put_record(record_of(step, output).model_copy(update={"content_key": "c" * 64}))
    key = rocwright("attest", "key").stdout
    url = (tmp_path / "shared").as_uri()
    told = rocwright("store", "push", "--all", "--to", url, "--json")
    assert json.loads(told.stdout)["records"] == 1, told.stderr
    shown = json.loads(told.stdout)["fingerprint"]
    asked = rocwright("trust", "add", url, before=["sh", "-c", 'echo n | "$@"', "sh"]).stderr
    again = rocwright("store", "push", "--all", "--to", url).stdout
    assert all(f" {shown}" in text for text in (key, asked, again)), "one form wherever it is compared"
    assert Bucket(url).get(blob_name(sha256), 100) == b"what was built"


def test_a_push_sends_the_root_that_it_runs_on_and_none_that_it_was_built_in(
    home: Home, lab: Machine, bucket: Bucket, engine: str, tiny_root: Path, tmp_path: Path
) -> None:
    make_sources(tmp_path)
    built_there = open_project(tmp_path, tmp_path / "lab-home")
    put_roots(built_there, tiny_root)
    key, locked = lab.path / "lab.key", built_there.locked
    with pytest.raises(InputError, match="nothing of tiny is built here"):
        api.push(built_there, bucket.url, locked=locked, key=key)
    assert not api.build(built_there, options=BuildOptions(jobs=2, engine=engine)).failures
    api.push(built_there, bucket.url, locked=locked, key=key)

    trusted = TrustedStore(name="lab-store", url=bucket.url)
    write_trust(trust_file(), Trust(key=(lab.key,), store=(trusted,)))
    here = open_project(tmp_path, home.path)
    offered = {one.step.name for one in api.plan(here, here.locked) if one.state is State.CACHED}
    assert offered == {"alpha", "beta", "image/alpha", "root/run"}


def test_an_empty_home_takes_lock_and_artifacts_from_a_trusted_store_and_runs_no_step(
    home: Home, lab: Machine, bucket: Bucket, engine: str, tiny_root: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    make_sources(tmp_path)
    built_there = open_project(tmp_path, tmp_path / "lab-home")
    put_roots(built_there, tiny_root)
    first = api.build(built_there, options=BuildOptions(jobs=2, engine=engine))
    assert not first.failures
    pusher = Pusher(built_there.store, bucket, lab.signer)
    steps = [one.step for one in api.plan(built_there, built_there.locked)]
    done = pusher.records(one.key for one in steps if one.kind in ("run", "image"))
    assert done.records >= 2
    assert pusher.lock(built_there.request.digest, lock_text(built_there.locked))

    monkeypatch.setenv("ROCWRIGHT_HOME", str(home.path))
    with static_host(tmp_path / "shared") as url:
        trusted = Trust(key=(lab.key,), store=(TrustedStore(name="lab-store", url=url),))
        write_trust(trust_file(), trusted)
        assert read_trust(trust_file()) == trusted
        here = open_project(tmp_path, home.path)
        assert isinstance(here.store, SharingStore)
        said: list[str] = []
        # without a lock of its own the published one is taken
        alone = replace(here, lock_path=tmp_path / "here" / "rocwright.lock")
        alone.lock_path.parent.mkdir()
        assert current_lock(alone, said.append) == built_there.locked
        assert said[0].startswith("lock: from lab-store, signed 20")
        said.clear()
        told = api.plan(here, here.locked)
        assert {one.state.value for one in told} == {"in store", "not needed"}
        assert any(one.reasons and "from lab-store, built by lab" in one.reasons[0] for one in told)
        second = api.build(here, options=BuildOptions(jobs=2, engine=engine), say=said.append)
    assert not second.failures
    assert [one.output.sha256 for one in second.artifacts] == [one.output.sha256 for one in first.artifacts]
    assert all(one.path.exists() for one in second.artifacts)
    assert "  beta: from lab-store, built by lab, 20" in capsys.readouterr().err
    assert not second.run.steps, "nothing ran here"
    # once it is here the store is not needed any more
    assert {one.state.value for one in api.plan(here, here.locked)} == {"in store", "not needed"}
    assert store_of(home).record(steps[-1].key) is not None
