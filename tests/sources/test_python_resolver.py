"""In which order the resolver looks at versions, told by the files whose metadata it asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from packaging.requirements import Requirement
from pypi_simple import DistributionPackage

from rocwright.sources.python_resolver import Interpreter, Metadata, solve


class Table:
    """An index of projects, versions and what they require."""

    def __init__(self, rows: Mapping[str, Sequence[str]]) -> None:
        self.rows, self.read = rows, list[str]()

    def packages(self, project: str) -> Sequence[DistributionPackage]:
        return [
            DistributionPackage(row, "", project, row.split("-")[1], "sdist", {}, None, None)
            for row in self.rows
            if row.startswith(f"{project}-")
        ]

    def metadata(self, package: DistributionPackage) -> Metadata:
        self.read.append(package.filename)
        return Metadata(requires=tuple(self.rows[package.filename]))

    def leaves(self, project: str) -> bool:
        return False


CHAIN = {f"a{number}-1": [f"a{number + 1}"] for number in range(150)} | {"a150-1": []}


@pytest.mark.parametrize(
    ("rows", "wanted", "read"),
    [
        pytest.param(
            {"a-1": [], "b-1": [], "c-1": [], "z-1": []}, "b a>=1 c==1.* z==1", "z-1 a-1 c-1 b-1", id="bounds"
        ),
        pytest.param(
            {"a-1": [], "a-2": ["c"], "b-1": [], "c-1": ["b>=2"]},
            "a b",
            "a-2 b-1 c-1 b-1 a-2 b-1 a-1",
            id="causes of a conflict",
        ),
        pytest.param({"a-1": [], "a-2": []}, "a<2 a[x]<3", "a-1 a-1", id="extras"),
        pytest.param({"a-1-tar.gz": [], "a-1-zip": []}, "a", "a-1-tar.gz", id="the first of equals"),
        pytest.param(CHAIN, "a0", " ".join(CHAIN), id="many"),
    ],
)
def test_the_fewest_choices_come_first(rows: dict[str, list[str]], wanted: str, read: str) -> None:
    index = Table(rows)
    solve([Requirement(text) for text in wanted.split()], index, Interpreter("3.13", "x86_64"), {})
    assert index.read == read.split()
