"""What is printed of a server that was started: where it is, for others too, and its key."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from rocwright.serving.api import StartedServer
from rocwright.serving.model import ServerState
from rocwright.serving.ports import lan_address
from rocwright.serving.verbs.servers import show


def printed(
    capsys: pytest.CaptureFixture[str], host: str, key: str = "", *, keyed: bool = False
) -> list[str]:
    """The lines of a server that listens there."""
    server = ServerState(
        name="mine", stack="s", component="c", version="1", gpu=("gfx1151",), base="b", on="cpu", model="",
        place="host", host=host, port=8080, key=keyed, health="/", mark="m", boot="b", begun="now",
    )  # fmt: skip
    show(StartedServer(server=server, key=key, folder=Path("/home/me/mine")), detached=True)
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_the_address_for_others_is_printed_of_one_that_listens_everywhere(
    host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lan = lan_address()
    lines = printed(capsys, host)
    assert lines.count(f"network http://{lan}:8080") == bool(lan)
    if lan:
        with socket.socket() as listening:
            listening.bind((lan, 0))


def test_one_for_this_machine_alone_has_no_address_for_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert not any(line.startswith("network") for line in printed(capsys, "127.0.0.1"))


def test_the_file_of_the_key_is_printed_each_time_and_the_key_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = printed(capsys, "0.0.0.0", "s3cret", keyed=True)
    assert "key s3cret (shown this once)" in first and "key file /home/me/mine/key" in first
    again = printed(capsys, "0.0.0.0", keyed=True)
    assert "key file /home/me/mine/key" in again and not any("s3cret" in line for line in again)
    assert not any("key" in line for line in printed(capsys, "127.0.0.1"))
