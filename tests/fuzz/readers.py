"""Readers of what strangers send for a build: archives, locks, wheels, models, records, downloads."""

from __future__ import annotations

import contextlib
import http.client
import io
import os
import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import requests
import tomlkit
import urllib3
from requests.adapters import HTTPAdapter
from securesystemslib.signer import CryptoSigner

from rocwheel.wheels.archive import read_metadata
from rocwheel.wheels.metadata import Headers
from rocwheel_samples.wheel_making import FILES, METADATA, zip_of
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.model_files import model_facts
from rocwright.execution.install import read_wheel
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.files import lock_text, read_lock
from rocwright.serving.models.gguf import read_gguf
from rocwright.sources import web
from rocwright.sources.archive import unpack
from rocwright.store.model import Output
from rocwright.store.seal import DamagedRecordError, UnknownRecordError, seal, unseal
from rocwright.store.signed import RefusedError, envelope_of, word_of
from rocwright.verify.tiny_gguf import write_tiny_model
from tests.making import lock_of, record_of, small_plan

SIGNER = CryptoSigner.generate_ed25519()
MOST, LARGEST, END = 4096, 2**20, b"\0END\0"


def unpack_archive(data: bytes) -> None:
    """Unpack an archive by its name: nothing appears beside its folder, and no link leads out of it."""
    with _file(data[1:], "x.zip" if data[:1] == b"z" else "x.tar") as path:
        target = path.parent / "target"
        try:
            unpack(path, target, wrapped=data[:1] == b"w")
        finally:
            assert {one.name for one in path.parent.iterdir()} <= {path.name, target.name}
            links = [one for one in target.rglob("*") if one.is_symlink()]
            assert all(one.resolve().is_relative_to(target.resolve()) for one in links)


def read_locks(data: bytes) -> None:
    """Read a lock, plan it, and write it again: the same lock."""
    with _file(_changed(data[1:]) if data[:1] == b"\0" else data, "rocwright.lock") as path:
        lock = read_lock(path, edited=True)
        path.write_text(lock_text(lock))
        assert read_lock(path) == lock
        make_plan(lock, builtin_catalog())


def _changed(data: bytes) -> bytes:
    """Return a sound lock with other values: each two bytes name one of them, a line is what it becomes."""
    document = tomllib.loads(seeds()["locks"]["llama-vulkan"].decode())
    for line in data.split(b"\n"):
        places = list(_places(document))
        holder, key = places[int.from_bytes(line[:2]) % len(places)]
        text = line[2:].decode(errors="replace")
        holder[key] = int(text) if text.isascii() and text.isdecimal() else text
    return tomlkit.dumps(document).encode()


def _places(holder: Any) -> Iterator[tuple[Any, Any]]:
    for key, value in holder.items() if isinstance(holder, dict) else enumerate(holder):
        yield holder, key
        if isinstance(value, dict | list):
            yield from _places(value)


def read_wheels(data: bytes) -> None:
    """Read what a wheel says of itself, twice: for the resolver and for an installation."""
    packed = zip_of(FILES | {"small-1.0.dist-info/METADATA": data[1:]}) if data[:1] == b"\0" else data
    with _file(packed, "a-1-py3-none-any.whl") as path:
        Headers(read_metadata(path)).get("Requires-Dist")
        read_wheel(path)


def read_heads(data: bytes) -> None:
    """Read the head of a model, whose tensors are holes."""
    with _file(data, "x.gguf") as path:
        os.truncate(path, 4 * LARGEST)
        read_gguf(path, model_facts())


def read_records(data: bytes) -> None:
    """Read a record of a store as it is and as what a key signed: never right by chance."""
    key = small_plan().steps[0].key
    with contextlib.suppress(DamagedRecordError, UnknownRecordError):
        record = unseal(data, key)
        assert unseal(seal(record), key) == record
    with contextlib.suppress(RefusedError):
        assert word_of(data, "record", key, [SIGNER.public_key]).content == _content()


def read_ranges(data: bytes) -> None:
    """Download a file whose host answers with these bytes, one answer after another."""
    with tempfile.TemporaryDirectory() as folder, requests.Session() as session:
        session.mount("http://", _Answers(data.split(END)))
        part, url = Path(folder, "x.part"), "http://x.test/x"
        try:
            for _ in range(8):
                with contextlib.suppress(web.BrokenOffError):
                    return web._read_on(session, url, part, MOST, url)
        finally:
            assert not part.exists() or part.stat().st_size <= MOST


class _Answers(HTTPAdapter):
    """A host that answers with bytes and hangs up."""

    def __init__(self, answers: list[bytes]) -> None:
        super().__init__()
        self._answers = iter(answers)

    def send(self, request: requests.PreparedRequest, *args: Any, **more: Any) -> requests.Response:
        raw = http.client.HTTPResponse(_Socket(next(self._answers, b"")))  # type: ignore[arg-type]
        try:
            raw.begin()
        except (http.client.HTTPException, OSError) as error:
            raise requests.ConnectionError from error
        try:
            answer = urllib3.HTTPResponse(
                body=raw,
                headers=dict(raw.headers.items()),
                status=raw.status,
                preload_content=False,
                original_response=raw,
            )
        except urllib3.exceptions.InvalidHeader as error:
            raise requests.exceptions.InvalidHeader from error
        return self.build_response(request, answer)


class _Socket:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)


@contextlib.contextmanager
def _file(data: bytes, name: str) -> Any:
    with tempfile.TemporaryDirectory(dir=tempfile.gettempdir()) as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        yield path


@cache
def _content() -> str:
    step = small_plan().steps[0]
    output = Output(name="a", filename="a.tar", sha256="0" * 64, size=1, content="1" * 64)
    return seal(record_of(step, output)).decode()


def archives(containers: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Return sound archives, each behind a byte that says how it is unpacked."""
    return {
        name: (b"z" if name == "zip" else b"w") + data for name, data in containers.items() if name != "ar"
    }


@cache
def seeds() -> Mapping[str, Mapping[str, bytes]]:
    """Return sound inputs, by target and name."""
    locks = {name: lock_text(lock_of(name)) for name in ("llama-vulkan", "gfx-smoke")}
    # whoever changes a lock can leave out its sum
    unsealed = {name: re.sub("^sha256 = .*\n", "", text, count=1, flags=re.M) for name, text in locks.items()}
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "tiny.gguf")
        write_tiny_model(model)
        head = model.read_bytes()[:65536]
    key = small_plan().steps[0].key
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nnine"
    rest = b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 4-8/9\r\nContent-Length: 5\r\n\r\nbytes"
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nnine\r\n0\r\n\r\n"
    return {
        "locks": {
            **{name: text.encode() for name, text in unsealed.items()},
            "changed": bytes((0, 0, 1)) + b"0.1.0",
        },
        "wheels": {
            "wheel": zip_of(FILES),
            "metadata": b"\0Requires-Dist: a[b]>=1; os_name=='x'\n" + METADATA,
        },
        "heads": {"tiny": head},
        "records": {
            "plain": _content().encode(),
            "signed": envelope_of("record", key, _content(), SIGNER),
        },
        "ranges": {
            "resumed": whole + END + rest,
            "chunked": chunked,
            "refused": whole + END + b"HTTP/1.1 416 No\r\n\r\n" + END + chunked,
        },
    }
