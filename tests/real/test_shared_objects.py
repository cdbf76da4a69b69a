"""Machines that build in one bucket share single compiled objects: a real ccache, in a real sandbox."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.execution.conftest import Workshop, put_root
from tests.real.standins import CMAKE, STANDINS, UNITS, step_of
from tests.store.servers import reach, s3
from tests.store.sharers import Machine

from rocwright.catalog.load import builtin_catalog
from rocwright.execution.exec_step import execute
from rocwright.execution.objects import share
from rocwright.execution.shards import shards_of
from rocwright.home import Home
from rocwright.model.steps import Step
from rocwright.signing.envelope import parse_envelopes
from rocwright.store import objects as stored
from rocwright.store.bucket import Bucket
from rocwright.store.local import LocalStore
from rocwright.store.model import Objects, Record
from rocwright.store.shared import word_name
from rocwright.store.signed import envelope_of
from rocwright.store.trust import Trust, TrustedKey, write_trust
from rocwright.store.working import WorkingStore

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        not (CMAKE and all(map(shutil.which, ("cmake", "ninja", "gcc", "ccache")))),
        reason="gcc, cmake, ninja or ccache is not installed",
    ),
]

CACHED = """#!/bin/sh
exec ccache /usr/bin/gcc -I/build/src "$@"
"""
ON = "[farm]\ncompiler_cache = true\n"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3() as url:
        yield url


class Lab:
    """Machines with a key and a home each, and the same step; whom each trusts is said anew for each run."""

    def __init__(
        self, folder: Path, engine: str, root: Path, bucket: Bucket, patch: pytest.MonkeyPatch
    ) -> None:
        self.folder, self.engine, self.root, self.bucket, self.patch = folder, engine, root, bucket, patch
        self.machines = {name: Machine(folder / name, name) for name in ("one", "two", "six")}
        self.lines: list[str] = []

    def key(self, name: str) -> TrustedKey:
        return self.machines[name].key

    def step(self, name: str) -> Step:
        """The step, which that machine has planned."""
        machine = self.machines[name]
        local = LocalStore(machine.path / "store")
        shop = Workshop(Home(machine.path), local, self.engine, machine.path, put_root(local, self.root))
        recipe = builtin_catalog().component("llama.cpp")
        commands = tuple(one.replace("{architecture}", "x86_64") for one in recipe.run)
        stand_in = STANDINS["llama.cpp"]
        shutil.rmtree(machine.path / "tree", ignore_errors=True)
        step = step_of(
            shop,
            recipe.name,
            commands,
            recipe.resume,
            stand_in,
            recipe.output[0].pattern,
            split=recipe.split,
            compiler=CACHED,
        )
        return step.model_copy(update={"domain": "d" * 64})

    def run(
        self,
        name: str,
        *trusted: str,
        config: str = ON,
        agree: int = 1,
        step: Step | None = None,
        shards: tuple[str, ...] = (),
        fresh: bool = True,
        compiler_cache: bool = True,
    ) -> Record:
        """Build on a machine, which has compiled nothing yet and whose store has not what others made."""
        machine = self.machines[name]
        home = Home(machine.path)
        (machine.path / "config.toml").write_text(config)
        self.patch.setenv("ROCWRIGHT_HOME", str(machine.path))
        keys = [self.key(one) for one in trusted]
        write_trust(machine.path / "trust.toml", Trust(key=tuple(keys)))
        step = step or self.step(name)
        if fresh:
            shutil.rmtree(home.compiler_caches, ignore_errors=True)
        store = self.store(name, *trusted, agree=agree)
        store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
        self.lines.clear()
        return execute(
            step.key,
            store,
            home,
            self.lines.append,
            engine=self.engine,
            jobs=2,
            shards=shards,
            compiler_cache=compiler_cache,
        )

    def store(self, name: str, *trusted: str, agree: int = 1) -> WorkingStore:
        machine = self.machines[name]
        keys = [self.key(one) for one in dict.fromkeys((name, *trusted))]
        shared = machine.behind(self.bucket, *keys, agree=agree).shared
        return WorkingStore(machine.store, shared, machine.signer, "lab")

    def forget(self) -> None:
        """What was built is in no store any more; what was compiled is."""
        for one in self.bucket.list("records"):
            self.bucket.remove(one.name)
        for machine in self.machines.values():
            for key in machine.store.record_keys():
                record = machine.store.record(key)
                if record is not None and record.step in ("llama.cpp",):
                    machine.store.forget(key)

    def objects(self) -> list[str]:
        return [one.name for one in self.bucket.list("objects")]

    def said(self, text: str) -> list[str]:
        return [one for one in self.lines if text in one]


@pytest.fixture
def lab(
    tmp_path: Path, engine: str, compiler_root: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> Lab:
    reach(monkeypatch, server)
    return Lab(tmp_path, engine, compiler_root, Bucket(f"s3://lab/{tmp_path.name}"), monkeypatch)


def test_the_second_machine_compiles_nothing_gives_the_same_bytes_and_says_whose_objects_it_took(
    lab: Lab,
) -> None:
    first = lab.run("one")
    assert first.compiler_cache["miss"] >= len(UNITS)
    assert first.objects == () and first.cache is not None and first.cache.state == "empty"
    lab.forget()
    second = lab.run("two", "one")
    assert second.key == first.key
    assert second.outputs == first.outputs
    assert second.compiler_cache.get("miss", 0) == 0, lab.lines
    assert second.compiler_cache["hit"] == sum(first.compiler_cache.values())
    [taken] = second.objects
    assert (taken.keyid, taken.count >= len(UNITS)) == (lab.key("one").keyid, True)
    assert second.cache is not None and second.cache.state == "filled"
    assert second.compiled_by_others() == (lab.key("one").keyid,)
    assert lab.said("shared compiler cache: took")
    # it signs nothing of what it took
    assert not [one for one in lab.objects() if one.endswith(lab.key("two").keyid)]
    # a later step finds it in the machine's own cache, and says so too
    lab.forget()
    third = lab.run("two", "one", config="", fresh=False)
    assert third.objects == (Objects(keyid=lab.key("one").keyid, count=0),)


@pytest.mark.nightly
def test_without_being_asked_for_or_trusted_nothing_is_taken(lab: Lab) -> None:
    first = lab.run("one")
    there = lab.objects()
    assert there
    lab.forget()
    # whose key is not trusted; who did not ask for it; who wants all compiled anew
    untrusting = lab.run("two")
    assert untrusting.outputs == first.outputs
    lab.forget()
    unasked = lab.run("six", "one", config="")
    assert not lab.said("shared compiler cache")
    lab.forget()
    anew = lab.run("six", "one", compiler_cache=False)
    assert not lab.said("shared compiler cache")
    # one key's word is not enough where two must agree
    lab.forget()
    lab.run("six", "one", agree=2)
    assert lab.said("more than one key must agree")
    for one in (untrusting, unasked):
        assert one.compiler_cache["miss"] >= len(UNITS)
        assert one.objects == ()
    assert anew.objects == () and anew.cache is not None and anew.cache.state == "none"
    put = {one for one in lab.objects() if one not in there}
    assert {one.rpartition("/")[2] for one in put} == {lab.key("two").keyid}


def test_what_is_forged_damaged_or_too_large_is_refused_told_and_compiled(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lab.run("one")
    names = lab.objects()
    assert len(names) >= 4
    stranger = lab.machines["six"].signer
    for place, name in enumerate(names):
        data = lab.bucket.get(name, 1 << 20) or b""
        head, _, body = data.partition(b"\n")
        [envelope] = parse_envelopes(head, name)
        content = json.loads(json.loads(envelope.payload)["content"])
        _, domain, _, key, _ = name.split("/")
        match place % 4:
            case 0:
                # a byte is another
                made = head + b"\n" + body[:-1] + bytes([body[-1] ^ 1])
            case 1:
                # signed by somebody else, under the name of one
                said = envelope_of("object", f"{domain}/{key}", json.dumps(content), stranger)
                made = said + body
            case 2:
                # the object of another key
                made = lab.bucket.get(names[place - 1], 1 << 20) or b""
            case _:
                made = head + b"\n" + b"x" * 600_000
        lab.bucket.replace(name, made)
    lab.forget()
    monkeypatch.setattr(stored, "LARGEST", 500_000)
    second = lab.run("two", "one")
    assert second.outputs == first.outputs
    assert second.compiler_cache["miss"] >= len(UNITS)
    assert second.objects == ()
    for text in ("damaged or replaced", "not by that key", "has more than"):
        assert lab.said(text), lab.lines


@pytest.mark.nightly
def test_a_bucket_that_does_not_answer_neither_fails_nor_slows_a_build(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lab.run("one")
    lab.forget()
    begun = time.monotonic()
    alone = lab.run("two", config="")
    took = time.monotonic() - begun
    lab.forget()
    dead = WorkingStore.objects

    def gone(store: WorkingStore, domain: str, note: object) -> object:
        found = dead(store, domain, note)  # type: ignore[arg-type]
        assert found is not None
        # who listens there never answers
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        found.bucket = Bucket(lab.bucket.url, seconds=4, tries=0)
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        return found

    url = os.environ["AWS_ENDPOINT_URL"]
    monkeypatch.setattr(WorkingStore, "objects", gone)
    begun = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        second = lab.run("two", "one")
    assert time.monotonic() - begun < took + 15
    assert second.outputs == first.outputs == alone.outputs
    assert second.objects == ()
    assert len(lab.said("did not answer")) == 1, lab.lines


@pytest.mark.nightly
def test_a_record_with_objects_of_another_does_not_count_among_those_that_agree(lab: Lab) -> None:
    first = lab.run("one")
    # two has compiled for itself what it builds later with objects of one
    for one in lab.bucket.list("records"):
        if first.key in one.name or first.content_key in one.name:
            lab.bucket.remove(one.name)
    second = lab.run("two", "one")
    assert second.objects
    assert lab.bucket.size(word_name("record", second.key, lab.key("two").keyid)) is not None
    lab.machines["one"].push(lab.bucket, first)
    assert lab.store("six", "one", "two", agree=2).record(first.key) is None
    assert any("compiled by another signer" in one for one in lab.machines["six"].said)
    assert lab.store("six", "two").record(first.key) is not None


@pytest.mark.nightly
def test_shards_and_the_shared_cache_work_together_and_what_a_shard_took_is_known(lab: Lab) -> None:
    whole = lab.run("one")
    # two units at most can be had from one; a unit has two objects
    for name in sorted(lab.objects())[5:]:
        lab.bucket.remove(name)
    lab.forget()
    step = lab.step("two")
    shards = [lab.run("two", "one", step=one) for one in shards_of(step, 2)]
    took = [one for one in shards if one.compiled_by_others()]
    assert took, lab.lines
    keys = tuple(one.key for one in shards)
    for name in lab.objects():
        lab.bucket.remove(name)
    # the rest is in the caches of the shards, and the bucket has nothing
    record = lab.run("two", "one", step=step, shards=keys)
    assert record.outputs == whole.outputs
    assert record.compiler_cache["miss"] <= whole.compiler_cache["miss"] - (len(UNITS) - 3)
    assert [one.keyid for one in record.shards] == ["", ""]
    # the shards are its own, and what it may have put there itself; what the shards took from one is not
    assert [one for one in record.objects if one.keyid] == [Objects(keyid=lab.key("one").keyid)]
    assert record.compiled_by_others() == (lab.key("one").keyid,)


@pytest.mark.nightly
def test_a_compiler_cache_in_which_a_key_had_a_part_goes_when_that_is_not_trusted_any_more(
    lab: Lab,
) -> None:
    first = lab.run("one")
    lab.forget()
    lab.run("two", "one")
    lab.forget()
    again = lab.run("two", fresh=False)
    assert lab.said("begins anew")
    assert again.objects == ()
    assert again.compiler_cache["miss"] >= len(UNITS)
    assert again.outputs == first.outputs


@pytest.mark.nightly
def test_a_ccache_that_does_not_speak_it_does_without(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share, "SCHEME", "redis+pigeon")
    monkeypatch.setattr(share, "_ASK", share._ASK.replace("redis+unix", "redis+pigeon"))
    record = lab.run("one")
    assert lab.said("does not speak redis+pigeon")
    assert record.outputs and not lab.objects()


@pytest.mark.nightly
def test_it_works_by_the_command_of_a_worker_with_the_settings_of_its_home(lab: Lab) -> None:
    first = lab.run("one")
    lab.forget()
    machine, step = lab.machines["two"], lab.step("two")
    (machine.path / "config.toml").write_text(ON)
    shutil.copy(machine.path / "two.key", machine.path / "attest.key")
    write_trust(machine.path / "trust.toml", Trust(key=(lab.key("one"),)))
    machine.store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
    words = ("exec-step", step.key, "--store", lab.bucket.url, "--engine", lab.engine)
    done = subprocess.run(
        [sys.executable, "-m", "rocwright", *words],
        env={**os.environ, "ROCWRIGHT_HOME": str(machine.path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "shared compiler cache: took" in done.stdout + done.stderr
    record = lab.store("six", "two").record(step.key)
    assert record is not None
    assert record.outputs == first.outputs
    assert record.compiled_by_others(lab.key("two").keyid) == (lab.key("one").keyid,)
