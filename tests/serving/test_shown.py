"""What docs/run.md shows of servers is what is printed of them, whether or not they were built here."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tools.docs_outputs import ROOT, served, unvarying

from rocwright.catalog.load import the_catalog
from rocwright.catalog.server import Compute
from rocwright.home import Home
from rocwright.plan.resolve.shipped import request_of, shipped_lock
from rocwright.serving.api import StartedServer
from rocwright.serving.choose import served_component
from rocwright.serving.model import RunRequest
from rocwright.serving.service import Service
from rocwright.serving.verbs.servers import show

SHOWN = served(ROOT / "docs" / "run.md")


@pytest.mark.parametrize("words", SHOWN)
def test_the_page_shows_what_is_printed_of_the_recipe_and_its_lock(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog, home, stack = the_catalog(), Home(tmp_path / "home"), words.split()[1]
    component = served_component(catalog, stack)
    lock = shipped_lock(catalog, request_of(catalog.stack(stack), catalog.stack(stack).row[0]))
    assert component is not None and component.server is not None and lock is not None
    service = Service(
        stack=stack,
        component=component.name,
        version=lock.versions[component.name],
        gpu=lock.request.gpu,
        base=lock.request.base,
        server=component.server,
        on=Compute(name="cpu", summary="the processor"),
    )
    state = service.state(home, RunRequest(name=stack), 8099, keyed=False, mark="x", command=())
    running = StartedServer(
        server=state, request=component.server.request, seconds=3.0, folder=home.servers / stack
    )
    told = re.search(r"^it answers: ('.*')$", SHOWN[words], re.MULTILINE)
    assert bool(told) == ("--try" in words)
    show(running, detached="--detach" in words, answer=ast.literal_eval(told[1]) if told else None)
    assert unvarying(capsys.readouterr().out) == SHOWN[words]
