"""Many questions at once; what the base brings along."""

from __future__ import annotations

import threading

from tests.follow.watch.conftest import Field
from tests.making import deb, lock_of

from rocbase.errors import NetworkError
from rocwright.catalog.load import builtin_catalog
from rocwright.follow.watch.ask import AT_ONCE, ask_all
from rocwright.follow.watch.model import News
from rocwright.follow.watch.question import PackageSet, Question, RemoteFile
from rocwright.follow.watch.upstream import Answer


def test_sixteen_are_under_way_at_once_and_never_more() -> None:
    together, now, most, lock = threading.Barrier(AT_ONCE), [0], [0], threading.Lock()

    def ask(_: Question) -> Answer:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        together.wait(timeout=60)
        with lock:
            now[0] -= 1
        return None

    found = ask_all([RemoteFile(f"u{number}") for number in range(4 * AT_ONCE)], ask, lambda *_: (), {})
    assert len(found) == 4 * AT_ONCE
    assert all(one.error is None for one in found.values())
    assert most[0] == AT_ONCE


def test_what_took_long_last_time_begins_and_what_an_answer_leads_to_is_asked_once() -> None:
    begun: list[str] = []

    def ask(question: Question) -> Answer:
        begun.append(str(question))
        if str(question) == "odd":
            raise KeyError("Tags")
        return "more"

    found = ask_all(
        [RemoteFile(name) for name in ("a", "b", "odd")],
        ask,
        lambda question, _: (
            [RemoteFile("c"), RemoteFile("c"), RemoteFile("a")] if str(question) != "c" else ()
        ),
        {"b": 5.0},
    )
    assert begun[0] == "b"
    assert sorted(begun) == ["a", "b", "c", "odd"]
    error = found[RemoteFile("odd")].error
    assert isinstance(error, NetworkError)
    assert "cannot be understood" in error.message


def test_another_version_of_what_the_base_brings_along_is_told_with_what_it_moves(field: Field) -> None:
    lock = lock_of("torch-extensions", "gfx803")
    before = deb("python3-torch", "2.6.0+dfsg-7")
    roots = tuple(root.model_copy(update={"packages": (before,)}) for root in lock.roots[:1])

    def ask(question: Question) -> Answer:
        if isinstance(question, PackageSet):
            return (deb("python3-torch", "2.7.1+dfsg-1"),)
        raise NetworkError("nobody is asked")

    report = field.look(builtin_catalog(), lock.model_copy(update={"roots": roots}), ask=ask)
    told: dict[str, News] = {one.name: one for one in report.news}
    assert told["root/build"].new.endswith("newer: python3-torch 2.6.0+dfsg-7 -> 2.7.1+dfsg-1")
    torch = told["pytorch"]
    assert (torch.has, torch.new, torch.step, torch.admitted) == ("2.6.0", "2.7.1", "minor", True)
    assert "torchvision 0.21.0 -> 0.22.1" in torch.moves
