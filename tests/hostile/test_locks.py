"""A lock that a stranger wrote is refused where it is read, or whatever reads it ends as it should."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rocbase.errors import ExplainedError, InputError
from rocbase.toml.read import parse, read_toml
from rocwheel_samples.tables import each
from rocwright.catalog.load import builtin_catalog
from rocwright.export.write import export
from rocwright.follow.watch.standing import locked_on
from rocwright.plan.resolve.model import Lock

CATALOG = builtin_catalog()
LOCKS = CATALOG.folders[0] / "locks"
ROWS = (
    "comfyui/gfx1151_ubuntu-24.04_comfyui-0.38.1_pytorch-wheels-2.13.0+rocm10.0.0.lock",
    "pytorch/gfx1103_debian-sid_distribution_pytorch-2.6.0.lock",
)
ODD = ("", "odd \x1b]0;one\x07")


def places(data: object, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a text stands in a lock: of a list of texts or files, in the first."""
    if isinstance(data, str):
        yield place
    elif isinstance(data, dict):
        for name, value in data.items():
            yield from places(value, (*place, name))
    elif isinstance(data, list):
        for number, value in enumerate(data if place == ("components",) else data[:1]):
            yield from places(value, (*place, number))


def changed(data: dict[str, Any], place: tuple[Any, ...], text: str) -> dict[str, Any]:
    found = holder = copy.deepcopy(data)
    for part in place[:-1]:
        holder = holder[part]
    holder[place[-1]] = text
    return found


@each("row", ROWS)
def test_an_odd_text_anywhere_is_refused_or_does_no_harm(row: str) -> None:
    data = read_toml(LOCKS / row)
    data.pop("sha256")
    parse(Lock, data, Path(row))
    refused = 0
    for place in places(data):
        for text in ODD:
            try:
                lock = parse(Lock, changed(data, place, text), Path(row))
                locked_on(lock)
                export(lock, CATALOG, "all")
            except InputError:
                refused += 1
            except ExplainedError:
                pass
            except Exception as error:
                raise AssertionError(f"{place}: {text!r}") from error
    assert refused > 20
