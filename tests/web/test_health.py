"""Whether all is well: for anybody, without details; and what Prometheus reads, for who may read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Lock

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from rocbase.errors import InternalError
from rocbase.files.atomic import sha256_bytes
from rocwright.config import Config
from rocwright.follow.cycle.model import CycleTold
from rocwright.follow.notify.look import LookOrder, look
from rocwright.home import Home
from rocwright.records.model import Promotion
from rocwright.records.read import Records
from rocwright.store.local import LocalStore
from rocwright.web.app import app
from rocwright.web.cycling import Cycling
from rocwright.web.health import OVERDUE, RECORDS, SETTINGS, Health
from tests.web.serving import HOST, Served, a_run, serve_site


@pytest.fixture(autouse=True)
def here(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCWRIGHT_HOME", str(home.path))


def settings(home: Home, text: str) -> None:
    (home.path / "config.toml").write_text(text)


def cycled(home: Home, hours_ago: float) -> None:
    """A cycle of the project in the server's folder that ended then."""
    at = (datetime.now(UTC) - timedelta(hours=hours_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
    told = CycleTold(id="one", started=at, seconds=0, rows=(), folder=str(home.path))
    home.cycles.mkdir(exist_ok=True)
    name = sha256_bytes(str(home.path.resolve()).encode())[:16]
    (home.cycles / f"{name}.json").write_text(told.model_dump_json())


def values(served: Served) -> dict[str, float]:
    """Each sample by its name and labels, read as Prometheus reads it."""
    answer = served.client().get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        f"{one.name}{sorted(one.labels.items()) or ''}": one.value
        for family in text_string_to_metric_families(answer.text)
        for one in family.samples
    }


def test_all_is_well_for_anybody_who_asks(home: Home, records: Records) -> None:
    cycled(home, 47)
    settings(home, "[cycle]\nevery = 24\n")
    answer = serve_site(home, records, open_=False).client().get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_overdue_cycles_are_a_failure_with_its_reason(home: Home, records: Records) -> None:
    cycled(home, 49)
    settings(home, "[cycle]\nevery = 24\n")
    closed = serve_site(home, records, open_=False)
    stranger, reader = closed.client().get("/healthz"), closed.client("read").get("/healthz")
    assert (stranger.status_code, stranger.json()) == (503, {"status": "failing", "reasons": [OVERDUE]})
    assert reader.json()["details"] == ["the last one ended 49 h 00 min ago; 48 h are allowed"]
    cycled(home, 1)
    assert closed.client().get("/healthz").status_code == 200


def test_nobody_who_expects_no_cycles_is_told_that_they_are_overdue(home: Home, records: Records) -> None:
    cycled(home, 5000)
    assert serve_site(home, records).client().get("/healthz").status_code == 200


def test_a_server_that_cycles_expects_them_as_often(home: Home, served: Served) -> None:
    cycling = Cycling(home.path, 2, Lock())
    health = Health(served.site, cycling, since="2026-01-01T00:00:00Z")
    client = TestClient(app(served.site, health=health), base_url=HOST)
    late = client.get("/healthz").json()
    assert late["details"] == ["none has ended yet; 4 h are allowed"]
    cycled(home, 3.9)
    assert client.get("/healthz").status_code == 200
    cycled(home, 4.1)
    assert client.get("/healthz").status_code == 503


def test_settings_or_records_that_cannot_be_read_are_a_failure(
    home: Home, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(home, "[cycle]\nevery = 'often'\n")
    assert served.client().get("/healthz").json()["reasons"] == [SETTINGS]
    settings(home, "")

    def gone() -> tuple[int, int]:
        raise InternalError("the records are gone")

    monkeypatch.setattr(served.site.records, "changed", gone)
    answer = served.client().get("/healthz")
    assert (answer.status_code, answer.json()["reasons"]) == (503, [RECORDS])


def test_metrics_tell_rows_builds_cycles_the_queue_and_the_store(
    home: Home, records: Records, served: Served
) -> None:
    records.put(a_run("20260101T000001.000000Z-000001", seconds=7))
    records.put(a_run("20260101T000002.000000Z-000002", stack="bad", outcome="failed", seconds=42))
    records.put(a_run("20260101T000003.000000Z-000003", stack="next", state="queued", outcome=""))
    records.put(a_run("20260101T000004.000000Z-000004", stack="begun", outcome="stopped", seconds=42))
    records.promote(
        Promotion(stack="tiny", gpu="gfx1151", base="debian:sid", channel="nightly", run="x", lock="y")
    )
    (home.path / "five").write_bytes(b"bytes")
    LocalStore(home.store).put_file(home.path / "five")
    cycled(home, 3)
    settings(home, "[cycle]\nevery = 1\n[[notify]]\nurl = 'json://127.0.0.1:1'\n")
    look(home, Config(), LookOrder())
    found = values(served)
    assert found["rocwright_rows[('state', 'passing')]"] == 1
    assert found["rocwright_rows[('state', 'failing')]"] == 1
    assert found["rocwright_rows[('state', 'stopped')]"] == 1
    assert found["rocwright_rows[('state', 'never built')]"] == 0
    row = "[('base', 'debian:sid'), ('gpu', 'gfx1151'), ('stack', '{}'), ('variant', '')]"
    assert found[f"rocwright_row_broken{row.format('bad')}"] == 1
    assert found[f"rocwright_row_broken{row.format('tiny')}"] == 0
    assert found["rocwright_channel_rows[('channel', 'nightly')]"] == 1
    assert found["rocwright_last_build_seconds"] == 42
    assert found["rocwright_runs[('state', 'queued')]"] == 1
    assert found["rocwright_runs[('state', 'running')]"] == 0
    assert 3 * 3600 <= found["rocwright_cycle_age_seconds"] < 3 * 3600 + 60
    assert (found["rocwright_cycle_ok"], found["rocwright_cycle_overdue"]) == (1, 1)
    assert found["rocwright_store_bytes"] > 0


def test_metrics_of_an_empty_machine_can_be_read(served: Served) -> None:
    found = values(served)
    assert found["rocwright_rows[('state', 'failing')]"] == 0
    assert "rocwright_cycle_age_seconds" not in found
    assert not [name for name in found if name.startswith(("python_", "process_"))]
