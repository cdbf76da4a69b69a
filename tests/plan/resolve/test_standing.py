"""A stack that stands on another: its lock holds that of the other, and takes what is built there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocwheel_samples.tables import each
from rocwright.catalog.load import builtin_catalog
from rocwright.home import Home
from rocwright.model.steps import ArchiveOrigin, FilePin
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.files import read_lock, write_lock
from rocwright.plan.resolve.lock import make_lock
from rocwright.plan.resolve.model import Lock, Request
from rocwright.plan.resolve.standing import answers, kept_below, request_below
from rocwright.plan.resolve.upstream import OfflineUpstream

CATALOG = builtin_catalog()
ABOVE = Request(stack="vllm-debian", gpu=("gfx1151",), base="debian:experimental")
BELOW = Request(
    stack="pytorch",
    gpu=("gfx1151",),
    base="debian:experimental",
    extra=("gloo",),
    versions={"pytorch": "2.6.0"},
)


def quiet(line: str) -> None:
    pass


def locked(request: Request, *below: Lock) -> Lock:
    return make_lock(request, CATALOG, OfflineUpstream(), quiet, locks_below=lambda asked: below)


PIN = FilePin(
    filename="a.tar.gz", sha256="0" * 64, size=1, origin=ArchiveOrigin(url="https://example.org/a.tar.gz")
)


def whole(lock: Lock) -> Lock:
    """The lock with nothing open, as an online one is."""
    closed = {"pending": ""}
    parts = {name: part for name in ("rocm", "python", "python_run") if (part := getattr(lock, name))}
    return lock.model_copy(
        update={
            **{name: part.model_copy(update=closed) for name, part in parts.items()},
            "components": tuple(
                one.model_copy(update=closed | {"files": one.files or (PIN,)}) for one in lock.components
            ),
            "roots": tuple(one.model_copy(update=closed) for one in lock.roots),
        }
    )


def test_what_is_asked_of_the_stack_below_is_what_the_one_above_asks_of_it() -> None:
    asked = ABOVE.model_copy(update={"versions": {"vllm": "0.8.5.post1", "pytorch": "2.6.0"}})
    below = request_below(asked, CATALOG)
    assert below is not None
    assert (below.stack, below.extra, below.versions) == ("pytorch", ("gloo",), {"pytorch": "2.6.0"})
    assert request_below(BELOW, CATALOG) is None


def test_what_the_stack_below_built_is_taken_with_its_own_keys() -> None:
    below = locked(BELOW)
    alone = {step.name: step.key for step in make_plan(below, CATALOG).steps}
    plan = make_plan(locked(ABOVE, below), CATALOG)
    keys = {step.name: step.key for step in plan.steps}
    for name in ("pytorch", "torchvision", "torchaudio", "gloo", "source/pytorch"):
        assert keys[name] == alone[name], name
    assert keys["python@pytorch"] == alone["python"] != keys["python"]
    installed = {item.key for step in plan.steps if step.name == "vllm" for item in step.inputs}
    assert {keys["pytorch"], keys["python"]} <= installed
    assert keys["python@pytorch"] not in installed


def test_planned_alone_all_is_built_with_the_packages_of_one_lock() -> None:
    names = [step.name for step in make_plan(locked(ABOVE), CATALOG, alone=True).steps]
    assert "pytorch" in names
    assert not [one for one in names if "@" in one]


def test_the_versions_of_the_lock_below_bind_the_one_above() -> None:
    below = locked(BELOW)
    above = locked(ABOVE, below)
    assert above.on == below
    assert {name: above.versions[name] for name in below.versions if name in above.versions}.items() <= (
        below.versions.items()
    )


def test_a_lock_below_that_does_not_fit_is_passed_over() -> None:
    other = {"base": "debian:sid", "accept_missing": ("rocblas", "rocsparse"), "versions": {}, "extra": ()}
    newer = locked(BELOW.model_copy(update=other))
    assert newer.versions["pytorch"] != "2.6.0"
    above = locked(ABOVE, newer)
    assert above.on is not None and above.on.versions["pytorch"] == "2.6.0"


def test_the_lock_that_was_written_last_answers_whatever_words_it_was_asked_with(tmp_path: Path) -> None:
    home = Home(tmp_path)
    asked = request_below(ABOVE, CATALOG)
    assert asked is not None
    first = whole(locked(BELOW))
    second = whole(locked(BELOW.model_copy(update={"provider": "distribution"})))
    home.locks.mkdir(parents=True)
    for at, (name, lock) in enumerate({"b": first, "a": second, "open": locked(BELOW)}.items()):
        path = home.locks / f"pytorch-{name}.lock"
        write_lock(path, lock)
        os.utime(path, (at, at))
    (home.locks / "pytorch-damaged.lock").write_text("schema = [")
    found = list(kept_below(home, lambda lock: make_plan(lock, CATALOG))(asked))
    assert [one.request.provider for one in found] == ["distribution", ""]

    def refuses(lock: Lock) -> None:
        raise InputError("no", cause="it is of another day", next_step="none")

    assert not list(kept_below(home, refuses)(asked))


@each(
    "changed",
    [
        {"gpu": ("gfx1103",)},
        {"extra": ()},
        {"versions": {"pytorch": "2.9.1"}},
        {"versions": {"pytorch": "@0123456789abcdef"}},
        {"provider": "amd"},
        {"accept_missing": ("rocblas",)},
    ],
    ids=str,
)
def test_a_lock_for_something_else_is_no_answer(changed: dict[str, object]) -> None:
    lock = locked(BELOW)
    assert answers(lock, BELOW)
    assert not answers(lock, BELOW.model_copy(update=changed))


def test_such_a_lock_is_read_as_it_was_written_and_its_digest_knows_no_dates(tmp_path: Path) -> None:
    lock = locked(ABOVE)
    assert lock.on is not None
    path = tmp_path / "rocwright.lock"
    write_lock(path, lock)
    assert read_lock(path, ABOVE) == lock
    later = lock.model_copy(update={"on": lock.on.model_copy(update={"created": "2030-01-01T00:00:00Z"})})
    assert later.digest == lock.digest
    other = lock.model_copy(update={"on": lock.on.model_copy(update={"provided": {}})})
    assert other.digest != lock.digest
    assert set(lock.on.pending) <= set(lock.pending)


def test_what_still_fits_below_is_kept_when_it_is_locked_again() -> None:
    before = locked(ABOVE)
    assert before.on is not None
    old = before.on.model_copy(update={"created": "2020-01-01T00:00:00Z"})
    again = make_lock(ABOVE, CATALOG, OfflineUpstream(), quiet, keep=before.model_copy(update={"on": old}))
    assert again.on == old


def test_a_lock_of_before_the_stack_stood_on_another_does_not_fit() -> None:
    lock = locked(ABOVE).model_copy(update={"on": None})
    with pytest.raises(InputError, match="does not match the recipes") as raised:
        make_plan(lock, CATALOG)
    assert "stands on pytorch now" in raised.value.cause
