"""What changes while one looks, over a real socket."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from rocwright.home import Home
from rocwright.records.model import Run
from rocwright.records.read import Records
from rocwright.web import live
from rocwright.web.server import room_for
from rocwright.web.site import COOKIE
from tests.web.serving import Served, a_run, a_step, events, listening, serve_site, write_log

pytestmark = pytest.mark.timing

MANY = 1000

GOING: dict[str, Any] = {"state": "running", "outcome": "", "steps": (a_step(state="running", outcome=""),)}


def ended(run: Run, outcome: str) -> Run:
    return run.model_copy(update={"state": "ended", "outcome": outcome, "steps": (a_step(outcome=outcome),)})


def test_lines_come_as_they_are_written_until_the_run_ends(
    served: Served, records: Records, home: Home
) -> None:
    run = a_run(**GOING)
    records.put(run)
    write_log(home, run, "first\nsecond\n")
    with listening(served.made) as (host, port):
        base = f"http://{host}:{port}/runs/{run.id}"
        with httpx.stream("GET", f"{base}/log/alpha/live?from=6", timeout=60) as answer:
            told = events(answer)
            assert [one["text"] for one in json.loads(next(told)[1])] == ["second"]
            write_log(home, run, "thi")  # codespell:ignore thi
            write_log(home, run, "rd <b>\n")
            assert [one["text"] for one in json.loads(next(told)[1])] == ["third <b>"]
            write_log(home, run, "last\n")
            records.put(ended(run, "built"))
            assert [one["text"] for one in json.loads(next(told)[1])] == ["last"]
            assert next(told)[0] == "end"
        again = httpx.get(f"{base}/log/alpha/live", headers={"last-event-id": "13"}, timeout=60).text
        assert "third" in again and "second" not in again


def test_states_come_until_a_run_is_killed(served: Served, records: Records) -> None:
    run = a_run(**GOING)
    records.put(run)
    with listening(served.made) as (host, port):
        with httpx.stream("GET", f"http://{host}:{port}/runs/{run.id}/live", timeout=60) as answer:
            told = events(answer)
            assert json.loads(next(told)[1])["steps"]["alpha"]["look"] == "running"
            records.put(ended(run, "killed"))
            state = json.loads(next(told)[1])
            assert (state["state"], state["outcome"]) == ("ended", "killed")
            assert next(told)[0] == "end"
        assert "killed" in httpx.get(f"http://{host}:{port}/runs/{run.id}", timeout=60).text


@pytest.mark.parametrize("what", ["live", "log/alpha/live"])
@pytest.mark.parametrize("ends", ["its token is removed", "it leaves"])
def test_a_stream_ends_soon_after_who_listens_may_not(
    home: Home, records: Records, monkeypatch: pytest.MonkeyPatch, what: str, ends: str
) -> None:
    monkeypatch.setattr(live, "PING_SECONDS", 0.2)
    served = serve_site(home, records, open_=False)
    run = a_run(**GOING)
    records.put(run)
    write_log(home, run, "first\n")
    client = served.client("read")
    session = str(client.cookies[COOKIE])
    with (
        listening(served.made) as (host, port),
        httpx.stream(
            "GET", f"http://{host}:{port}/runs/{run.id}/{what}", cookies={COOKIE: session}, timeout=60
        ) as answer,
    ):
        lines = answer.iter_lines()
        # it goes on while nothing happens
        while next(lines) != ": ":
            pass
        if ends == "it leaves":
            served.site.access.leave(session)
        else:
            served.site.access.tokens.remove("read")
        write_log(home, run, "nobody may read this\n")
        assert not [line for line in lines if "nobody" in line or "end" in line]


def test_a_thousand_read_a_log_beside_some_who_do_not_listen_or_have_gone(
    served: Served, records: Records, home: Home
) -> None:
    run = a_run(**GOING)
    records.put(run)
    write_log(home, run, "x" * 100 + "\n" + "a line of the log\n" * 60_000)
    size = (home.runs / run.id / run.steps[0].log).stat().st_size
    path = f"/runs/{run.id}/log/alpha/live"
    # both ends of each are in this process
    assert room_for(2 * MANY) >= MANY
    with listening(served.made, 2 * MANY) as place, ExitStack() as all_:

        def ask(start: int) -> socket.socket:
            client = all_.enter_context(socket.create_connection(place, timeout=30))
            head = f"GET {path}?from={start} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            client.sendall(head.encode())
            return client

        for _ in range(20):
            ask(0)
            ask(0).close()
        readers = [ask(size) for _ in range(MANY)]
        for one in readers:
            assert b" 200 OK" in one.recv(16)
        counted = 0
        with httpx.stream("GET", f"http://{place[0]}:{place[1]}{path}", timeout=30) as answer:
            told = events(answer)
            while counted < 60_001:
                counted += len(json.loads(next(told)[1]))
            write_log(home, run, "the last line\n")
            assert "the last line" in next(told)[1]
            records.put(ended(run, "built"))
            assert next(told)[0] == "end"
        for one in readers:
            assert b"the last line" in one.makefile("rb").read()
        assert httpx.get(f"http://{place[0]}:{place[1]}/runs", timeout=60).status_code == 200
