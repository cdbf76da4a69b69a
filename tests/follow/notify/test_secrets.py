"""An address is nowhere but in the settings, and at its destination."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient
from tests.conftest import Command
from tests.follow.notify.conftest import Machine
from tests.web.serving import HOST

from rocwright.config import config
from rocwright.follow.notify.look import hidden
from rocwright.records.opening import open_records
from rocwright.web.access import Access, Tokens
from rocwright.web.app import app
from rocwright.web.site import Site

SECRET = "swordfish42"


@pytest.fixture
def secret(machine: Machine) -> str:
    """The address of the receiver, with a secret in it, in a file beside the home folder."""
    address = f"json://127.0.0.1:{machine.receiver.port}/{SECRET}"
    (machine.home.path.parent / "room").write_text(address)
    machine.settings(
        f'[[notify]]\nname = "room"\nurl_file = "{machine.home.path.parent / "room"}"\n'
        '[[notify]]\nname = "dead"\nurl_env = "DEAD"\n'
    )
    return address


def test_no_file_page_or_word_of_a_command_holds_an_address(
    machine: Machine, rocwright: Command, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a service that nobody knows: apprise would log the whole of it
    monkeypatch.setenv("DEAD", f"nosuch://{SECRET}/x")
    machine.receiver.status = 500
    rocwright("notify", "now")
    error = {"class": "compile", "message": f"curl: (22) {secret} answered", "cause": f"nosuch://{SECRET}/x"}
    step = {"name": "alpha", "key": "k" * 64, "outcome": "failed", "error": error, "log": "alpha.log"}
    run = machine.run("failed", steps=(step,))
    (machine.home.runs / run).mkdir(parents=True)
    said = []
    for words in (
        *(("now",), ("status",), ("status", "--json"), ("test",), ("test", "room", "--json")),
        *(("failed", "unit.service"), ("test", "nobody")),
    ):
        done = rocwright("--debug", "notify", *words)
        said += [done.stdout, done.stderr]
    text = "".join(said)
    assert "it answered 500" in text
    assert "no service that apprise knows" in text
    assert SECRET not in text
    # what a step itself printed is on record as it was printed; all that rocwright makes of it is masked
    kept = [path for path in machine.home.path.rglob("*") if path.is_file()]
    holds = {path.name for path in kept if SECRET.encode() in path.read_bytes()}
    assert holds <= {"records.sqlite", "records.sqlite-wal"}
    with open_records(machine.home) as records:
        access = Access(Tokens(machine.home.tokens), open_=True)
        site = Site(
            home=machine.home,
            records=records,
            access=access,
            folder=machine.home.path,
            hidden=hidden(config()),
        )
        client = TestClient(app(site), base_url=HOST)
        for path in ("/", f"/runs/{run}", "/runs", "/feed.atom", "/metrics", "/healthz"):
            answer = client.get(path)
            assert answer.status_code == 200, path
            assert SECRET not in answer.text, path


@pytest.mark.parametrize(
    "table",
    [
        f'url = "json://{SECRET}"\nnope = 1\n',
        f'url = ["json://{SECRET}"]\n',
        f'url = "json://{SECRET}"\nurl_env = "X"\n',
        f'url = "json://{SECRET}"\non = ["{SECRET}"]\n',
        f'url = "json://{SECRET}\n',
    ],
)
def test_settings_that_are_wrong_are_refused_without_showing_them(
    machine: Machine, rocwright: Command, table: str
) -> None:
    (machine.home.path / "config.toml").write_text(f"[[notify]]\n{table}")
    for words in (("notify", "status"), ("--debug", "notify", "status")):
        done = rocwright(*words)
        assert done.returncode != 0
        assert "config.toml" in done.stderr
        assert SECRET not in done.stdout + done.stderr
    assert rocwright("notify", "status").returncode == 2
