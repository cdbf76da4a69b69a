"""A build from Python is that of the command line: told before it begins, checked afterwards, on record."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples.project import COMPONENTS, make_sources, open_project, put_roots

from rocbase.errors import InputError
from rocwright import api
from rocwright.execution.options import BuildOptions
from rocwright.home import Home


def test_a_build_is_told_before_it_begins_and_verified_afterwards(
    home: Home, engine: str, tiny_root: Path, tmp_path: Path
) -> None:
    checked = COMPONENTS["alpha"] | {"check": [{"name": "code", "kind": "machine-code"}]}
    make_sources(tmp_path, {**COMPONENTS, "alpha": checked})
    project = open_project(tmp_path, home.path)
    put_roots(project, tiny_root)
    told: list[tuple[str, set[str]]] = []
    said: list[str] = []
    built = api.build(
        project,
        options=BuildOptions(jobs=2, engine=engine),
        verify=True,
        run_id="mine",
        planned=lambda lock, plan: told.append((lock.request.stack, {one.state.value for one in plan})),
        say=said.append,
    )
    assert [stack for stack, _ in told] == ["tiny"]
    assert "run" in told[0][1], "nothing had run by then"
    assert (built.run.id, built.lock, built.failures) == ("mine", project.locked, ())
    assert [one.path.name for one in built.artifacts]
    assert ("alpha", False) in {(one.component, one.ok) for one in built.findings}, "it has no GPU code"
    with api.records(home.path) as records:
        assert {run.command for run in records.runs()} == {"build", "verify"}


def test_names_in_an_override_are_those_of_the_catalog(tmp_path: Path) -> None:
    (tmp_path / "code.co").write_bytes(b"")
    with pytest.raises(InputError, match="another maker") as caught:
        api.audit_override(tmp_path / "code.co", "RX 7900 XTX", "RTX 4090")
    assert "rocwright targets" in caught.value.next_step
