"""The changes that `make mutants` tries."""

from __future__ import annotations

import ast
import tomllib

from tools.draw_mutants import drawn
from tools.mutants import ROOT, TABLE, file_of

CODE = """
LIMIT = 5

@decorated("name", 3)
def allowed(size: int, most: "a type" = 2) -> bool:
    if size > most:
        raise InputError(f"too large by {size - most}", cause="it is", size=size + 1)
    failed = errors.FetchError("no", 7)
    say("it is allowed")
    return size <= most and not failed
"""


def lines(most: int, seed: int = 1) -> set[tuple[str, str]]:
    return {(one.was.strip(), one.now.strip()) for one in drawn("x.py", CODE, seed, most)[1]}


def test_comparisons_conditions_and_arguments_are_changed() -> None:
    found = lines(1000)
    assert ("if size > most:", "if size >= most:") in found
    assert ("return size <= most and not failed", "return size <= most or not failed") in found
    assert ("return size <= most and not failed", "return size <= most and failed") in found


def test_texts_for_people_types_decorators_and_constants_are_left_alone() -> None:
    changed = {was.split("(")[0].split(":")[0].split(" ")[0] for was, _ in lines(1000)}
    assert changed == {"def", "if", "failed", "return"}
    assert {now for was, now in lines(1000) if was.startswith("failed")} == {"failed = None"}


def test_a_seed_draws_the_same_and_each_is_python_with_one_change() -> None:
    possible, found = drawn("x.py", CODE, 7, 4)
    assert found == drawn("x.py", CODE, 7, 4)[1] != drawn("x.py", CODE, 8, 4)[1]
    assert len(found) == 4 < possible
    for one in found:
        ast.parse(one.code)
        assert one.diff == f"- {one.was}\n+ {one.now}"
        assert CODE.splitlines()[one.line - 1] == one.was


def test_the_table_names_modules_tests_and_lines_that_there_are() -> None:
    table = tomllib.loads(TABLE.read_text())
    sources = {row["path"]: (ROOT / file_of(row["path"])).read_text() for row in table["module"]}
    paths = [word for row in table["module"] for word in row["tests"] if "tests/" in word]
    assert [path for path in paths if not (ROOT / path).exists()] == []
    reasons = [(row["path"], row["was"]) for row in table["reason"]]
    assert [reason for reason in reasons if reason[1] not in sources.get(reason[0], "")] == []
