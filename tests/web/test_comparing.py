"""Runs and their locks: what is downloaded, what differs; finding a known issue; trends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rocbase.files.atomic import sha256_bytes
from rocwright.catalog.issue import the_issues
from rocwright.diagnosis.search import search
from rocwright.plan.resolve.files import read_lock
from rocwright.plan.resolve.model import Lock, Remedy
from rocwright.records.model import Run
from rocwright.records.read import Records
from rocwright.web.pages import about
from tests.making import lock_of
from tests.web.serving import Served, a_run, a_step

EVIL = "<script>alert('x')</script>"


def with_lock(records: Records, lock: Lock, **more: Any) -> Run:
    text = lock.model_dump_json(by_alias=True)
    run = a_run(lock=sha256_bytes(text.encode()), **more)
    records.put(run, lock=text)
    return run


@pytest.fixture(scope="module")
def lock() -> Lock:
    return lock_of("gfx-smoke")


def test_the_lock_of_a_run_is_one_that_builds_it_again(
    served: Served, records: Records, lock: Lock, tmp_path: Path
) -> None:
    run = with_lock(records, lock)
    client = served.client()
    assert f'href="/runs/{run.id}/lock"' in client.get(f"/runs/{run.id}").text
    answer = client.get(f"/runs/{run.id}/lock")
    assert 'filename="rocwright.lock"' in answer.headers["content-disposition"]
    (tmp_path / "rocwright.lock").write_text(answer.text)
    assert read_lock(tmp_path / "rocwright.lock") == lock


def test_a_lock_of_another_version_is_no_fault_of_the_page(served: Served, records: Records) -> None:
    run = a_run(lock=sha256_bytes(b'{"schema": 99}'))
    records.put(run, lock='{"schema": 99}')
    records.put(a_run("second"))
    client = served.client()
    assert client.get(f"/runs/{run.id}").status_code == 200
    assert client.get(f"/runs/{run.id}/lock").status_code == 404
    assert client.get("/runs/second/lock").status_code == 404
    page = client.get(f"/compare?a={run.id}&b=second")
    assert page.status_code == 200 and "that this version can read" in page.text


def test_a_run_leads_to_what_differs_from_the_one_before_it_and_to_its_remedies(
    served: Served, records: Records, lock: Lock
) -> None:
    first = with_lock(records, lock, id="first")
    records.put(a_run("another-cell", base="debian:trixie"))
    records.put(a_run("another-command", command="verify"))
    component = lock.components[0]
    issue = next(iter(the_issues()[0].values()))
    remedy = Remedy.model_validate(
        {
            "issue": issue.name,
            "component": component.name,
            "version": component.version,
            "action": {"kind": "jobs", "share": 0.5},
            "why": EVIL,
            "step": component.name,
            "since": "2026-01-01T00:00:00Z",
            "outcome": "helped",
        }
    )
    moved = component.model_copy(update={"version": "99.0"})
    second = with_lock(
        records,
        lock.model_copy(update={"components": (moved, *lock.components[1:]), "remedies": (remedy,)}),
        id="second",
    )
    client = served.client()
    text = client.get(f"/runs/{second.id}").text
    assert f'/compare?a={first.id}&amp;b={second.id}"' in text
    assert f'href="/issues#{issue.name}"' in text and EVIL not in text
    assert "/compare" not in client.get(f"/runs/{first.id}").text.split("<main")[1]
    page = client.get(f"/compare?a={first.id}&b={second.id}").text
    assert "99.0" in page and page.count(" selected>") == 2
    assert client.get(f"/compare?a={first.id}&b=none").status_code == 404
    assert client.get("/compare").status_code == 200


def test_runs_too_old_for_the_list_can_still_be_compared(served: Served, records: Records) -> None:
    for number in range(60):
        records.put(a_run(f"run-{number:03}", steps=(a_step(), a_step(name=EVIL))))
    page = served.client().get("/compare?a=run-000&b=run-059").text
    assert page.count(" selected>") == 2 and EVIL not in page


def test_trends_are_of_one_stack_and_need_two_builds(served: Served, records: Records) -> None:
    client = served.client()
    assert "Nothing is on record yet" in client.get("/trends").text
    for number in range(3):
        records.put(
            a_run(
                f"run-{number}",
                stack=EVIL,
                steps=(a_step(seconds=60 * number + 1, peak_memory=2**30 if number else None),),
            )
        )
    page = client.get("/trends").text
    # the first of the three was not measured, and nothing was compiled
    assert "at most 1.00 GiB" in page and "compiler cache" not in page
    # each as a line and as dots
    assert page.count(",8.0") == 2 * (1 + 2)
    assert "Time of each component" in page and "2 min 01 s" in page and EVIL not in page
    assert "A trend needs two builds of a stack" in client.get("/trends?stack=none").text
    records.put(a_run("elsewhere", stack=EVIL, base="debian:trixie"))
    assert "<form" not in page.split("<main")[1]
    one = client.get("/trends", params={"stack": EVIL, "base": "debian:trixie"}).text
    assert "<option selected>debian:trixie</option>" in one and "A trend needs two builds of a stack" in one


def test_issues_are_found_by_words_class_and_component(served: Served) -> None:
    client = served.client()
    known = the_issues()[0]
    one = next(issue for issue in known.values() if issue.components)
    asked = {"words": one.name.upper(), "failure": one.failure.value, "component": one.components[0]}
    text = client.get("/issues", params=asked).text
    assert f'id="{one.name}"' in text
    of_kind = [each for each in known.values() if about(each, asked["failure"], asked["component"])]
    assert text.count("<details") == len(search(asked["words"], of_kind)) < len(known)
    assert f"<option selected>{one.failure.value}</option>" in text
    none = client.get("/issues", params={"words": "xyzzyplugh"}).text
    assert "No known issue matches" in none and "<details" not in none
    assert EVIL not in client.get("/issues", params={"words": EVIL}).text
    everything = client.get("/issues", params={"failure": "no such class"})
    assert everything.status_code == 200
