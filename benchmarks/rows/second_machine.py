"""`build` on a second machine with an empty home, from a bucket that the first has filled."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

from benchmarks.measure import BenchError, Took, seconds, timed
from benchmarks.place import BIN, ENGINE, GFX_SMOKE, LLAMA, TORCH, Scratch, Stack, scratch
from benchmarks.results import Measured
from rocwheel.units import size

STACK = "ROCWRIGHT_BENCH_SECOND"
"""Environment variable with another of these stacks where torch-extensions takes too long to build first."""

STACKS = {one.name: one for one in (TORCH, LLAMA, GFX_SMOKE)}
URL = "s3://lab/shared"
PORT = 18643


@dataclass(frozen=True, slots=True, kw_only=True)
class _Second:
    """How it went there: the command's time, steps that were run, bytes of the artifacts and of all that the
    bucket answered, by what they are, and how many requests that were."""

    took: Took
    steps: int
    artifacts: int
    fetched: Mapping[str, int]
    requests: int


def measure(runs: int | None) -> Sequence[Measured]:
    """Two rows: steps that were run, and bytes."""
    stack = STACKS[os.environ.get(STACK, TORCH.name)]
    with scratch(stack) as first:
        answers = first.path / "answers"
        with bucket(first, answers) as env:
            log = first.log
            timed([BIN / "rocwright", "attest", "key"], log=log, env=env, cwd=first.folder)
            words = ["store", "push", *stack.words, "--to", URL, "--name", "lab"]
            pushed = timed([BIN / "rocwright", *words], log=log, env=env, cwd=first.folder)
            print(f"    pushed in {pushed.wall:.1f} s: {log.read_text().strip()}", flush=True)
            found = [_second(first, stack, answers, env) for _ in range(runs or 3)]
    return _measured(stack, found)


def _second(first: Scratch, stack: Stack, answers: Path, env: Mapping[str, str]) -> _Second:
    """Trust the bucket's keys in an empty home, and build."""
    home, folder = first.path / "second", first.path / "second-project"
    for one in (home, folder):
        first.drop(one)
        one.mkdir()
    there = {**env, "ROCWRIGHT_HOME": str(home)}
    # standard output alone: what is said beside it is no JSON
    words: list[str | Path] = ["/bin/sh", "-c", 'exec "$@" 2> ../second.log', "sh", BIN / "rocwright"]
    timed([*words, "trust", "add", URL, "--yes"], log=first.log, env=there, cwd=folder)
    answers.write_text("")
    took = timed(
        [*words, "build", *stack.words, "--engine", ENGINE, "--json"], log=first.log, env=there, cwd=folder
    )
    told = json.loads(first.log.read_text())
    answered = [json.loads(line) for line in answers.read_text().splitlines()]
    fetched = Counter[str]()
    for one in answered:
        # behind the bucket's name and the prefix: what it is, and which
        fetched[one["path"].removeprefix("/lab").removeprefix("/shared/").partition("/")[0]] += one["bytes"]
    return _Second(
        took=took,
        steps=len([one for one in told["run"]["steps"] if one["outcome"] in ("built", "reused")]),
        artifacts=sum(one["size"] for one in told["artifacts"]),
        fetched=fetched,
        requests=len(answered),
    )


def _measured(stack: Stack, found: Sequence[_Second]) -> list[Measured]:
    what = f"`build` of {stack.name} in an empty home, from a bucket whose key is trusted"
    last = found[-1]
    return [
        Measured(
            name="second-machine:steps",
            what=f"{what}: steps that were run",
            values=[one.steps for one in found],
            unit="steps",
            most=0,
            note=f"{seconds([one.took for one in found])}, whole processes, the "
            "bucket (moto) on this machine",
        ),
        Measured(
            name="second-machine:bytes",
            what=f"{what}: bytes that were fetched against those of the artifacts",
            values=[sum(one.fetched.values()) / one.artifacts for one in found],
            most=1.1,
            note=f"{size(sum(last.fetched.values()))} against {size(last.artifacts)}, in {last.requests} "
            "answers of the bucket, as it counted them: "
            + ", ".join(f"{name or 'lists'} {size(of)}" for name, of in last.fetched.items() if of),
        ),
    ]


@contextlib.contextmanager
def bucket(first: Scratch, answers: Path) -> Iterator[dict[str, str]]:
    """An S3 server with a bucket, and the variables by which it and the first home are found."""
    url = f"http://127.0.0.1:{PORT}"
    words = [sys.executable, "-m", "benchmarks.s3_server", str(PORT), str(answers)]
    with (
        (first.path / "server.log").open("wb") as log,
        subprocess.Popen(words, stdout=log, stderr=log) as server,
    ):
        try:
            for _ in range(150):
                if server.poll() is not None:
                    raise BenchError(
                        f"the S3 server ended: {(first.path / 'server.log').read_text()[-2000:]}"
                    )
                with contextlib.suppress(OSError):
                    urlopen(Request(f"{url}/lab", method="PUT")).close()
                    break
                time.sleep(0.2)
            yield {
                "ROCWRIGHT_HOME": str(first.home.path),
                "AWS_ENDPOINT_URL": url,
                "AWS_ALLOW_HTTP": "true",
                "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": "x",
                "AWS_SECRET_ACCESS_KEY": "x",
            }
        finally:
            server.terminate()
