"""Rows by name, for who types them and for the shell that completes them."""

from __future__ import annotations

import click
import pytest
from click.shell_completion import ShellComplete

from rocbase.errors import InputError
from rocwright.catalog.load import builtin_catalog
from rocwright.cli import cli
from rocwright.rehearsal.rows import asked_rows, rows_by_name


def test_without_a_name_all_rows_are_meant_and_with_a_stack_all_of_its_own() -> None:
    catalog = builtin_catalog()
    rows = sum(len(stack.row) for stack in catalog.stacks.values())
    assert len(asked_rows(catalog, [])) == len(rows_by_name(catalog)) == rows
    vllm = asked_rows(catalog, ["vllm"])
    assert {one.stack for one in vllm} == {"vllm"}
    assert len(vllm) == len(catalog.stacks["vllm"].row)
    assert asked_rows(catalog, [vllm[0].name, "vllm"]) == vllm


def test_an_unknown_row_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError) as told:
        asked_rows(builtin_catalog(), ["vlm"])
    assert "vllm" in told.value.cause


def test_the_shell_completes_rows() -> None:
    with click.Context(cli) as context:
        shell = ShellComplete(cli, context.obj or {}, "rocwright", "_ROCWRIGHT_COMPLETE")
        found = [one.value for one in shell.get_completions(["rehearse"], "vllm_gfx1151_")]
    assert found
    assert set(found) <= set(rows_by_name(builtin_catalog()))
