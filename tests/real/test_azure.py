"""A shared store on a second, independent server of objects: Azure's, as Azurite (npm) speaks it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from tests.store.sharers import Machine

from rocbase.errors import InputError
from rocwright.store import blobs
from rocwright.store.blobs import blob_name
from rocwright.store.bucket import PART, Bucket
from rocwright.store.contents import clean
from rocwright.store.model import verified
from rocwright.store.shared_check import check

pytestmark = [pytest.mark.real, pytest.mark.nightly]

VERSION = "3.35.0"
ACCOUNT = "devstoreaccount1"
# the account that each Azurite has; its documentation names the key
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def make_container(url: str, name: str) -> None:
    """Make a container, signed as Azure's documentation of "Shared Key" says."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    said = "".join(f"{key}:{value}\n" for key, value in headers.items())
    text = "PUT" + "\n" * 12 + f"{said}/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
    digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    signed = {"Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"}
    request = Request(f"{url}/{name}?restype=container", method="PUT", headers=headers | signed)
    urlopen(request, timeout=20).close()


@pytest.fixture(scope="module")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the account on a server of this machine."""
    npm = shutil.which("npm")
    assert npm is not None, "tools/prepare nightly installs it"
    folder = tmp_path_factory.mktemp("azurite")
    words = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder)]
    subprocess.run([*words, f"azurite@{VERSION}"], check=True, capture_output=True, timeout=300)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = folder / "node_modules" / ".bin" / "azurite-blob"
    options = ["--silent", "--skipApiVersionCheck", "--disableTelemetry", "--blobPort", str(port)]
    with subprocess.Popen([program, "--location", folder / "data", *options]) as server:
        try:
            for _ in range(100):
                try:
                    urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
                except URLError as error:
                    # an answer of any kind is one
                    if hasattr(error, "code"):
                        break
                    time.sleep(0.2)
            yield f"http://127.0.0.1:{port}/{ACCOUNT}"
        finally:
            server.terminate()
    shutil.rmtree(folder)


@pytest.fixture
def bucket(azurite: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bucket:
    said = {"ACCOUNT_NAME": ACCOUNT, "ACCOUNT_KEY": KEY, "ENDPOINT": azurite}
    for name, value in said.items():
        monkeypatch.setenv(f"AZURE_STORAGE_{name}", value)
    monkeypatch.setenv("AZURE_ALLOW_HTTP", "true")
    container = hashlib.sha256(str(tmp_path).encode()).hexdigest()[:20]
    make_container(azurite, container)
    return Bucket(f"az://{container}/rocwright")


def test_conditional_puts_and_updates_hold_and_one_of_sixteen_wins(bucket: Bucket) -> None:
    bucket.check_writable()
    with ThreadPoolExecutor(16) as pool:
        won = list(pool.map(lambda number: bucket.add("race", bytes([number])), range(16)))
    assert sum(won) == 1
    assert bucket.get("race", 1) == bytes([won.index(True)])
    tag = bucket.tag("race") or ""
    assert bucket.update("race", b"x", tag)
    assert not bucket.update("race", b"y", tag)
    assert bucket.get("race", 1) == b"x"


def test_what_is_pushed_there_is_taken_by_another_machine(bucket: Bucket, tmp_path: Path) -> None:
    lab, mine = Machine(tmp_path / "lab", "lab"), Machine(tmp_path / "mine", "me")
    data = bytes(range(251)) * (2 * PART // 251 + 1)
    made = lab.make(data)
    lab.push(bucket, made)
    assert check(bucket).wrong == ()
    store = mine.behind(bucket, lab.key)
    assert store.record(made.key) is not None
    assert store.bring(made.key)
    assert verified(store, made.outputs[0].sha256).read_bytes() == data
    assert (
        b"".join(bucket.chunks(f"blobs/{made.outputs[0].sha256[:2]}/{made.outputs[0].sha256}", 99))
        == data[99:]
    )
    assert clean(bucket).files == 0


def test_a_push_that_was_cut_goes_on_there(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs, "LARGE", 300_000)
    lab, mine = Machine(tmp_path / "lab", "lab"), Machine(tmp_path / "mine", "me")
    data = bytes(range(251)) * 4000
    made = lab.make(data)
    [output] = made.outputs
    lab.pusher(bucket).open("lab")

    def cut(size: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lab.pusher(bucket, cut).records([made.key])
    assert len([*bucket.list(blob_name(output.sha256))]) == 1
    assert lab.pusher(bucket).records([made.key]).size == len(data) - 300_000
    store = mine.behind(bucket, lab.key)
    assert store.record(made.key) and store.bring(made.key)
    assert verified(store, output.sha256).read_bytes() == data
    assert check(bucket).wrong == ()


def test_a_container_that_is_not_there_is_told(bucket: Bucket) -> None:
    with pytest.raises(InputError, match="there is no bucket at az://nowhere/x"):
        Bucket("az://nowhere/x").check_writable()
