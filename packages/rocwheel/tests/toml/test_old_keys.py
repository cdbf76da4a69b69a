"""Keys that had another name: a file of before still reads, and one line says the new name."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from rocwheel.errors import InputError, OldKeyWarning
from rocwheel.model import Frozen
from rocwheel.toml.old_keys import WithOldKeys
from rocwheel.toml.read import Fault, Reader, parse


class Row(WithOldKeys):
    OLD_KEYS = {"mend": "remedy", "what": "message"}

    remedy: str
    message: str = ""


class Table(Frozen):
    row: tuple[Row, ...] = ()


FILE = Path("catalog/table.toml")


def test_an_old_key_reads_as_the_new_one_and_a_line_for_the_file_says_so() -> None:
    with pytest.warns(OldKeyWarning) as told:
        table = parse(Table, {"row": [{"mend": "a"}, {"remedy": "b"}, {"mend": "c"}]}, FILE)
    assert [one.remedy for one in table.row] == ["a", "b", "c"]
    assert [str(one.message) for one in told] == [
        f"{FILE}: the key `mend` is called `remedy` now; the old name still works: rename it"
    ]


def test_todays_keys_are_read_without_a_word() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parse(Row, {"remedy": "a", "message": "b"}, FILE).message == "b"


def test_both_names_at_once_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        parse(Row, {"remedy": "a", "mend": "b"}, FILE)
    assert "mend" in caught.value.cause


def test_who_collects_faults_hears_of_old_keys_too() -> None:
    faults: list[Fault] = []
    with pytest.warns(OldKeyWarning, match="`what` is called `message`"):
        row = Reader([], faults).model(Row, {"mend": "a", "what": "b"}, FILE)
    assert row is not None
    assert (row.message, faults) == ("b", [])


def test_editors_take_the_old_names_as_deprecated() -> None:
    fields = Row.model_json_schema()["properties"]
    assert fields["mend"]["deprecated"]
    assert "deprecated" not in fields["remedy"]
