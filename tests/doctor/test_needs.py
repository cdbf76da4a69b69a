"""What `doctor` says a stack takes is what `plan` says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rocwright import api
from rocwright.catalog.load import the_catalog
from rocwright.diagnosis.facts import host_facts
from rocwright.diagnosis.machine.tree import Tree
from rocwright.doctor.doctor import examine
from rocwright.doctor.lines import lines
from rocwright.doctor.needs import need_of
from rocwright.doctor.this_machine import here
from rocwright.execution.estimate import expected
from rocwright.execution.requirements import disk_text, outlook_here, time_text
from rocwright.home import Home
from tests.diagnosis.machine.machines import POLARIS, STRIX_HALO, machine


@pytest.mark.parametrize(
    ("stack", "target"),
    [("pytorch", "gfx1103"), ("vllm", "gfx1151"), ("llama-hip", "gfx803"), ("llama-vulkan", "gfx1151")],
)
def test_doctor_and_plan_say_the_same_of_a_stack(
    tmp_path: Path, stack: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCWRIGHT_HOME", str(tmp_path / "home"))
    with Tree(machine(tmp_path, STRIX_HALO)) as tree:
        around = here(tree, the_catalog(), host_facts(), Home.default())
    processors = os.cpu_count() or 1
    need = need_of(
        around.model_copy(update={"processors": processors}), the_catalog(), stack, target, Home.default()
    )
    project = api.project(f"{stack}:built" if the_catalog().stack(stack).origins else stack, target)
    decisions = api.plan(project)
    planned = outlook_here(decisions, expected(project, decisions), project.home)
    assert need.outlook is not None
    assert (time_text(need.outlook), disk_text(need.outlook)) == (time_text(planned), disk_text(planned))
    assert (need.disk, need.outlook.jobs) == (planned.disk, planned.jobs)


def test_what_cannot_be_planned_is_not_called_native(tmp_path: Path) -> None:
    """It once said "native" of stacks of which `plan` says that no version fits."""
    with Tree(machine(tmp_path, POLARIS)) as tree:
        around = here(tree, the_catalog(), host_facts(), Home(tmp_path))
    report = examine(around, the_catalog(), host_facts(), ("sdnext", "pytorch"))
    [refused, able] = report.able
    assert (refused.how, refused.need.outlook) == ("not served", None)
    assert refused.why == refused.need.reason
    [line] = [line for line in lines(report) if " pytorch " in line and "native" in line]
    assert able.need.outlook is not None
    assert f"{time_text(able.need.outlook)} · at least 16.05 GiB disk · " in line
