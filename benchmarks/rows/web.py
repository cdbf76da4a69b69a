"""The pages of a busy machine: the matrix, the index beside nginx."""

from __future__ import annotations

import shutil
import socket
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from getpass import getuser
from pathlib import Path

from benchmarks.clients import Asked, Place, crowd, elsewhere, first_byte, get, place_of, serve, server
from benchmarks.many_runs import fill
from benchmarks.measure import BenchError, middle
from benchmarks.place import BIN, bench_home
from benchmarks.results import Measured
from rocwheel.processes import run as process
from rocwheel_samples.wheel import make_wheel
from rocwright.bases.roots import remove_tree
from rocwright.home import Home

CELLS, RUNS = 2_000, 100_000
PAGE = "/simple/project/"

NGINX = """
daemon off; user {user}; worker_processes 1; pid nginx.pid; error_log stderr;
events {{ worker_connections 512; }}
http {{
  access_log off; keepalive_requests 1000000; default_type text/html;
  server {{ listen 127.0.0.1:{port}; root {folder}; }}
}}
"""


def measure(runs: int | None) -> Sequence[Measured]:
    """Four rows."""
    folder = bench_home().path / "bench" / "web"
    remove_tree(folder)
    try:
        return [
            *_matrix(folder / "matrix", runs or 11),
            _index(folder / "index", runs or 5),
        ]
    finally:
        remove_tree(folder)


def _session(place: Place, host: str, link: str) -> str:
    """The header of somebody who gave the token of the link."""
    with socket.create_connection(place) as connection:
        connection.sendall(get(host, link.partition(host)[2], "Connection: close\r\n"))
        told = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    cookie = told.partition("set-cookie: ")[2].partition(";")[0]
    return f"Cookie: {cookie}\r\n"


def _matrix(folder: Path, runs: int) -> list[Measured]:
    begun = time.perf_counter()
    fill(Home(folder / "home"), cells=CELLS, runs=RUNS)
    print(f"    {RUNS:,} runs made in {time.perf_counter() - begun:.0f} s", flush=True)
    with serve(folder) as (link, child), elsewhere():
        place, host = place_of(link)
        request = get(host, "/")
        cold = first_byte(place, request)
        changed = []
        for number in range(runs):
            _change(folder / "home" / "records.sqlite", number)
            changed.append(first_byte(place, request))
        open_ = [crowd(place, request, child, 8, 250) for _ in range(min(runs, 5))]
        mine = get(host, "/", _session(place, host, link))
        known = [crowd(place, mine, child, 8, 250) for _ in range(min(runs, 5))]
    note = f"{CELLS:,} cells of {RUNS:,} runs, {open_[0].size / 1024:,.0f} KiB of page; "
    return [
        Measured(
            name="web:matrix-first-byte",
            what="the first byte of the matrix page after a cell changed",
            values=changed,
            unit="s",
            most=0.05,
            note=note + f"right after the server's start {cold * 1000:.0f} ms",
        ),
        Measured(
            name="web:matrix-rate",
            what="matrix pages a second, the server on one core, eight clients",
            values=[one.rate for one in open_],
            unit="/s",
            least=500,
            note=note + f"a page takes {_each(open_)} of the server's processor",
        ),
        Measured(
            name="web:matrix-rate-session",
            what="the same for somebody with a session",
            values=[one.rate for one in known],
            unit="/s",
            least=500,
            note=note + f"a page takes {_each(known)} of the server's processor",
        ),
    ]


def _each(found: Sequence[Asked]) -> str:
    return f"{middle([one.processor / one.answers for one in found]) * 1000:.2f} ms"


def _change(records: Path, number: int) -> None:
    """What a run that ends does to its cell."""
    with closing(sqlite3.connect(records, timeout=10)) as connection:
        at = f"2026-01-01T00:00:{number % 60:02}Z"
        connection.execute("UPDATE cells SET at = ? WHERE rowid = (SELECT min(rowid) FROM cells)", (at,))
        connection.execute("UPDATE about SET changed = changed + 1, cells = cells + 1")
        connection.commit()


def _index(folder: Path, runs: int) -> Measured:
    out = folder / "rocwright-out"
    for number in range(40):
        make_wheel(out, "project", f"1.{number}")
    built = process.run([BIN / "python", "-m", "rocwright", "wheel", "index", "build", out], cwd=folder)
    if not built.ok:
        raise BenchError(built.stderr)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "nginx.conf").write_text(NGINX.format(port=port, folder=out, user=getuser()))
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin")
    if nginx is None:
        raise BenchError("nginx is not installed")
    ours, theirs = [], []
    words = ["sh", "-c", f"echo begun; exec {nginx} -p {folder} -c nginx.conf"]
    with (
        serve(folder) as (link, child),
        server(words, "(begun)", env={}, cwd=folder / "rocwright-out", core=0) as (_, other),
        elsewhere(),
    ):
        place, host = place_of(link)
        _wait(place, host)
        time.sleep(1)
        for _ in range(runs):
            theirs.append(crowd(("127.0.0.1", port), get("localhost", PAGE), other, 8, 1000))
            ours.append(crowd(place, get(host, PAGE), child, 8, 500))
    rates = [one.rate / another.rate for one, another in zip(ours, theirs, strict=True)]
    return Measured(
        name="web:index-page",
        what="pages of the index a second, against nginx with one process serving the same file",
        values=rates,
        least=0.3,
        note=f"{ours[0].size:,} bytes of page; {middle([one.rate for one in ours]):,.0f} a second against "
        f"{middle([one.rate for one in theirs]):,.0f}; {_each(ours)} of the processor each "
        f"against {_each(theirs)}",
    )


def _wait(place: Place, host: str) -> None:
    """Until the index has seen the wheels."""
    for _ in range(200):
        with socket.create_connection(place) as connection:
            connection.sendall(get(host, PAGE))
            if connection.recv(64).startswith(b"HTTP/1.1 200"):
                return
        time.sleep(0.1)
    raise BenchError("the index does not see the wheels")
