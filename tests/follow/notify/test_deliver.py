"""What comes to a receiver: by webhook, by mail; and what is said where it does not come."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import apprise
import pytest
from tests.follow.notify.receiving import Receiver, mailbox, receiving

from rocwright.config import SecretUrl
from rocwright.follow.notify.deliver import BROKE, message, ping
from rocwright.follow.notify.send import NO_CONNECTION, REFUSED, UNKNOWN_URL


def to(url: str) -> SecretUrl:
    return SecretUrl.model_validate({"url": url})


def test_a_webhook_gets_json(receiver: Receiver) -> None:
    assert message(to(receiver.url), "room", "a title", "one\ntwo", "warning") == ""
    [post] = receiver.posts
    assert (post["title"], post["message"], post["type"]) == ("a title", "one\ntwo", "warning")


def test_mail_comes_to_a_mailbox() -> None:
    with mailbox() as (port, mails):
        url = f"mailto://127.0.0.1:{port}/?from=lab@example.org&to=me@example.org&mode=insecure"
        assert message(to(url), "mail", "broken: tiny", "it does not compile") == ""
    [mail] = mails
    assert mail["subject"] == "broken: tiny"
    assert mail["to"].endswith("<me@example.org>") or mail["to"] == "me@example.org"
    assert "it does not compile" in str(mail)


def test_an_address_that_nobody_knows_is_said_without_it() -> None:
    assert message(to("nosuch://secret-token/x"), "room", "a", "b") == UNKNOWN_URL
    assert message(to("secret-token"), "room", "a", "b") == UNKNOWN_URL


def test_who_cannot_be_reached_is_said_without_the_address() -> None:
    assert message(to("json://127.0.0.1:1/secret"), "room", "a", "b") == NO_CONNECTION
    assert message(to("mailto://127.0.0.1:1/?from=a@b.org&to=c@d.org"), "mail", "a", "b") == NO_CONNECTION
    assert ping(to("http://127.0.0.1:1/secret")) == NO_CONNECTION


def test_a_matrix_room_gets_the_text() -> None:
    with receiving() as server:
        url = f"matrix://TOKEN@127.0.0.1:{server.port}/!room:example.org?discovery=no"
        assert message(to(url), "room", "broken: tiny_gfx803", "a <b> and x_y_z") == ""
    [said] = [one["body"] for one in server.posts if "msgtype" in one]
    assert "broken: tiny_gfx803" in said
    assert "a <b> and x_y_z" in said


def test_every_url_of_the_page_is_one_that_apprise_knows() -> None:
    page = (Path(__file__).parents[3] / "docs/notify.md").read_text()
    table = page.partition("| to | `url` |")[2].partition("\n\n")[0]
    urls = re.findall(r"`([a-z]+://[^`]+)`", table)
    assert len(urls) == 7
    kinds = [type(apprise.Apprise.instantiate(url)).__name__ for url in urls]
    assert set(kinds) == {f"Notify{one}" for one in ("Matrix", "Slack", "Discord", "Email", "Ntfy", "JSON")}


def test_no_word_of_a_receiver_that_refuses_is_repeated() -> None:
    with mailbox("554 5.7.1 swordfish is not welcome") as (port, mails):
        url = f"mailto://127.0.0.1:{port}/?from=swordfish@example.org&to=me@example.org&mode=insecure"
        assert message(to(url), "mail", "a", "b") == REFUSED
    assert mails == []


def test_what_a_receiver_answers_is_said_by_its_number(receiver: Receiver) -> None:
    receiver.status = 403
    assert message(to(receiver.url), "room", "a", "b") == "it answered 403"
    assert ping(to(f"http://127.0.0.1:{receiver.port}/x")) == "it answered 403"


def test_the_address_is_in_no_list_of_processes(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    real = subprocess.Popen

    def noted(words: tuple[str, ...], **more: object) -> object:
        seen.extend(words)
        return real(words, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "Popen", noted)
    assert message(to(receiver.url), "room", "a", "b") == ""
    assert len(seen) == 4
    assert not [word for word in seen if "127.0.0.1" in word]


def test_a_process_that_breaks_down_tells_no_word_of_its_own(tmp_path: Path) -> None:
    # a title that is no text makes it raise, with the address in its hands
    bad = {"title": None}
    assert message(to("json://127.0.0.1:1/"), "room", bad, "b") == BROKE  # type: ignore[arg-type]


def test_an_address_may_stand_in_a_variable_or_a_file(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOM", receiver.url)
    (tmp_path / "room").write_text(f"{receiver.url}\n")
    for where in ({"url_env": "ROOM"}, {"url_file": str(tmp_path / "room")}):
        assert message(SecretUrl.model_validate(where), "room", "a", "b") == ""
    assert len(receiver.posts) == 2


def test_an_address_that_is_not_there_says_where_it_was_looked_for(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert message(SecretUrl(url_env="NO_SUCH"), "room", "a", "b") == "NO_SUCH is not set, or empty"
    said = message(SecretUrl(url_file=str(gone)), "room", "a", "b")
    assert said == f"{gone}: No such file or directory"
