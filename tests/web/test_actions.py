"""What is done from the pages: the queue, its cancels, promotion; the package index beside them."""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rocbase.files.atomic import sha256_bytes
from rocwheel_samples.index_making import make_wheel
from rocwright.home import Home
from rocwright.plan.resolve.model import Request
from rocwright.records.ended import me
from rocwright.records.model import Finding, Run
from rocwright.records.opening import end_the_dead
from rocwright.records.read import Records
from rocwright.web.app import app
from rocwright.web.cycling import Cycling
from rocwright.web.guard import HEADERS
from rocwright.web.index import Index
from rocwright.web.queue import BuildOrder, FullError, Queue
from tests.making import lock_of
from tests.web.serving import Served, a_run, listening, serve_site, until

pytestmark = pytest.mark.timing

WANTED = Request(stack="gfx-smoke", gpu=("gfx1151",), base="debian:sid")
FORM = {"stack": WANTED.stack, "gpu": WANTED.gpu[0], "base": WANTED.base}

CHILD = """
import sys, time
print("begun", flush=True)
if {fails}: sys.exit("error[input] there is no such thing")
time.sleep(60)
"""


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """What stands in for the command that builds."""

    def words(fails: bool) -> None:
        made = [sys.executable, "-c", CHILD.format(fails=fails)]
        monkeypatch.setattr(BuildOrder, "words", property(lambda self: made))

    words(False)
    return words


@pytest.fixture
def queue(home: Home, records: Records, children: object) -> Iterator[Queue]:
    made = Queue(records, home.path)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def doing(served: Served, queue: Queue) -> Served:
    served.made = app(served.site, ("localhost",), queue)
    return served


def known(records: Records, run: str) -> Run:
    found = records.run(run)
    assert found
    return found


def test_each_deed_needs_its_scope_and_a_form_of_ours(doing: Served, records: Records) -> None:
    records.put(a_run())
    stranger, reader, builder = doing.client(), doing.client("read"), doing.client("run")
    for path in ("/queue", f"/runs/{a_run().id}/again", f"/runs/{a_run().id}/cancel", "/promote"):
        assert stranger.post(path, data=FORM).status_code == 401
        assert reader.post(path, data=FORM | {"secret": doing.secret(reader)}).status_code == 403
        assert builder.post(path, data=FORM).status_code == 403
    assert builder.post("/promote", data={"secret": doing.secret(builder)}).status_code == 403
    assert records.count() == 1


@pytest.fixture(params=["heard", "ignored"])
def interrupts(request: pytest.FixtureRequest) -> Iterator[None]:
    """Ctrl-C as a shell in front has it, and as one lets what it starts in the background inherit it."""
    ignored = request.param == "ignored"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_builds_run_one_after_the_other_and_are_cancelled(
    doing: Served, queue: Queue, records: Records
) -> None:
    client = doing.client("run")
    form = FORM | {"secret": doing.secret(client)}
    runs = [client.post("/queue", data=form).headers["location"].rpartition("/")[2] for _ in range(3)]
    until(lambda: queue._child is not None)
    assert [known(records, one).state for one in runs[1:]] == ["queued", "queued"]
    assert known(records, runs[0]).origin == f"page run {runs[0][-6:]}"
    page = client.get("/queue").text
    assert all(one in page for one in runs)
    assert "Cancel" in client.get(f"/runs/{runs[1]}").text
    for one in (runs[1], runs[0]):
        assert client.post(f"/runs/{one}/cancel", data=form).status_code == 303
    until(lambda: known(records, runs[0]).state == "ended")
    assert [known(records, one).outcome for one in runs[:2]] == ["stopped", "stopped"]
    until(lambda: queue.current is not None and queue.current.run == runs[2])
    assert client.post(f"/runs/{runs[0]}/cancel", data=form).status_code == 409


def test_a_build_that_never_came_to_a_step_says_why(
    doing: Served, queue: Queue, records: Records, children: Callable[[bool], None]
) -> None:
    children(True)
    run = queue.put(WANTED, own=False, heal=True, user="me")
    until(lambda: known(records, run).state == "ended")
    found = known(records, run)
    assert (found.outcome, found.failure) == ("failed", "input")
    page = doing.client("run").get(f"/runs/{run}").text
    assert "error[input] there is no such thing" in page and "Heal" in page
    again = doing.client("run")
    form = {"secret": doing.secret(again), "heal": "yes"}
    assert again.post(f"/runs/{run}/again", data=form).headers["location"] != f"/runs/{run}"


def test_a_gpu_may_be_asked_for_by_any_of_its_names(doing: Served, records: Records) -> None:
    client = doing.client("run")
    form = FORM | {"gpu": "Strix Halo", "secret": doing.secret(client)}
    run = client.post("/queue", data=form).headers["location"].rpartition("/")[2]
    assert known(records, run).gpu == ("gfx1151",)
    told = client.post("/queue", data=form | {"gpu": "strix"})
    assert told.status_code == 400
    assert "gfx1150 (Strix Point" in told.text


def test_what_the_catalog_does_not_know_is_not_built(doing: Served, records: Records) -> None:
    client = doing.client("run")
    for name, value in (("stack", "--help"), ("gpu", "gfx0"), ("base", "../x")):
        form = FORM | {name: value, "secret": doing.secret(client)}
        assert client.post("/queue", data=form).status_code == 400
    own = {"own": "yes", "secret": doing.secret(client)}
    assert client.post("/queue", data=own).status_code == 400
    assert records.count() == 0


def test_a_run_of_elsewhere_brings_no_option_to_the_queue(doing: Served, records: Records) -> None:
    odds: tuple[dict[str, object], ...] = ({"stack": "--engine=host"}, {"stack": "unknown"}, {"gpu": ()})
    for number, odd in enumerate(odds):
        run = a_run(f"run{number}", **{"stack": WANTED.stack} | odd)
        records.put(run)
        client = doing.client("run")
        answer = client.post(f"/runs/{run.id}/again", data={"secret": doing.secret(client)})
        assert answer.status_code == 400
    assert records.count() == 3


def test_a_full_queue_takes_no_more(home: Home, records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocwright.web.queue.MOST_WAITING", 2)
    queue = Queue(records, home.path)
    for _ in range(2):
        queue.put(WANTED, own=False, heal=False, user="me")
    with pytest.raises(FullError):
        queue.put(WANTED, own=False, heal=False, user="me")


def test_what_waited_in_a_server_that_was_killed_is_stopped(records: Records) -> None:
    mine, gone = a_run("mine", state="queued", outcome="", **me()), me()
    pid, _, rest = gone["process"].partition("-")
    records.put(mine)
    records.put(a_run("gone", state="queued", outcome="", **gone | {"process": f"{pid}-1-{rest[-8:]}"}))
    end_the_dead(records)
    assert known(records, "mine").state == "queued"
    assert known(records, "gone").outcome == "stopped"


def test_the_words_of_an_order_ask_for_the_same() -> None:
    wanted = WANTED.model_copy(update={"extra": ("x",), "versions": {"a": "1", "b": "@" + "0" * 40}})
    order = BuildOrder(run="r", request=wanted, own=False, heal=True, by="me")
    words = " ".join(order.words)
    assert f"--heal gfx-smoke --base debian:sid --gpu gfx1151 --with x --set a=1 --set b@{'0' * 40}" in words


def test_only_what_was_shown_is_promoted_and_its_lock_is_kept(doing: Served, records: Records) -> None:
    lock = lock_of("gfx-smoke", "gfx1151", base="debian:sid")
    text = lock.model_dump_json(by_alias=True)
    digest = sha256_bytes(text.encode())
    place = {"stack": lock.request.stack, "gpu": lock.request.gpu, "base": lock.request.base, "lock": digest}
    records.put(a_run("one", said="built", **place), lock=text)
    client = doing.client("promote")
    cell: dict[str, Any] = {
        "stack": lock.request.stack,
        "gpu": lock.request.gpu[0],
        "base": lock.request.base,
    }
    form = cell | {"secret": doing.secret(client)}
    for channel in ("known-good", "candidate", "no-such"):
        assert client.post("/promote", data=form | {"channel": channel}).status_code == 409
    page = client.get("/cell", params=cell).text
    assert "Promote to nightly" in page and "Promote to known-good" not in page
    checked = Finding(component="x", check="imports", name="imports", ok=True)
    records.put(
        a_run("two", command="verify", outcome="verified", said="checked without a GPU", **place),
        findings=[checked],
    )
    answer = client.post("/promote", data=form | {"channel": "nightly"})
    assert answer.status_code == 303
    (promotion,) = records.promotions(**cell)
    assert (promotion.channel, promotion.lock, promotion.by) == ("nightly", digest, "promote")
    (kept,) = doing.site.folder.glob("locks/*/nightly.lock")
    assert "gfx-smoke" in kept.read_text()
    assert client.post("/promote", data=form | {"channel": "nightly"}).status_code == 409


def test_wheels_are_served_to_who_may_read(home: Home, records: Records) -> None:
    served = serve_site(home, records, open_=False)
    folder = home.path / "out"
    index = Index(folder, home, lambda line: None)
    served.made = app(served.site, ("localhost",), index=index)
    index.start()
    try:
        folder.mkdir()
        make_wheel(folder, "alpha", "1.0")
        client, secret = served.client(), served.site.access.tokens.add("pip", ())
        answer = client.get("/simple/")
        assert answer.status_code == 401 and "Basic" in answer.headers["www-authenticate"]
        until(lambda: "alpha" in client.get("/simple/", auth=("pip", secret)).text)
        page = client.get("/simple/alpha/", auth=("pip", secret))
        assert page.status_code == 200
        assert client.get("/simple/alpha/").status_code == 401
        for _ in range(100):
            assert client.get("/simple/", auth=("pip", "wrong")).status_code == 401
        assert client.get("/simple/", auth=("pip", secret)).status_code == 200
        reader = served.client("read")
        reader.get("/")
        assert client.post("/leave", auth=("pip", secret), data={"secret": ""}).status_code == 403
    finally:
        index.stop()


def test_a_page_of_the_index_has_all_its_headers_whenever_it_is_asked_for(served: Served, home: Home) -> None:
    folder = home.path / "out"
    make_wheel(folder, "alpha", "1.0")
    index = Index(folder, home, lambda line: None)
    index.look()
    made = app(served.site, ("localhost",), index=index)
    ask = "{} /simple/alpha/ HTTP/1.{}\r\nHost: localhost\r\n{}\r\n"
    with (
        listening(made) as place,
        socket.create_connection(place, timeout=60) as client,
        socket.create_connection(place, timeout=60) as old,
    ):
        # asked for in one breath; the last ends the connection
        last = "Connection: close\r\n"
        asked = ask.format("GET", 1, "") * 2 + ask.format("HEAD", 1, "") + ask.format("GET", 1, last)
        client.sendall(asked.encode())
        first, again, head, closed = whole(client).split("HTTP/1.1 200 OK")[1:]
        # but for the second in which it was sent
        assert first.split("\r\n")[2:] == again.split("\r\n")[2:] and "alpha-1.0" in first
        assert all(f"{name}: " in first for name in HEADERS)
        assert head.endswith("\r\n\r\n") and "alpha-1.0" in closed and "connection: close" in closed.lower()
        old.sendall(ask.format("GET", 0, "").encode())
        assert "connection: close" in whole(old).lower()


def whole(client: socket.socket) -> str:
    """All that comes until the server closes."""
    return b"".join(iter(lambda: client.recv(65536), b"")).decode()


def test_a_cycle_waits_for_its_turn_and_one_that_fails_ends_nothing(home: Home) -> None:
    said: list[str] = []
    turn = threading.Lock()
    cycling = Cycling(home.path, 5, turn, said.append)
    with turn:
        cycling.start()
        assert (said, cycling.next) == ([], "")
    until(lambda: cycling.next != "")
    assert any("rocwright.toml" in line for line in said)
    # that was none: the next one comes sooner than in five hours
    assert datetime.fromisoformat(cycling.next) < datetime.now(UTC) + timedelta(hours=1)
    cycling.stop()
