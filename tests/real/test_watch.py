"""watch against a registry, git over smart HTTP, and the Debian archive."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.follow.watch.conftest import Field, catalog_of, component, git_component, lock_with, release, tag
from tests.real.registry import Registry
from tests.sources.conftest import Repository
from tests.sources.conftest import repository as repository

from rocwright.follow.watch.question import PackageSet
from rocwright.follow.watch.tell import tell_report
from rocwright.follow.watch.upstream import Upstream
from rocwright.home import Home
from rocwright.model.steps import DebianOrigin, FilePin, ImageOrigin
from rocwright.plan.resolve.model import LockedComponent, LockedRoot

pytestmark = pytest.mark.real

NAME = "registry.example/team/debian"


@pytest.fixture
def field(tmp_path: Path) -> Field:
    return Field(Home(tmp_path / "home"))


# images


def image_pin(reference: str, digest: str) -> FilePin:
    origin = ImageOrigin(reference=reference, digest=digest)
    return FilePin(filename="tiny.tar.zst", sha256=digest[7:], size=1, origin=origin)


def test_a_components_image_that_moved_is_an_alarm_and_a_bases_is_news_with_its_day(
    registry: Registry, field: Field, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", f"registry.example/=http://127.0.0.1:{registry.port}/")
    root = tmp_path / "root"
    root.mkdir()
    (root / "hello").write_text("one\n")
    one = registry.push("v1.0", root)
    reference = f"{NAME}:v1.0"
    part = LockedComponent(
        name="hello",
        version="1.0",
        kind="image",
        place=f"image {reference}",
        commit=one,
        files=(image_pin(reference, one),),
    )
    base = LockedRoot(
        role="build",
        base="debian",
        manager="apt",
        suite="trixie",
        architecture="amd64",
        image=f"{reference}@{one}",
        packages=(image_pin(reference, one),),
    )
    catalog = catalog_of(component("hello", release("1.0", {"image": reference}), kind="image"))
    lock = lock_with(part, roots=(base,))
    same = field.look(catalog, lock)
    assert (same.alarms, same.news, same.silent) == ((), (), ())
    (root / "hello").write_text("two\n")
    two = registry.push("v1.0", root)
    registry.push("v1.1", root)
    report = field.look(catalog, lock, cool_down=0)
    assert [(alarm.had, alarm.now) for alarm in report.alarms] == [(one, two)]
    told = {(news.name, news.new, news.step) for news in report.news}
    assert told == {("hello", "1.1", "minor"), ("root/build", two[:19], "digest")}
    (rolled,) = (news for news in report.news if news.step == "digest")
    assert rolled.released == datetime.now(UTC).date().isoformat()
    gone = lock_with(part.model_copy(update={"files": (image_pin(f"{NAME}:v9.0", one),)}))
    assert "no longer exists" in field.look(catalog, gone).cautions[0].what
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", "registry.example/=http://127.0.0.1:1/")
    down = field.look(catalog, lock)
    assert (down.alarms, down.news, len(down.silent)) == ((), (), 2)


# git over smart HTTP


@pytest.fixture
def smart(repository: Repository) -> Iterator[str]:
    """The address of a repository behind git's own HTTP server, which leaves trees out when asked to."""
    repository.git("config", "uploadpack.allowFilter", "true")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._run(b"")

        def do_POST(self) -> None:
            self._run(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

        def _run(self, body: bytes) -> None:
            path, _, query = self.path.partition("?")
            env = {
                "GIT_PROJECT_ROOT": str(repository.path.parent),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            done = subprocess.run(
                ["git", "http-backend"], input=body, env=os.environ | env, capture_output=True, check=False
            )
            head, _, data = done.stdout.partition(b"\r\n\r\n")
            lines = [line.partition(": ") for line in head.decode().splitlines()]
            status = next((value for name, _, value in lines if name == "Status"), "200")
            self.send_response(int(status.split()[0]))
            for name, _, value in lines:
                if name != "Status":
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/{repository.path.name}/.git"
    server.shutdown()
    server.server_close()


def test_tags_their_days_and_moves_are_seen_over_smart_http(
    smart: str, repository: Repository, field: Field
) -> None:
    tag(repository, "v1.0.0", "2026-01-01")
    local = git_component("hello", "1.0.0", repository, "v1.0.0")
    part = local.model_copy(update={"place": f"git {smart} v1.0.0"})
    catalog = catalog_of(component("hello", release("1.0.0", {"git": smart, "tag": "v1.0.0"})))
    tag(repository, "v1.0.1", "2026-11-01")
    report = field.look(catalog, lock_with(part))
    assert [(one.new, one.age, one.admitted) for one in report.news] == [("1.0.1", 20, True)]
    tag(repository, "v1.0.0", "2026-11-02", "something else")
    assert len(field.look(catalog, lock_with(part)).alarms) == 1


# the Debian archive


def test_newer_packages_of_a_distribution_are_counted_and_named(sources_home: Home) -> None:
    upstream = Upstream(sources_home, 600)
    now = upstream.ask(PackageSet("trixie", "amd64", ("hello",)))
    assert isinstance(now, tuple)
    (hello,) = (pin for pin in now if pin.filename.startswith("hello_"))
    assert isinstance(hello.origin, DebianOrigin)
    old = hello.model_copy(
        update={"sha256": "0" * 64, "origin": hello.origin.model_copy(update={"version": "2.9-1"})}
    )
    root = LockedRoot(
        role="build",
        base="debian",
        manager="apt",
        suite="trixie",
        architecture="amd64",
        wanted=("hello",),
        packages=tuple(old if pin == hello else pin for pin in now),
    )
    field = Field(sources_home)
    report = field.look(catalog_of(), lock_with(roots=(root,)), ask=upstream.ask)
    assert [(one.name, one.step, one.admitted) for one in report.news] == [("root/build", "packages", True)]
    line = f"  root/build: 1 package of the root to build newer: hello 2.9-1 -> {hello.origin.version}"
    assert line in tell_report(report)
    whole = root.model_copy(update={"packages": now})
    assert not field.look(catalog_of(), lock_with(roots=(whole,)), ask=upstream.ask).news
