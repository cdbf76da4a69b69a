"""What changes while one looks, over a real socket."""

from __future__ import annotations

import json
import socket
import threading

import httpx

from rocwright.home import Home
from rocwright.records.model import Run
from rocwright.records.read import Records
from tests.web.serving import Served, a_run, a_step, events, listening, write_log

GOING = {"state": "running", "outcome": "", "steps": (a_step(state="running", outcome=""),)}


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
        with httpx.stream("GET", f"{base}/log/alpha/live?from=6", timeout=10) as answer:
            told = events(answer)
            assert [one["text"] for one in json.loads(next(told)[1])] == ["second"]
            write_log(home, run, "thi")
            write_log(home, run, "rd <b>\n")
            assert [one["text"] for one in json.loads(next(told)[1])] == ["third <b>"]
            write_log(home, run, "last\n")
            records.put(ended(run, "built"))
            assert [one["text"] for one in json.loads(next(told)[1])] == ["last"]
            assert next(told)[0] == "end"
        again = httpx.get(f"{base}/log/alpha/live", headers={"last-event-id": "13"}, timeout=10).text
        assert "third" in again and "second" not in again


def test_states_come_until_a_run_is_killed(served: Served, records: Records) -> None:
    run = a_run(**GOING)
    records.put(run)
    with listening(served.made) as (host, port):
        with httpx.stream("GET", f"http://{host}:{port}/runs/{run.id}/live", timeout=10) as answer:
            told = events(answer)
            assert json.loads(next(told)[1])["steps"]["alpha"]["look"] == "running"
            records.put(ended(run, "killed"))
            state = json.loads(next(told)[1])
            assert (state["state"], state["outcome"]) == ("ended", "killed")
            assert next(told)[0] == "end"
        assert "killed" in httpx.get(f"http://{host}:{port}/runs/{run.id}").text


def test_a_client_that_does_not_listen_or_goes_keeps_nobody_waiting(
    served: Served, records: Records, home: Home
) -> None:
    run = a_run(**GOING)
    records.put(run)
    write_log(home, run, "x" * 100 + "\n" + "a line of the log\n" * 60_000)
    with listening(served.made) as (host, port):
        path = f"/runs/{run.id}/log/alpha/live"
        deaf = [socket.create_connection((host, port)) for _ in range(20)]
        for one in deaf:
            one.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        gone = socket.create_connection((host, port))
        gone.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        gone.close()
        counted = 0
        with httpx.stream("GET", f"http://{host}:{port}{path}", timeout=10) as answer:
            threading.Timer(0.2, lambda: records.put(ended(run, "built"))).start()
            for name, data in events(answer):
                counted += len(json.loads(data)) if name == "lines" else 0
        assert counted == 60_001
        assert httpx.get(f"http://{host}:{port}/runs", timeout=10).status_code == 200
        for one in deaf:
            one.close()
