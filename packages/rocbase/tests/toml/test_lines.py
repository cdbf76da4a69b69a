"""The line of a TOML file that gives a value."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st

from rocbase.errors import InputError
from rocbase.model import Frozen
from rocbase.toml.read import Reader, TableFault, line_in, line_of, parse
from rocwheel_samples.tables import each

TEXT = """\
# a comment
name = "x"

many = [
    "one",
    "two",
]
text = '''
name = "not this"
[table]
'''

[table]
number = 3
"a.b" = 4

[[row]]
name = "first"
[[row]]
name = "second"
inline = { deep = { a = 1 } }
"""


@each(
    ("place", "line"),
    [
        (("name",), 2),
        (("many",), 4),
        (("many", 1), 4),
        (("text",), 8),
        (("table",), 13),
        (("table", "number"), 14),
        (("table", "a.b"), 15),
        (("row",), 17),
        (("row", 0, "name"), 18),
        (("row", 1), 19),
        (("row", "1", "name"), 20),
        (("row", 1, "inline", "deep", "a"), 21),
        (("row", 1, "missing"), 19),
        (("table", "missing", "more"), 13),
        (("missing",), 0),
        ((), 0),
    ],
)
def test_the_line_is_that_of_the_statement_or_of_what_is_around_it(
    place: tuple[str | int, ...], line: int
) -> None:
    assert line_of(TEXT, place) == line


@given(names=st.lists(st.sampled_from("abcdefghij"), unique=True, max_size=8), blank=st.integers(0, 3))
def test_every_key_of_a_file_is_found(names: list[str], blank: int) -> None:
    text = "".join(f"{name} = [\n  1,\n]\n" + "\n" * blank for name in names)
    for name in names:
        assert text.splitlines()[line_of(text, (name,)) - 1] == f"{name} = ["


@each("text", ["a = ", "{}", "a = [\n" * 50])
def test_what_is_no_toml_has_no_lines(text: str) -> None:
    with pytest.raises(tomli.TOMLDecodeError):
        tomli.loads(text)
    assert line_of(text, ("a",)) == 0


def test_a_file_that_would_take_long_is_told_without_a_line(tmp_path: Path) -> None:
    path = tmp_path / "long.toml"
    path.write_text("a = [\n" + "  1,\n" * 100_000 + "]\nb = 2\nc = 3\n")
    begun = time.monotonic()
    assert line_in(path, ("b",)) == 0
    assert time.monotonic() - begun < 30


class Row(Frozen):
    name: str


class File(Frozen):
    number: int = 0
    row: tuple[Row, ...] = ()


def test_a_refused_file_is_told_with_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_text('# first\nnumber = "x"\n\n[[row]]\nname = 3\n')
    with pytest.raises(InputError) as caught:
        parse(File, {"number": "x", "row": [{"name": 3}]}, path)
    assert caught.value.cause.startswith("line 2: number: ")
    assert "; line 5: row.0.name: " in caught.value.cause


def test_a_row_that_is_a_table_by_its_name_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_text("[row.a]\nsize = 1\n[row.b]\nsize = 2\n")
    assert [line_in(path, ("row", number, "size")) for number in (0, 1)] == [2, 4]


def test_a_fault_of_a_catalog_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_text('# first\n[[row]]\nname = "a"\n[[row]]\nname = 3\n')
    faults: list[TableFault] = []
    reader = Reader((tmp_path,), faults)
    reader.model(Row, {"name": 3}, path, "row.1")
    assert [str(one) for one in faults] == [f'{path}:5: row.1.name: it must be text, in "quotes"']
    assert TableFault(path, "row.1 (a).name", "odd").line == 5
    with pytest.raises(InputError) as caught:
        Reader((tmp_path,)).fault(path, "row.1.name", "is odd")
    assert caught.value.cause == "line 5: row.1.name: is odd"
