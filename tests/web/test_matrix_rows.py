"""Rows of the project file that no run is on record of, and cells with nothing to install."""

from __future__ import annotations

import html
import re

from rocwright.home import Home
from rocwright.plan.resolve.folder import PROJECT
from rocwright.records.model import Artifact
from rocwright.records.read import Records
from tests.web.serving import Served, a_run

MATRIX = """\
[[matrix]]
stack = ["llama-vulkan", "pytorch"]
gpu   = ["gfx803", "gfx1151"]
base  = "debian:sid"
"""


def test_each_row_of_the_project_file_is_in_the_matrix(served: Served, records: Records, home: Home) -> None:
    (home.path / PROJECT).write_text(MATRIX)
    assert served.client().get("/").text.count("never built</span>") == 4
    records.put(a_run(stack="pytorch", said="built"))
    records.put(a_run("run-2", stack="pytorch", said="built", base="debian:trixie"))
    text = served.client().get("/").text
    assert text.count('<a href="/gpu/gfx1151">gfx1151</a></th>') == 2, "one row for each stack"
    assert text.count("never built</span>") == 3 and "2 passing" in text
    link = html.unescape(re.findall(r'<a href="(/cell[^"]+gfx803[^"]+)"', text)[0])
    page = served.client("run").get(link).text
    assert "rocwright build llama-vulkan --base debian:sid --gpu gfx803" in page
    assert "<button>Build</button>" in page
    assert "<button>Build</button>" not in served.client().get(link).text


def test_a_project_file_that_cannot_be_read_leaves_the_matrix(
    served: Served, records: Records, home: Home
) -> None:
    (home.path / PROJECT).write_text("stack = [")
    records.put(a_run())
    assert "1 of 1 passing" in served.client().get("/").text


def test_a_gpu_is_offered_only_what_was_built_for_it(served: Served, records: Records) -> None:
    records.put(a_run("run-1", said="built"), artifacts=[_made()])
    records.put(a_run("run-2", gpu=("gfx803",), outcome="failed", steps=()))
    records.put(a_run("run-3", gpu=("gfx906",), outcome="rehearsed", said="rehearsed", command="rehearse"))
    text = served.client().get("/").text
    assert re.findall(r'<a href="/gpu/([^"]+)">[^<]+</a> ', text.partition("What to install for")[2]) == [
        "gfx1151"
    ]
    assert "What to install for gfx1151" in served.client().get("/gpu/gfx1151").text
    for gpu in ("gfx803", "gfx906"):
        page = served.client().get(f"/gpu/{gpu}").text
        assert f"Nothing is built for {gpu} yet" in page and "What to install" not in page


def test_a_server_is_offered_with_the_command_that_starts_it(served: Served, records: Records) -> None:
    records.put(a_run("run-1", stack="llama-vulkan", said="built"), artifacts=[_made()])
    page = served.client().get("/gpu/gfx1151").text
    assert "rocwright run llama-vulkan --base debian:sid --gpu gfx1151 --model FILE" in page
    assert "so no line installs them" not in page


def _made() -> Artifact:
    return Artifact(component="tiny", step="alpha", filename="tiny.tar.zst", sha256="a" * 64, size=1)
