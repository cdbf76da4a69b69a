"""Who may do what: tokens, sessions, the limit on attempts, forms of elsewhere."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocbase.files.atomic import sha256_bytes
from rocwright.home import Home
from rocwright.records.read import Records
from rocwright.web.access import ATTEMPT_SECONDS, ATTEMPTS, SESSION_SECONDS, Access, Tokens, TooManyError
from rocwright.web.site import COOKIE
from tests.web.serving import HOST, Clock, Served, serve_site


def test_only_the_hash_of_a_token_is_kept_in_a_file_of_its_owner(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "deep/tokens.json")
    secret = tokens.add("ci", ("run",))
    text = tokens.path.read_text()
    assert secret not in text
    assert json.loads(text)["token"][0]["scopes"] == ["read", "run"]
    assert tokens.path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(InputError, match="there is already a token ci"):
        tokens.add("ci", ())
    tokens.path.write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        tokens.all()


def test_a_session_ends_with_its_time_and_with_its_token(tmp_path: Path) -> None:
    clock = Clock()
    access = Access(Tokens(tmp_path / "tokens.json"), clock=clock)
    secret = access.tokens.add("ci", ("promote",))
    first, second = access.enter(secret), access.enter(secret)
    session = access.session(first)
    assert session and session.name == "ci" and access.may(session, "promote")
    assert not access.may(session, "run")
    access.leave(second)
    assert access.session(second) is None
    mine = access.enter(access.first)
    access.tokens.remove("ci")
    assert access.session(first) is None
    assert access.session(mine)
    clock.at += SESSION_SECONDS
    assert access.session(mine) is None


def test_wrong_tokens_are_limited_by_address_and_in_all(tmp_path: Path) -> None:
    clock = Clock()
    access = Access(Tokens(tmp_path / "tokens.json"), clock=clock)
    for _ in range(ATTEMPTS):
        access.wrong("a")
    with pytest.raises(TooManyError) as told:
        access.wrong("a")
    assert 0 < told.value.seconds <= ATTEMPT_SECONDS
    for number in range(9 * ATTEMPTS):
        access.wrong(f"address {number}")
    with pytest.raises(TooManyError):
        access.wrong("one more")
    clock.at += ATTEMPT_SECONDS + 1
    access.wrong("a")


def test_a_right_token_enters_however_many_wrong_ones_others_gave(served: Served) -> None:
    stranger, known = served.client(), served.site.access.tokens.add("ci", ("run",))
    answers = [stranger.post("/enter", data={"token": f"no {number}"}) for number in range(100)]
    assert [one.status_code for one in answers] == [403] * ATTEMPTS + [429] * (100 - ATTEMPTS)
    assert int(answers[-1].headers["retry-after"]) > 0
    assert COOKIE not in stranger.cookies
    for token in (known, served.site.access.first):
        assert served.client().post("/enter", data={"token": token}).status_code == 303
        assert served.client().get(f"/enter?token={token}").status_code == 303


def test_a_link_with_a_wrong_token_is_no_attempt(served: Served) -> None:
    client = served.client()
    for _ in range(20 * ATTEMPTS):
        assert client.get("/enter?token=no").status_code == 403
    assert client.post("/enter", data={"token": "no"}).status_code == 403


def test_a_wrong_password_is_refused_and_locks_nobody_out(home: Home, records: Records) -> None:
    served = serve_site(home, records, open_=False)
    client = served.client()
    for _ in range(20 * ATTEMPTS):
        assert client.get("/runs/x/live", auth=("me", "no")).status_code == 401
    assert client.get("/runs", auth=("me", served.site.access.first)).status_code == 200
    assert client.post("/enter", data={"token": "no"}).status_code == 403


def test_a_token_has_256_bits_and_an_old_one_goes_on_to_work(tmp_path: Path) -> None:
    access = Access(Tokens(tmp_path / "tokens.json"))
    for secret in (access.tokens.add("ci", ("run",)), access.first, access.enter(access.first)):
        assert len(base64.urlsafe_b64decode(secret + "=")) == 32
    kept = {"name": "old", "scopes": ["read"], "sha256": sha256_bytes(b"an old token")}
    access.tokens.path.write_text(json.dumps({"token": [kept]}))
    assert access.enter("an old token")
    access.tokens.path.write_text(json.dumps({"token": [kept | {"sha256": "\u00e9"}]}))
    with pytest.raises(InputError, match="cannot be read"):
        access.enter("anything")


def test_reading_is_open_only_when_said_so(home: Home, records: Records) -> None:
    served = serve_site(home, records, open_=False)
    stranger = served.client()
    answer = stranger.get("/runs?state=failed")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{HOST}/enter?to=%2Fruns")
    assert stranger.get("/runs/x/live").status_code == 401
    assert served.client("read").get("/runs").status_code == 200
    assert stranger.get("/static/site.css").status_code == 200


@pytest.mark.parametrize("to", ["//elsewhere.example/", "/%09/elsewhere.example/", "/%09/["])
def test_the_link_of_the_one_who_started_it_enters(served: Served, to: str) -> None:
    client = served.client()
    answer = client.get(f"/enter?token={served.site.access.first}&to={to}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie
    assert "owner" in client.get("/").text


@pytest.mark.parametrize(
    ("headers", "content", "status"),
    [
        ({}, "secret=wrong", 403),
        ({}, "", 403),
        ({"sec-fetch-site": "cross-site"}, None, 403),
        ({"origin": "http://elsewhere.example"}, None, 403),
        ({"origin": "http://["}, None, 403),
        ({"host": "rebound.example", "origin": "http://rebound.example"}, None, 403),
        ({"content-type": "multipart/form-data; boundary=x"}, None, 415),
        ({}, "secret=x&" + "a" * 20_000, 413),
        ({}, "&".join(f"a{number}=" for number in range(100)), 400),
        ({"origin": HOST, "sec-fetch-site": "same-origin"}, None, 303),
    ],
)
def test_a_form_of_elsewhere_does_nothing(
    served: Served, headers: dict[str, str], content: str | None, status: int
) -> None:
    client = served.client("read")
    content = f"secret={served.secret(client)}" if content is None else content
    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/leave", content=content, headers=kind | headers).status_code == status
    assert ("Sign out" in client.get("/").text) == (status != 303)


def test_a_name_that_was_made_to_lead_here_is_refused(served: Served) -> None:
    client = served.client()
    assert client.get("/", headers={"host": "rebound.example:80"}).status_code == 403
    for name in ("localhost:1", "127.0.0.1:8642", "[::1]:8642"):
        assert client.get("/", headers={"host": name}).status_code == 200
