"""An address over TLS that sends on to one without: two hosts here, with a certificate of our own."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from rocbase.errors import FetchError
from rocwright.sources.index import find_sdist
from rocwright.sources.web import download, look, read_bytes
from rocwright.store.local import LocalStore

HERE = "127.0.0.1"


@dataclass(frozen=True)
class Hosts:
    """Where the two are; each knows `/file`, and sends `/SCHEME/rest` on to `/rest` on the host of that."""

    https: str
    http: str


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosts]:
    where: dict[str, str] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            scheme, _, rest = self.path.removeprefix("/").partition("/")
            if scheme in where:
                self.send_response(302)
                self.send_header("Location", f"{where[scheme]}/{rest}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(200)
            self.send_header("Content-Length", "4")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(b"data")

        do_HEAD = do_GET  # noqa: N815 - as the base class has it

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate(tmp_path)))
    with ExitStack() as stack:
        for scheme in ("http", "https"):
            server = stack.enter_context(ThreadingHTTPServer((HERE, 0), Handler))
            if scheme == "https":
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(tmp_path / "tls.pem")
                server.socket = context.wrap_socket(server.socket, server_side=True)
            where[scheme] = f"{scheme}://{HERE}:{server.server_address[1]}"
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            stack.callback(server.shutdown)
        yield Hosts(**where)


def certificate(folder: Path) -> Path:
    """A key and a certificate for this machine, in one file."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HERE))]), critical=True)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "tls.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


def downloaded(url: str, folder: Path) -> bool:
    download(url, folder / "x")
    return (folder / "x").read_bytes() == b"data"


WAYS: dict[str, Callable[[str, Path], bool]] = {
    "download": downloaded,
    "page": lambda url, _: read_bytes(url, 10) == b"data",
    "look": lambda url, _: look(url, 10).there,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", ["http/file", "https/http/file", "http/https/file"])
def test_what_was_asked_for_over_tls_is_not_taken_from_where_a_host_without_sends_it(
    hosts: Hosts, tmp_path: Path, way: str, path: str
) -> None:
    url = f"{hosts.https}/{path}"
    with pytest.raises(FetchError, match="redirects to an unencrypted address") as caught:
        WAYS[way](url, tmp_path)
    assert hosts.http in caught.value.cause
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("way", WAYS)
def test_other_redirects_are_followed(hosts: Hosts, tmp_path: Path, way: str) -> None:
    assert WAYS[way](f"{hosts.https}/https/file", tmp_path)
    assert WAYS[way](f"{hosts.http}/https/file", tmp_path)
    assert WAYS[way](f"{hosts.http}/http/file", tmp_path)


def test_the_pages_of_a_package_index_are_not_taken_so_either(
    hosts: Hosts, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page has the hashes of its files: who writes it says what is installed."""
    monkeypatch.setenv("PIP_INDEX_URL", f"{hosts.https}/http/simple")
    with pytest.raises(FetchError, match="redirects to an unencrypted address"):
        find_sdist("hello", "1.0", store)
