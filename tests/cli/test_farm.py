"""`rocwright farm`: a coordinator and a worker that let in only those with the certificates of the farm."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest
from click.testing import CliRunner, Result
from tests.farm.machines import make_homes, running

from rocbase.errors import ExplainedError
from rocwright.cli import cli


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`rocwright farm WORDS`, in a home of its own."""
    monkeypatch.setenv("ROCWRIGHT_HOME", str(tmp_path))
    return lambda *words: CliRunner().invoke(cli, ["farm", *words])


def refusal(told: Result) -> str:
    """What is said of an error, where it is one that a user can read."""
    assert isinstance(told.exception, ExplainedError)
    return "\n".join((told.exception.message, told.exception.cause, told.exception.next_step))


def settings(home: Path, scheduler: str, certificates: Path | None) -> None:
    named = f'certificates = "{certificates}"\n' if certificates else ""
    (home / "config.toml").write_text(f'[farm]\nscheduler = "{scheduler}"\n{named}')


def asked(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rocwright", *words],
        env={"ROCWRIGHT_HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_only_who_has_the_certificates_is_let_in(tmp_path: Path, ask: Callable[..., Result]) -> None:
    homes = make_homes(tmp_path / "homes")
    for name in ("certificates", "others"):
        assert ask("init", str(tmp_path / name)).exit_code == 0
    ours, theirs = tmp_path / "certificates", tmp_path / "others"
    assert (ours / "farm.key").stat().st_mode & 0o777 == 0o600
    settings(homes["asks"], "", ours)
    with running(homes["asks"], "farm", "up", "--host", "127.0.0.1", "--port", "0") as up:
        address = up.wait_for("coordinator at").split()[-1]
        assert address.startswith("tls://")
        settings(homes["one"], address, ours)
        with running(homes["one"], "farm", "worker", "--name", "one") as worker:
            worker.wait_for("is a worker of")
            told = asked(homes["one"], "farm", "status", "--json")
            [place] = json.loads(told.stdout)
            assert (place["takes"], place["name"]) == (True, "one")
            assert place["features"] == ["network"]
            # another farm's certificates, and none
            settings(homes["two"], address, theirs)
            refused = asked(homes["two"], "farm", "status")
            assert refused.returncode != 0
            assert "error[network]" in refused.stderr
            assert "certificates differ" in refused.stderr
            settings(homes["two"], address.replace("tls", "tcp"), None)
            assert "error[input]" in asked(homes["two"], "farm", "status").stderr
            assert worker.end() == 0
        assert json.loads(asked(homes["one"], "farm", "status", "--json").stdout) == []
        assert up.end() == 0


def test_without_settings_only_this_user_is_let_in(
    tmp_path: Path, ask: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    homes = make_homes(tmp_path / "homes")
    monkeypatch.setenv("ROCWRIGHT_RUNTIME_DIR", str(tmp_path / "mine"))
    with running(homes["asks"], "farm", "up", "--port", "0") as up:
        address = up.wait_for("coordinator at").split()[-1]
        assert address.startswith("tls://127.0.0.1:")
        assert (tmp_path / "mine/farm/farm.key").stat().st_mode & 0o777 == 0o600
        assert ask("status", address, "--json").output.strip() == "[]"
        monkeypatch.setenv("ROCWRIGHT_RUNTIME_DIR", str(tmp_path / "another"))
        assert "no coordinator answers" in refusal(ask("status", address))
        assert "without encryption" in refusal(ask("status", address.replace("tls", "tcp")))


def let_in_without_a_certificate(port: int, ca: Path) -> bool:
    """Whether what listens there waits for what a client without a certificate has to say."""
    context = ssl.create_default_context(cafile=str(ca))
    context.check_hostname = False
    with socket.create_connection(("127.0.0.1", port), 5) as plain:
        try:
            with context.wrap_socket(plain) as wrapped:
                # with TLS 1.3 it hears of it when it first reads
                wrapped.settimeout(5)
                return wrapped.recv(1) != b""
        except TimeoutError:
            return True
        except OSError:
            return False


def test_with_certificates_all_that_listens_elsewhere_asks_for_them(
    tmp_path: Path, ask: Callable[..., Result]
) -> None:
    homes, ours = make_homes(tmp_path / "homes"), tmp_path / "certificates"
    assert ask("init", str(ours)).exit_code == 0
    settings(homes["asks"], "", ours)
    with running(homes["asks"], "farm", "up", "--host", "0.0.0.0", "--port", "0") as up:
        port = int(up.wait_for("coordinator at").rpartition(":")[2])
        settings(homes["one"], f"tls://127.0.0.1:{port}", ours)
        with running(homes["one"], "farm", "worker", "--name", "one") as worker:
            worker.wait_for("is a worker of")
            found = {
                each.laddr.port
                for one in (up, worker)
                for each in psutil.Process(one.process.pid).net_connections()
                if each.status == "LISTEN" and each.laddr.ip != "127.0.0.1"
            }
            assert port in found
            for one in found:
                with pytest.raises(OSError):
                    urlopen(f"http://127.0.0.1:{one}/", timeout=5).close()
                assert not let_in_without_a_certificate(one, ours / "ca.pem")


def test_certificates_are_not_made_twice(tmp_path: Path, ask: Callable[..., Result]) -> None:
    folder = tmp_path / "certificates"
    assert ask("init", str(folder)).exit_code == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert sorted(before) == ["ca.pem", "farm.key", "farm.pem"]
    assert "already exists" in refusal(ask("init", str(folder)))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_the_certificate_is_good_by_openssls_word(tmp_path: Path, ask: Callable[..., Result]) -> None:
    ask("init", str(tmp_path / "made"))
    ca, certificate = (tmp_path / "made" / name for name in ("ca.pem", "farm.pem"))
    told = subprocess.run(
        ["openssl", "verify", "-x509_strict", "-CAfile", ca, certificate],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1"])
def test_without_certificates_nobody_else_is_let_in(host: str, ask: Callable[..., Result]) -> None:
    assert "the farm has no certificates" in refusal(ask("up", "--host", host))
    assert "rocwright farm init" in refusal(ask("status", f"tls://{host}:8786"))


def test_a_folder_without_certificates_is_named(tmp_path: Path, ask: Callable[..., Result]) -> None:
    settings(tmp_path, "tls://127.0.0.1:1", tmp_path / "none")
    assert f"{tmp_path / 'none'} has no ca.pem" in refusal(ask("status"))


def test_a_coordinator_that_nobody_names_is_asked_for(ask: Callable[..., Result]) -> None:
    assert "no coordinator is named" in refusal(ask("status"))
