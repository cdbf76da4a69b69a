"""The page of every stack that has a server says how it is run."""

from __future__ import annotations

from pathlib import Path

from rocwheel_samples.tables import each
from rocwright.catalog.load import builtin_catalog
from rocwright.serving.choose import served_component

CATALOG = builtin_catalog()
PAGES = Path(__file__).parents[2] / "docs" / "stacks"


@each("stack", [name for name in CATALOG.stacks if served_component(CATALOG, name)])
def test_the_page_of_a_stack_with_a_server_names_its_run(stack: str) -> None:
    assert f"rocwright run {stack}" in (PAGES / f"{stack}.md").read_text()
