"""What verifying a stack needs beside what was built."""

from __future__ import annotations

from tests.making import lock_of

from rocwheel_samples.tables import each
from rocwright.catalog.load import builtin_catalog
from rocwright.plan.make import make_plan
from rocwright.plan.packages import RUN_WHEELS
from rocwright.verify.lending.ask import needed
from rocwright.verify.prepare import CHECK_ROOT, checked_in

CATALOG = builtin_catalog()


@each("stack", ["bitsandbytes", "pytorch-wheels", "vllm-wheels", "comfyui", "ollama"])
def test_no_root_is_made_to_read_what_others_published(stack: str) -> None:
    plan = make_plan(lock_of(stack), CATALOG)
    assert checked_in(plan, CATALOG) == ()
    assert not {CHECK_ROOT, RUN_WHEELS} & {one.name for one in needed(plan, CATALOG)}


def test_what_was_built_is_checked_in_its_root() -> None:
    plan = make_plan(lock_of("pytorch"), CATALOG)
    assert checked_in(plan, CATALOG) == (CHECK_ROOT, RUN_WHEELS)
    assert CHECK_ROOT in {one.name for one in needed(plan, CATALOG)}
