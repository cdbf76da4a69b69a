"""Pushing a large file to an S3 server on this machine, and taking it from there, against rclone."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.request import Request, urlopen

from benchmarks.measure import BenchError, Pairs, Took, paired, processor, seconds, timed
from benchmarks.place import bench_home
from benchmarks.results import Measured
from benchmarks.rows.store import GIB, _make, _peak
from rocwright.bases.roots import remove_tree
from rocwright.signing.keys import make_key, signer_of
from rocwright.store.bucket import Bucket
from rocwright.store.local import LocalStore
from rocwright.store.model import Output, Record
from rocwright.store.push import Pusher, listed_keys
from rocwright.store.shared import SharedStore
from rocwright.store.sharing import SharingStore
from rocwright.store.trust import TrustedKey

SIZE = "ROCWRIGHT_BENCH_PUSH_GIB"
"""Environment variable with the file's size where 2 GiB are too many (the row then says so)."""

KEY = "a" * 64
URL = "s3://lab/shared"
SERVER = "from moto.server import main; main(['-H', '127.0.0.1', '-p', '{port}'])"


def measure(runs: int | None) -> Sequence[Measured]:
    """Three rows: push, verified pull, memory."""
    if shutil.which("rclone") is None:
        raise BenchError("there is no rclone to measure against: apt-get install rclone")
    size = int(float(os.environ.get(SIZE, "2")) * GIB)
    folder = bench_home().path / "bench" / "sharing"
    remove_tree(folder)
    folder.mkdir(parents=True)
    free = shutil.disk_usage(folder).free
    if free < 6 * size:
        raise BenchError(f"{6 * size / GIB:.0f} GiB must be free in {folder}; {free / GIB:.0f} are")
    try:
        with _server(folder) as environment:
            return _measure(folder, size, runs or 3, environment)
    finally:
        remove_tree(folder)


def _measure(folder: Path, size: int, runs: int, environment: dict[str, str]) -> list[Measured]:
    data, log = folder / "data", folder / "log"
    _make(data, size)
    store = LocalStore(folder / "lab")
    sha256, _ = store.put_file(data)
    output = Output(name="out", filename="data.tar", sha256=sha256, size=size)
    store.put_record(
        Record(key=KEY, content_key=KEY, step="x", kind="run", outputs=(output,), started="", seconds=0)
    )
    make_key(folder / "lab.key")
    memory: dict[str, int] = {}

    def ours(verb: str, before: Callable[[], None]) -> Took:
        before()
        os.sync()
        took = timed([sys.executable, "-m", __name__, verb, folder], log=log, env=environment)
        memory[verb] = max(memory.get(verb, 0), json.loads(log.read_text())["memory"])
        return took

    def rclone(source: str | Path, target: str | Path, before: Callable[[], None]) -> Took:
        before()
        os.sync()
        # rclone ends where AWS_CA_BUNDLE names anything
        words = ["env", "--unset=AWS_CA_BUNDLE", "rclone", "copyto", source, target]
        return timed(words, log=log, env=environment)

    def emptied() -> None:
        os.environ.update(environment)
        bucket = Bucket(URL)
        for place in ("blobs", "records", "other"):
            for one in bucket.list(place):
                bucket.remove(one.name)
        remove_tree(folder / "mine")
        (folder / "back").unlink(missing_ok=True)

    # rclone takes one object; ours lies in parts
    there = "lab:lab/shared/other/data"
    pushed = paired(
        lambda: ours("push", emptied), lambda: rclone(data, "lab:lab/shared/other/data", emptied), runs
    )
    ours("push", emptied)
    rclone(data, there, lambda: None)

    def fresh() -> None:
        remove_tree(folder / "mine")
        (folder / "back").unlink(missing_ok=True)

    pulled = paired(lambda: ours("pull", fresh), lambda: rclone(there, folder / "back", fresh), runs)
    what = f"{size / GIB:g} GiB"
    return [
        _speed("sharing:push", f"pushing {what} to an S3 server on this machine", pushed),
        _speed("sharing:pull", f"taking {what} from there, checked and kept in the store", pulled),
        Measured(
            name="sharing:memory",
            what=f"memory of rocwright while it pushes and takes {what}",
            values=[max(memory.values()) / 1024**2],
            unit="MiB",
            most=200,
            note="peak resident memory of the process (VmHWM): "
            + ", ".join(f"{verb} {one / 1024**2:.0f} MiB" for verb, one in memory.items()),
        ),
    ]


def _speed(name: str, what: str, pairs: Pairs) -> Measured:
    return Measured(
        name=name,
        what=f"{what}: speed as a part of rclone's",
        values=[b.wall / a.wall for a, b in zip(pairs.a, pairs.b, strict=True)],
        least=0.9,
        note=f"{seconds(pairs.a)} against {seconds(pairs.b)} for rclone copyto, the same server (moto) in "
        f"the same minute; processor time of the clients {processor(pairs.a)} against {processor(pairs.b)}; "
        "whole processes",
    )


@contextlib.contextmanager
def _server(folder: Path) -> Iterator[dict[str, str]]:
    """An S3 server with a bucket, and the variables by which both find it."""
    port = 18642
    url = f"http://127.0.0.1:{port}"
    with (
        (folder / "server.log").open("wb") as log,
        subprocess.Popen([sys.executable, "-c", SERVER.format(port=port)], stdout=log, stderr=log) as server,
    ):
        try:
            for _ in range(100):
                with contextlib.suppress(OSError):
                    urlopen(Request(f"{url}/lab", method="PUT")).close()
                    break
                time.sleep(0.2)
            yield {
                "AWS_ENDPOINT_URL": url,
                "AWS_ALLOW_HTTP": "true",
                "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": "x",
                "AWS_SECRET_ACCESS_KEY": "x",
                "RCLONE_CONFIG_LAB_TYPE": "s3",
                "RCLONE_CONFIG_LAB_PROVIDER": "Other",
                "RCLONE_CONFIG_LAB_ENDPOINT": url,
                "RCLONE_CONFIG_LAB_ENV_AUTH": "true",
                "RCLONE_CONFIG_LAB_NO_CHECK_BUCKET": "true",
            }
        finally:
            server.terminate()


def _child(verb: str, folder: Path) -> None:
    bucket = Bucket(URL)
    if verb == "push":
        pusher = Pusher(LocalStore(folder / "lab"), bucket, signer_of(folder / "lab.key"))
        pusher.open("lab")
        done = pusher.records([KEY])
        assert done.files == 1
        return
    keys = [TrustedKey(name="lab", pem=pem, added="2026-01-01T00:00:00Z") for pem, _ in listed_keys(bucket)]
    shared = SharedStore(name="lab", bucket=bucket, keys=keys, note=print)
    store = SharingStore(LocalStore(folder / "mine"), [shared])
    record = store.record(KEY)
    assert record is not None
    assert store.bring(KEY)


if __name__ == "__main__":
    _child(sys.argv[1], Path(sys.argv[2]))
    print(json.dumps({"memory": _peak()}))
