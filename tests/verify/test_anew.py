"""Whether a build was without what others left in a compiler cache: told, signed, and asked for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from samples.project import make_sources, open_project, put_roots
from tests.conftest import Command

from rocwright.execution.compiler_cache import lend
from rocwright.follow.cycle.channels import LockEvidence, missing
from rocwright.home import Home
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.files import read_lock, write_lock, write_request
from rocwright.plan.resolve.settings import Channel
from rocwright.records.model import ANEW, Finding, now, said_of
from rocwright.records.opening import read_records
from rocwright.store.local import LocalStore
from rocwright.store.model import CacheUse, Shard, records

PACK = "tar --sort=name --mtime=@$SOURCE_DATE_EPOCH --owner=0 --group=0 -czf $OUT/alpha-1.0.tar.gz a"
RECIPES = {
    "alpha": {
        "kind": "archive",
        "run": ["mkdir a", "cp file a/", "test -z ${CCACHE_DISABLE-} && touch /ccache/left", PACK],
        "output": [{"name": "archive", "pattern": "alpha-*.tar.gz"}],
    }
}
FILE = "rocwright-out/tiny/alpha-1.0.tar.gz"
CHANNEL = Channel(name="strict", said="built", checks=(ANEW,))


@pytest.fixture
def env(tmp_path: Path, home: Home, tiny_root: Path, rocwright: Command, engine: str) -> dict[str, str]:
    """A project in the command's folder, whose trust domain has a compiler cache that is filled."""
    make_sources(tmp_path / "sources", RECIPES)
    project = open_project(tmp_path / "sources", home.path)
    put_roots(project, tiny_root)
    lock = read_lock(tmp_path / "sources/rocwright.lock")
    write_request(tmp_path / "project/rocwright.toml", lock.request)
    write_lock(tmp_path / "project/rocwright.lock", lock)
    step = next(one for one in make_plan(lock, project.catalog).steps if one.name == "alpha")
    with lend(home, step.domain) as cache:
        assert cache.folder is not None
        (cache.folder / "before").touch()
    return {"ROCWRIGHT_CATALOG": str(tmp_path / "sources/catalog"), "DOMAIN": step.domain}


def run(rocwright: Command, env: dict[str, str], *words: str) -> str:
    told = rocwright(*words, env=env)
    assert told.returncode == 0, told.stderr
    return told.stdout


def evidence(home: Home) -> tuple[Finding, ...]:
    """The findings of the newest verification."""
    with read_records(home) as records:
        newest = next(one for one in records.runs(limit=10) if one.command == "verify")
        return tuple(records.findings(run=newest.id))


def lack(home: Home, channel: Channel = CHANNEL) -> str:
    """What a channel lacks, such as one that asks for builds without a compiler cache."""
    from datetime import UTC, datetime

    told = missing(
        channel, LockEvidence(said="built", findings=evidence(home)), None, False, datetime.now(UTC)
    )
    return f"{told.bring}: {told.why}" if told else ""


def test_a_filled_compiler_cache_is_told_and_a_channel_can_refuse_it_until_it_is_reproduced(
    rocwright: Command, home: Home, env: dict[str, str]
) -> None:
    run(rocwright, env, "build")
    shown = run(rocwright, env, "attest", "show", FILE)
    assert f"alpha: compiled with what steps of its trust domain {env['DOMAIN'][:16]} left" in shown
    [statement] = json.loads(run(rocwright, env, "attest", "show", FILE, "--json"))
    said = statement["predicate"]["buildDefinition"]["internalParameters"]["compilerCache"]
    assert said == {"alpha": {"state": "filled", "domain": env["DOMAIN"]}}
    run(rocwright, env, "verify")
    assert lack(home) == "anew: not recompiled: alpha: with a compiler cache that earlier steps filled"
    run(rocwright, env, "reproduce")
    run(rocwright, env, "verify")
    assert lack(home) == ""


def test_a_step_that_went_on_in_a_kept_tree_was_not_compiled_anew(
    rocwright: Command, home: Home, env: dict[str, str]
) -> None:
    run(rocwright, env, "build", "--no-compiler-cache")
    store = LocalStore(home.store)
    for record in records(store):
        if record.step == "alpha":
            store.write_record(record.model_copy(update={"resumed": 1}))
    run(rocwright, env, "verify")
    assert lack(home) == "anew: not recompiled: alpha: gone on with in a kept tree"
    run(rocwright, env, "reproduce")
    run(rocwright, env, "verify")
    assert lack(home) == ""


def test_shards_of_another_owner_are_told_and_no_channel_takes_them_until_it_is_reproduced(
    rocwright: Command, home: Home, env: dict[str, str]
) -> None:
    run(rocwright, env, "build", "--no-compiler-cache")
    store = LocalStore(home.store)
    shards = (Shard(key="1" * 64, step="shard/alpha/1-of-2"), Shard(key="2" * 64, step="s", keyid="f" * 64))
    for record in records(store):
        if record.step == "alpha":
            store.write_record(record.model_copy(update={"shards": shards}))
    run(rocwright, env, "verify")
    wanted = "anew: compiled by others in part: alpha: signed by ffffffffffff"
    assert lack(home, Channel(name="any", said="built")) == wanted
    run(rocwright, env, "reproduce")
    run(rocwright, env, "verify")
    assert lack(home, Channel(name="any", said="built")) == ""


def test_a_build_without_a_compiler_cache_says_so(
    rocwright: Command, home: Home, env: dict[str, str]
) -> None:
    run(rocwright, env, "attest", "key")
    run(rocwright, env, "build", "--no-compiler-cache")
    assert "alpha: compiled without a compiler cache" in run(rocwright, env, "attest", "verify", FILE)
    run(rocwright, env, "verify")
    assert lack(home) == ""
    assert not (home.compiler_cache(env["DOMAIN"]) / "left").exists()


def test_how_a_thing_was_made_is_no_check_of_what_it_does() -> None:
    made = Finding(component="a", check=ANEW, name="n", ok=True, when=now())
    assert said_of("verify", "verified", [made]) == ""


def test_a_cache_filled_by_another_owner_are_told_signed_and_taken_by_no_channel_until_it_is_reproduced(
    rocwright: Command, home: Home, env: dict[str, str], tmp_path: Path
) -> None:
    run(rocwright, env, "build", "--no-compiler-cache")
    store = LocalStore(home.store)
    for record in records(store):
        if record.step == "alpha":
            use = CacheUse(state="filled", domain=env["DOMAIN"])
            store.write_record(record.model_copy(update={"cache_signers": ("f" * 64,), "cache": use}))
    run(rocwright, env, "verify")
    wanted = "anew: compiled by others in part: alpha: signed by ffffffffffff"
    assert lack(home, Channel(name="any", said="built")) == wanted
    # the statement is written anew
    shutil.rmtree(tmp_path / "project/rocwright-out")
    run(rocwright, env, "build")
    shown = run(rocwright, env, "attest", "show", FILE)
    assert f"alpha: in part by the owner of the key {'f' * 16}" in shown
    run(rocwright, env, "reproduce")
    run(rocwright, env, "verify")
    assert lack(home, Channel(name="any", said="built")) == ""
