"""The facade's smoke suites and remedies: what `rocwright verify --suite` and `heal` do, from Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.test_verify_suite import GOOD, environment
from tests.making import lock_of
from tests.plan.test_remedies import action, mended, remedy

from rocbase.errors import InputError
from rocwright import api
from rocwright.home import Home
from rocwright.plan.resolve.files import write_lock


def test_an_environment_is_tried_and_what_was_found_is_on_record(home: Home, tmp_path: Path) -> None:
    python = environment(tmp_path, GOOD)
    [found] = api.verify_environment(["torch"], python, gpu="RX 580", run_id="suite-1")
    assert (found.component, found.ok) == ("torch", True)
    with api.records(home.path) as records:
        [run] = records.runs(limit=1)
        assert (run.id, run.outcome) == ("suite-1", "verified")
    assert "--target gfx803" in next((home.runs / "suite-1").rglob("*.log")).read_text()


@pytest.mark.parametrize(
    ("suite", "size", "said"), [("chess", "normal", "no suite 'chess'"), ("torch", "huge", "no size 'huge'")]
)
def test_a_suite_or_size_that_there_is_not_is_refused(suite: str, size: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        api.verify_environment([suite], size=size)


def test_the_remedies_of_a_lock_are_told_and_forgotten(home: Home, tmp_path: Path) -> None:
    project = api.project("llama-vulkan", "Strix Halo", "debian:sid", folder=tmp_path, home=home.path)
    with pytest.raises(InputError, match="no lock yet"):
        api.remedies(project)
    one = remedy("llama.cpp", action(kind="packages", names=["python-headers"]), outcome="helped")
    write_lock(project.lock_path, mended(lock_of("llama-vulkan", "gfx1151", base="debian:sid"), one))
    (there,) = api.remedies(project)
    with pytest.raises(InputError, match="no remedy for 'other'"):
        api.forget_remedies(project, "other")
    assert api.forget_remedies(project, there.issue) == (there,)
    assert api.remedies(project) == api.lock(project).remedies == ()
